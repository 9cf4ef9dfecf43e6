// The whole engine on the CPU with small kernels: what is asserted never depends on how fast they are.
#include "profiler/tune/tune.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "profiler/tune/output_check.h"
#include "profiler/tune/records.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln::profiler {
namespace {

constexpr const char* kSource = R"(
import triton
import triton.language as tl

@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr, WRONG: tl.constexpr = 0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n - WRONG
    tl.store(o + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)

@triton.jit
def increment(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(x + i, tl.load(x + i, mask=mask) + 1, mask=mask)

@triton.jit
def count(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i, mask=i < n)
)";

class TuneTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kiln_tune_XXXXXX";
    // Records and kernels of this test alone.
    root = mkdtemp(name);
    setenv("KILN_CACHE_DIR", root.c_str(), 1);
    device = *open_device("cpu");
    const int64_t shape[] = {kN};
    x = *randn(device, DType::kF32, shape, 1);
    y = *randn(device, DType::kF32, shape, 2);
    // 7 is no sum of the inputs, so an output that nobody wrote is seen.
    o = *Tensor::full(device, DType::kF32, shape, 7);
    add = *Kernel::from_source(kSource, "tune_test.py", "add");
    increment = *Kernel::from_source(kSource, "tune_test.py", "increment");
    options.measure_s = 20;
    options.warm_up_s = 0;
    options.cache = Cache::kHot;  // many samples in little time
    options.seed = 3;
  }
  void TearDown() override {
    unsetenv("KILN_CACHE_DIR");
    std::filesystem::remove_all(root);
  }

  TuneCandidate candidate(int64_t block, int64_t wrong = 0, int warps = 4) {
    TuneCandidate c;
    c.config = fmt::format("BLOCK: {}, WRONG: {}, num_warps: {}", block, wrong, warps);
    c.kernel = add;
    c.grid = {(kN + block - 1) / block, 1, 1};
    c.args = {x, y, o, int64_t{kN}, block, wrong};
    c.options.num_warps = warps;
    return c;
  }
  TuneResult run(const std::vector<TuneCandidate>& candidates) {
    auto r = tune(device, candidates, options);
    EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().message);
    return r.ok() ? *r : TuneResult{};
  }

  // A number that no block divides.
  static constexpr int64_t kN = 1337;
  std::string root;
  Device device;
  Tensor x, y, o;
  Kernel add, increment;
  TuneOptions options;
};

TEST_F(TuneTest, EachConfigurationGetsItsState) {
  TuneCandidate broken = candidate(64);
  // A configuration that could not even be made.
  broken.config = "broken";
  broken.problem = "its grid function failed";
  const TuneResult r = run({candidate(256), candidate(48), candidate(512), candidate(256, 0, 8), broken});
  ASSERT_EQ(r.rows.size(), 5u);
  EXPECT_EQ(r.rows[0].state, TuneState::kMeasured);
  EXPECT_EQ(r.rows[1].state, TuneState::kFailed);
  // 48 is no power of two.
  EXPECT_EQ(r.rows[1].reason, "the size of tl.arange must be a power of two, got 48");
  EXPECT_EQ(r.rows[2].state, TuneState::kMeasured);
  EXPECT_EQ(r.rows[3].state, TuneState::kPruned);  // warps mean nothing to the CPU
  EXPECT_EQ(r.rows[3].reason, "the same code as BLOCK: 256, WRONG: 0, num_warps: 4");
  EXPECT_EQ(r.rows[4].state, TuneState::kFailed);
  EXPECT_EQ(r.rows[4].reason, "its grid function failed");
  // Which of them is faster is not this test's question.
  EXPECT_TRUE(r.best == 0 || r.best == 2);
  EXPECT_EQ(r.best, best_row(r.rows));
  EXPECT_FALSE(r.rows[0].us.empty());
  EXPECT_GT(r.rows[0].compile_ms, 0);
  const auto j = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(j["configurations"].size(), 5u);
  EXPECT_EQ(j["best"], r.best);
  EXPECT_EQ(j["configurations"][3]["state"], "pruned");
}

TEST_F(TuneTest, ARecordIsOfTheFirstOfTwoThatAreTheSame) {
  // A warning of the records would be a failure.
  TuneRecords records([](const std::string& text) { ADD_FAILURE() << text; });
  options.records = &records;
  options.record_key = record_key(add, device, {});
  const TuneResult r = run({candidate(256), candidate(256)});
  EXPECT_EQ(r.rows[1].state, TuneState::kPruned);
  const TuneResult again = run({candidate(256), candidate(256)});
  EXPECT_TRUE(again.from_records);
  // The second is the same code; the record names the first.
  EXPECT_EQ(again.best, 0);
}

TEST_F(TuneTest, AWrongConfigurationNeverWins) {
  auto check = OutputCheck::make({x, y, o});
  ASSERT_TRUE(check.ok());
  options.check = &*check;
  // Left as it was, the output would pass for right: an earlier launch has filled it.
  ASSERT_TRUE(candidate(256).launch().ok());
  const TuneResult r = run({candidate(256), candidate(512, kN), candidate(1024, 1), candidate(128)});
  EXPECT_EQ(r.rows[1].state, TuneState::kWrong);
  // Left out from the beginning, and the last element only.
  EXPECT_EQ(r.rows[1].reason.substr(0, 15), "tensor 2 at 0: ");
  EXPECT_EQ(r.rows[2].state, TuneState::kWrong);
  EXPECT_EQ(r.rows[2].reason.substr(0, 18), fmt::format("tensor 2 at {}: ", kN - 1));
  EXPECT_TRUE(r.best == 0 || r.best == 3);
}

TEST_F(TuneTest, WhatTheReferenceLeavesOutMayBeLeftOut) {
  auto check = OutputCheck::make({x, y, o});
  ASSERT_TRUE(check.ok());
  options.check = &*check;
  // As with a grid that is a block short: the end of the output is nobody's, and the rest still has to be written.
  constexpr int64_t kLeft = 3;
  ASSERT_TRUE(candidate(256, kLeft).launch().ok());
  const TuneResult r = run({candidate(256, kLeft), candidate(512, kLeft), candidate(1024, 2 * kLeft)});
  EXPECT_EQ(r.rows[1].state, TuneState::kMeasured) << r.rows[1].reason;
  EXPECT_EQ(r.rows[2].state, TuneState::kWrong);
}

TEST_F(TuneTest, TheCheckLeavesTheTensorsAsTheyWere) {
  auto x_before = *x.to_bytes(), o_before = *o.to_bytes();
  std::vector<TuneCandidate> candidates;
  for (int64_t block : {64, 128, 256}) {
    TuneCandidate c = candidate(block);
    c.kernel = increment;
    c.args = {x, int64_t{kN}, block};
    candidates.push_back(c);
  }
  auto check = OutputCheck::make({x, o, x});
  ASSERT_TRUE(check.ok());
  // The first run gives the reference, and the tensors are put back.
  ASSERT_TRUE(check->take_reference([&] { return candidates[0].launch(); }).ok());
  EXPECT_EQ(*x.to_bytes(), x_before);
  // In place: what it reads must not be poisoned.
  auto d = check->differs([&] { return candidates[1].launch(); });
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(*d, "");
  d = check->differs([&]() -> Status {
    KILN_CHECK_OK(candidates[1].launch());
    return candidates[1].launch();
  });
  ASSERT_TRUE(d.ok());
  // Twice in place adds 2.
  EXPECT_NE(*d, "");
  ASSERT_TRUE(check->restore().ok());
  EXPECT_EQ(*x.to_bytes(), x_before);
  EXPECT_EQ(*o.to_bytes(), o_before);
}

TEST_F(TuneTest, WhatIsLeftOutOfATensorOfIntegersIsFound) {
  Kernel count = *Kernel::from_source(kSource, "tune_test.py", "count");
  const int64_t shape[] = {kN};
  Tensor counts = *Tensor::full(device, DType::kI32, shape, 0);
  auto counting = [&](int64_t block, int64_t n) {
    TuneCandidate c = candidate(block);
    c.kernel = count;
    c.args = {counts, n, block};
    c.config += fmt::format(" n {}", n);
    return c;
  };
  ASSERT_TRUE(counting(256, kN).launch().ok());  // an earlier launch has filled it
  auto check = OutputCheck::make({counts});
  ASSERT_TRUE(check.ok());
  options.check = &*check;
  options.check_accesses = true;
  const TuneResult r = run({counting(256, kN), counting(512, kN - 1), counting(128, kN)});
  EXPECT_EQ(r.rows[0].state, TuneState::kMeasured) << r.rows[0].reason;
  EXPECT_EQ(r.rows[1].state, TuneState::kWrong);
  // 85 is the poison for integers: 0x55 in each byte.
  EXPECT_EQ(r.rows[1].reason, fmt::format("tensor 0 at {}: 85 instead of {}", kN - 1, kN - 1));
  EXPECT_EQ(r.rows[2].state, TuneState::kMeasured) << r.rows[2].reason;
}

TEST_F(TuneTest, AddingToZerosIsNoOverwriting) {
  const int64_t shape[] = {kN};
  Tensor zeros = *Tensor::full(device, DType::kF32, shape, 0);
  std::vector<TuneCandidate> candidates;
  for (int64_t block : {64, 128, 256}) {
    TuneCandidate c = candidate(block);
    c.kernel = increment;
    c.args = {zeros, int64_t{kN}, block};
    candidates.push_back(c);
  }
  auto check = OutputCheck::make({zeros});
  ASSERT_TRUE(check.ok());
  options.check = &*check;
  // What was added to zeros looks the same as what was written over them.
  for (const TuneRow& row : run(candidates).rows) EXPECT_EQ(row.state, TuneState::kMeasured) << row.reason;
}

TEST_F(TuneTest, AConfigurationThatReachesOutsideFailsAlone) {
  options.check_accesses = true;
  // Reaches eight times as far as there are elements.
  std::vector<TuneCandidate> candidates = {candidate(64), candidate(128, -8 * kN), candidate(128)};
  candidates[1].grid[0] *= 8;
  const TuneResult r = run(candidates);
  EXPECT_EQ(r.rows[0].state, TuneState::kMeasured) << r.rows[0].reason;
  EXPECT_EQ(r.rows[1].state, TuneState::kFailed);
  EXPECT_NE(r.rows[1].reason.find("which has"), std::string::npos) << r.rows[1].reason;
  EXPECT_EQ(r.rows[2].state, TuneState::kMeasured) << r.rows[2].reason;
  EXPECT_EQ(r.unchecked, "");
}

TEST(OutputCheck, AllowsAnotherOrderOfSumsAndNoMore) {
  EXPECT_EQ(allowed_difference(DType::kI32, 5, 100), 0);
  EXPECT_LT(allowed_difference(DType::kF32, 1, 1), 2e-4);
  EXPECT_GT(allowed_difference(DType::kF32, 0, 1), 1e-5);
  // Two roundings of a bf16 and not of a float.
  EXPECT_GT(allowed_difference(DType::kBF16, 1, 1), 1.0 / 256);
  EXPECT_LT(allowed_difference(DType::kBF16, 1, 1), 1.0 / 32);
  EXPECT_LT(allowed_difference(DType::kF64, 1, 1), 1e-11);
}

TEST_F(TuneTest, PrepareRunsBeforeEveryLaunch) {
  int prepared = 0;
  TuneCandidate a = candidate(64), b = candidate(128);
  a.prepare = [&]() -> Status {
    ++prepared;
    return {};
  };
  b.prepare = []() -> Status { return error(ErrorKind::kValue, "the hook failed"); };
  const TuneResult r = run({a, b});
  EXPECT_EQ(prepared, static_cast<int>(r.rows[0].us.size()) + 1);
  EXPECT_EQ(r.rows[1].state, TuneState::kFailed);
  EXPECT_EQ(r.rows[1].reason, "the hook failed");
}

TEST_F(TuneTest, ABenchmarkOfTheCallersOwnDecides) {
  options.bench = [](const TuneCandidate& c) -> Result<double> { return c.grid[0] == 11 ? 5.0 : 50.0; };
  const TuneResult r = run({candidate(64), candidate(128), candidate(256)});
  EXPECT_EQ(r.best, 1);
  EXPECT_EQ(r.rows[0].us, std::vector<double>{50.0});
}

// Alone the second was the fastest; in turns with the first it is slower, and the next run knows.
TEST_F(TuneTest, WhatLosesInTurnsIsNotKeptAsTheBest) {
  TuneRecords records([](const std::string& note) { ADD_FAILURE() << note; });
  options.records = &records;
  options.record_key = "key";
  options.bench = [](const TuneCandidate& c) -> Result<double> { return c.grid[0] == 11 ? 5.0 : 50.0; };
  int asked = 0;
  options.confirm = [&](const TuneResult& r) -> Result<std::optional<InTurns>> {
    EXPECT_EQ(r.best, 1);
    ++asked;
    return std::optional<InTurns>({r.best, 0, 60, 48});
  };
  const std::vector<TuneCandidate> candidates = {candidate(64), candidate(128), candidate(256)};
  const TuneResult r = run(candidates);
  EXPECT_EQ(r.best, 0);
  EXPECT_EQ(r.rows[1].median_us(), 60);
  EXPECT_EQ(r.rows[0].median_us(), 48);
  const TuneResult again = run(candidates);
  EXPECT_TRUE(again.from_records);
  EXPECT_EQ(again.best, 0);
  EXPECT_EQ(asked, 1);
}

TEST_F(TuneTest, AnInterruptKeepsTheBestOfThoseMeasured) {
  std::atomic<int> samples{0};
  std::vector<TuneCandidate> candidates = {candidate(64), candidate(128), candidate(256), candidate(512)};
  for (TuneCandidate& c : candidates)
    c.prepare = [&]() -> Status {
      ++samples;
      return {};
    };
  options.measure_s = 30;
  options.should_stop = [&] { return samples > 4 + 9; };  // each was tried once before
  TuneRecords records([](const std::string&) {});
  options.records = &records;
  options.record_key = record_key(add, device, {});
  TuneResult r = run(candidates);
  EXPECT_TRUE(r.interrupted);
  EXPECT_GE(r.best, 0);
  EXPECT_EQ(samples, 14);
  EXPECT_FALSE(std::filesystem::exists(root + "/tuning"));  // half a contest is no finding
  // Before anything was measured there is nothing to keep.
  options.should_stop = [] { return true; };
  r = run(candidates);
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.best, -1);
  EXPECT_EQ(r.count(TuneState::kSkipped), 4);
}

TEST_F(TuneTest, AHookThatIsInterruptedEndsIt) {
  TuneCandidate a = candidate(64), b = candidate(128);
  int calls = 0;
  b.prepare = [&]() -> Status {
    if (++calls > 2) return error(ErrorKind::kInterrupted, "interrupted");
    return {};
  };
  const TuneResult r = run({a, b});
  EXPECT_TRUE(r.interrupted);
  EXPECT_GE(r.best, 0);
}

TEST_F(TuneTest, NoBudgetStillMeasuresOne) {
  options.budget_s = 0;
  const TuneResult r = run({candidate(64), candidate(128), candidate(256)});
  EXPECT_GE(r.count(TuneState::kMeasured), 1);
  EXPECT_GE(r.best, 0);
  for (const TuneRow& row : r.rows)
    EXPECT_EQ(row.reason, row.state == TuneState::kSkipped ? "the budget was spent before its turn" : "");
}

TEST_F(TuneTest, ASecondRunReadsTheRecords) {
  TuneRecords records([](const std::string&) { FAIL(); });
  options.records = &records;
  options.record_key = record_key(add, device, {});
  const std::vector<TuneCandidate> candidates = {candidate(64), candidate(48), candidate(256)};
  const TuneResult first = run(candidates);
  EXPECT_FALSE(first.from_records);
  options.on_progress = [](const TuneProgress&) { FAIL() << "nothing is left to do"; };
  const TuneResult second = run(candidates);
  EXPECT_TRUE(second.from_records);
  EXPECT_EQ(second.best, first.best);
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(second.rows[i].state, first.rows[i].state);
    EXPECT_EQ(second.rows[i].us, first.rows[i].us);
  }
  // One more: it is measured beside the best of before, and only they.
  options.on_progress = {};
  std::vector<TuneCandidate> more = candidates;
  more.push_back(candidate(512));
  const TuneResult third = run(more);
  EXPECT_FALSE(third.from_records);
  EXPECT_TRUE(third.best == first.best || third.best == 3);
  EXPECT_FALSE(third.rows[3].from_record);
  EXPECT_TRUE(third.rows[1].from_record);
  EXPECT_FALSE(third.rows[static_cast<size_t>(first.best)].from_record);
  // Its new records agree with what it said.
  const TuneResult fourth = run(more);
  EXPECT_TRUE(fourth.from_records);
  EXPECT_EQ(fourth.best, third.best);
  // Another key knows nothing of it.
  options.record_key = record_key(add, device, std::vector<std::string>{"n=2"});
  EXPECT_FALSE(run(candidates).from_records);
}

TEST_F(TuneTest, RecordsOfAnotherKernelTextAreNotOurs) {
  std::string edited = kSource;
  edited.replace(edited.find("+ tl.load(y"), 1, "-");
  Kernel other = *Kernel::from_source(edited, "tune_test.py", "add");
  EXPECT_NE(record_key(add, device, {}), record_key(other, device, {}));
  Kernel moved = *Kernel::from_source("\n\n" + std::string(kSource), "elsewhere.py", "add");
  EXPECT_EQ(record_key(add, device, {}), record_key(moved, device, {}));
}

// The real compiler on several threads at once makes what it makes alone.
TEST_F(TuneTest, CompilingSideBySideGivesTheSameCode) {
  constexpr const char* kProduct = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=(k + ks)[None, :] < K, other=0.0)
        right = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=(k + ks)[:, None] < K, other=0.0)
        acc += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)
)";
  setenv("KILN_CACHE", "0", 1);
  const int64_t shape[] = {64, 64};
  Tensor a = *Tensor::zeros(device, DType::kF16, shape), c = *Tensor::zeros(device, DType::kF32, shape);
  struct Job {
    const char* target;
    int64_t n;
    int warps;
  };
  std::vector<Job> jobs;
  for (const char* target : {"host", "sm_80", "sm_90a"})
    for (int64_t n : {16, 32, 64})
      for (int warps : {2, 4}) jobs.push_back({target, n, warps});
  auto code = [&](const Kernel& k, const Job& j) {
    LaunchOptions launch;
    launch.num_warps = j.warps;
    const std::optional<Arg> args[] = {a, a, c, int64_t{64}, int64_t{32}, j.n, int64_t{32}};
    auto info = k.compile(args, launch, j.target);
    return info.ok() ? info->code : info.error().message;
  };
  std::vector<std::string> alone, together(jobs.size());
  Kernel first = *Kernel::from_source(kProduct, "product.py"), second = *Kernel::from_source(kProduct, "product.py");
  for (const Job& j : jobs) alone.push_back(code(first, j));
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < jobs.size(); i = next++) together[i] = code(second, jobs[i]);
    });
  for (std::thread& t : threads) t.join();
  unsetenv("KILN_CACHE");
  EXPECT_EQ(alone, together);
  for (const std::string& text : alone) EXPECT_EQ(text.size(), 32u) << text;
}

TEST_F(TuneTest, ProgressGoesThroughThePhases) {
  std::vector<TunePhase> phases;
  options.on_progress = [&](const TuneProgress& p) {
    if (phases.empty() || phases.back() != p.phase) phases.push_back(p.phase);
    EXPECT_LE(p.done, p.total);
    EXPECT_GE(p.left_s, 0);
  };
  run({candidate(64), candidate(128)});
  EXPECT_EQ(phases, (std::vector<TunePhase>{TunePhase::kCompiling, TunePhase::kChecking, TunePhase::kMeasuring}));
}

}  // namespace
}  // namespace kiln::profiler
