// Contests on the CPU: who takes part, what is checked, what is kept. Nothing here depends on how long anything takes.
#include "profiler/compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln::profiler {
namespace {

class ContestTest : public testing::Test {
 protected:
  ContestTest() : cpu(*open_device("cpu")) {
    // The fewest that a contest takes: what is tested is who has samples, not how good they are.
    options.max_pairs = 12;
    options.timeout_s = 20;
  }
  // Fills a tensor of its own with a number.
  Contender fills(std::string name, double value, int64_t n = 1000) {
    const int64_t shape[] = {n};
    Tensor out = *Tensor::zeros(cpu, DType::kF32, shape);
    Contender c;
    c.name = std::move(name);
    c.device = cpu;
    c.launch = [out, value] { return out.fill(value); };
    c.output = [out]() -> Result<Tensor> { return out; };
    // NaN equals nothing, so an output that was not written cannot pass.
    c.poison = [out] { return out.fill(std::numeric_limits<double>::quiet_NaN()); };
    c.facts.kernels = {"fill"};
    // A thousand floats, as the roof needs to know what was moved.
    c.facts.bytes = 4000;
    return c;
  }
  std::string json_of(const Contest& c) { return contest_json(c); }

  Device cpu;
  ContestOptions options;
};

TEST_F(ContestTest, EveryRowHasItsSamplesAndItsCheck) {
  options.extras = true;
  auto contest = run_contest({fills("a", 2), fills("b", 2), fills("c", 2)}, options);
  ASSERT_TRUE(contest.ok()) << contest.error().message;
  ASSERT_EQ(contest->rows.size(), 3u);
  EXPECT_EQ(contest->device, "cpu");
  EXPECT_EQ(contest->reference, "a");
  for (const ContestRow& row : contest->rows) {
    EXPECT_TRUE(row.problem.ok());
    EXPECT_TRUE(row.check.known() && row.check.ok()) << row.check.text();
    EXPECT_EQ(row.check.checked, 1000);
    EXPECT_FALSE(row.other_us.empty());
    EXPECT_FALSE(row.graph_us.empty()) << row.no_graph;
    EXPECT_EQ(row.launches, 1);
    ASSERT_TRUE(row.roof.has_value());
    EXPECT_EQ(row.roof->bound, "memory");
  }
  // The baseline is compared with itself in the control and has no verdict of its own.
  EXPECT_EQ(contest->rows[0].decision.pairs, 0);
  EXPECT_EQ(contest->rows[1].decision.pairs, 12);
  EXPECT_EQ(contest->rows[1].samples.size(), 12u);
  EXPECT_EQ(contest->rows[1].base.size(), 12u);
  EXPECT_EQ(contest->control_first.size(), 12u);
  EXPECT_EQ(contest->rows[0].samples.size(), 48u);  // of both rows' pairs, and of the control's
}

TEST_F(ContestTest, LongRunsAreCutWhereAnAnswerIsDue) {
  auto slow = [&](std::string name, int* launches) {
    Contender c = fills(std::move(name), 2);
    // Launched before, as a runner that has already shown its result.
    EXPECT_TRUE(c.launch().ok());
    c.ran_s = 1;  // so it says; its result is there
    c.launch = [launch = c.launch, launches] { return ++*launches, launch(); };
    return c;
  };
  int a = 0, b = 0, c = 0;
  std::string announced;
  options.due_s = 10;
  options.announce = [&](const std::string& text) { announced = text; };
  auto contest = run_contest({slow("a", &a), slow("b", &b), slow("c", &c)}, options);
  ASSERT_TRUE(contest.ok()) << contest.error().message;
  for (const ContestRow& row : contest->rows) EXPECT_TRUE(row.check.ok() && row.check.known());
  // Two pairs of each are 8 s; six and the control's would be 36 s, and 40 s with a round to warm up.
  EXPECT_EQ(a, 4);
  EXPECT_EQ(b, 2) << "neither a launch for the check nor one to warm up";
  EXPECT_EQ(contest->rows[1].decision.verdict, Verdict::kUndecided);
  EXPECT_EQ(contest->rows[1].samples.size(), 2u);
  EXPECT_TRUE(contest->control_first.empty());
  EXPECT_EQ(contest->cut,
            "a run takes up to 1.0 s: 2 of the 6 pairs that a verdict needs. budget=40 takes them all; tensors with a "
            "tenth of the work have verdicts in seconds");
  EXPECT_EQ(announced, "about 8 s more: a run takes up to 1.0 s");
  EXPECT_NE(report::to_text(contest_table(*contest)).find(contest->cut), std::string::npos);

  // With enough time the same run has its verdicts.
  options.due_s = 100;
  contest = run_contest({slow("a", &a), slow("b", &b)}, options);
  ASSERT_TRUE(contest.ok());
  EXPECT_EQ(contest->cut, "") << "there is time for verdicts";
  EXPECT_EQ(contest->rows[1].decision.pairs, 12);
}

TEST_F(ContestTest, AProblemKeepsItsRow) {
  Contender absent = fills("absent", 2), refused = fills("refused", 2), late = fills("late", 2);
  absent.problem = error(ErrorKind::kDevice, "no cuBLAS: libcublas.so.13 not found");
  refused.launch = []() -> Status { return error(ErrorKind::kMemory, "too large for memory"); };
  // Right for its first runs, the check among them, and then faulty.
  late.launch = [n = 0, good = late.launch]() mutable -> Status {
    if (++n > 9) return error(ErrorKind::kLaunch, "the kernel faulted");
    return good();
  };
  options.extras = false;
  auto contest = run_contest({fills("a", 2), absent, refused, late, fills("b", 2)}, options);
  ASSERT_TRUE(contest.ok()) << contest.error().message;
  EXPECT_FALSE(contest->rows[1].is_measured());
  EXPECT_FALSE(contest->rows[2].is_measured());
  EXPECT_FALSE(contest->rows[3].problem.ok());
  EXPECT_EQ(contest->rows[4].decision.pairs, 12);
  // Each problem is told under the table.
  std::string text = report::to_text(contest_table(*contest));
  EXPECT_NE(text.find("absent: no cuBLAS: libcublas.so.13 not found"), std::string::npos) << text;
  EXPECT_NE(text.find("refused: too large for memory"), std::string::npos);
  EXPECT_NE(text.find("late: the kernel faulted"), std::string::npos);
  EXPECT_NE(text.find("failed"), std::string::npos);
}

TEST_F(ContestTest, TheBaselineIsMeasuredWhereAllOthersFailed) {
  Contender bad = fills("bad", 2);
  bad.problem = error(ErrorKind::kLaunch, "it reaches outside");
  auto contest = run_contest({fills("a", 2), bad}, options);
  ASSERT_TRUE(contest.ok()) << contest.error().message;
  EXPECT_TRUE(contest->rows[0].is_measured());
  EXPECT_GE(contest->rows[0].samples.size(), 6u);
  EXPECT_FALSE(contest->rows[1].is_measured());
}

TEST_F(ContestTest, WrongResultsAreNotCalledFaster) {
  Contender nan = fills("nan", std::numeric_limits<double>::quiet_NaN()), idle = fills("idle", 2);
  idle.launch = [] { return Status{}; };  // very fast, and writes nothing
  options.extras = false;
  auto contest = run_contest({fills("a", 2), fills("off", 2.5), nan, idle}, options);
  ASSERT_TRUE(contest.ok());
  // In the order of the rows.
  EXPECT_EQ(contest->wrong(), (std::vector<std::string>{"off", "nan", "idle"}));
  EXPECT_EQ(contest->rows[1].check.first_bad, 0);
  EXPECT_NEAR(contest->rows[1].check.max_rel, 0.25, 1e-6);
  EXPECT_EQ(contest->rows[2].check.nans, 1000);
  report::Table table = contest_table(*contest);
  // The verdict is the last column.
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(table.rows()[i].back().text, "WRONG");
}

TEST_F(ContestTest, TheBaselineMustRun) {
  Contender bad = fills("bad", 2);
  bad.problem = error(ErrorKind::kDevice, "no OpenBLAS");
  auto contest = run_contest({bad, fills("b", 2)}, options);
  ASSERT_FALSE(contest.ok());
  EXPECT_EQ(contest.error().message, "no OpenBLAS");
  ASSERT_EQ(contest.error().notes.size(), 1u);
  // There is no eighth contender.
  options.baseline = 7;
  EXPECT_EQ(run_contest({fills("a", 2)}, options).error().kind, ErrorKind::kValue);
}

TEST_F(ContestTest, AnInterruptKeepsWhatIsThere) {
  int asked = 0;
  // In the middle of the pairs.
  options.stop = [&] { return ++asked > 60; };
  auto contest = run_contest({fills("a", 2), fills("b", 2)}, options);
  ASSERT_TRUE(contest.ok());
  EXPECT_TRUE(contest->interrupted);
  std::string text = report::to_text(contest_table(*contest));
  EXPECT_NE(text.find("interrupted"), std::string::npos) << text;
}

TEST_F(ContestTest, WhatHadNoTurnWasNotChecked) {
  // Before the first.
  options.stop = [] { return true; };
  auto contest = run_contest({fills("a", 2), fills("b", 3)}, options);
  ASSERT_TRUE(contest.ok()) << contest.error().message;
  EXPECT_FALSE(contest->rows[1].check.known());
  EXPECT_EQ(report::to_text(contest_table(*contest)).find("), ;"), std::string::npos);
}

TEST_F(ContestTest, AReferenceOfItsOwn) {
  options.extras = false;
  options.check = [&](size_t i, const Tensor& got) -> Result<ResultCheck> {
    // A reference that does not know every contender.
    if (i == 1) return error(ErrorKind::kUnsupported, "no reference for this");
    KILN_TRY(Values values, values_of(got));
    Values want = values;
    for (double& v : want.data) v = 3;
    return check_values(values, want, 1e-6);
  };
  auto contest = run_contest({fills("a", 3), fills("b", 3), fills("c", 4)}, options);
  ASSERT_TRUE(contest.ok());
  // The name of the reference that was given.
  EXPECT_EQ(contest->reference, "float64");
  EXPECT_TRUE(contest->rows[0].check.ok());
  EXPECT_EQ(contest->rows[1].check.unknown, "no reference for this");
  EXPECT_EQ(contest->wrong(), std::vector<std::string>{"c"});
}

TEST_F(ContestTest, JsonKeepsEverySample) {
  Contender absent = fills("absent", 2);
  absent.problem = error(ErrorKind::kDevice, "no cuBLAS");
  auto contest = run_contest({fills("a", 2), fills("b", 2.5), absent}, options);
  ASSERT_TRUE(contest.ok());
  std::string text = json_of(*contest);
  auto parsed = parse_contest(text, "run.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->hardware, contest->hardware);
  ASSERT_EQ(parsed->rows.size(), 3u);
  EXPECT_EQ(parsed->rows[1].samples.size(), contest->rows[1].samples.size());
  EXPECT_EQ(parsed->rows[1].us().median, contest->rows[1].us().median);
  EXPECT_EQ(parsed->rows[1].other_us, contest->rows[1].other_us);
  EXPECT_EQ(parsed->rows[1].decision.pairs, contest->rows[1].decision.pairs);
  EXPECT_EQ(parsed->rows[1].decision.verdict, contest->rows[1].decision.verdict);
  EXPECT_EQ(parsed->wrong(), std::vector<std::string>{"b"});
  EXPECT_EQ(parsed->rows[2].problem.error().message, "no cuBLAS");
  EXPECT_EQ(parsed->control_first.size(), contest->control_first.size());
}

TEST(SavedContest, BadFilesSayWhy) {
  // No JSON, no comparison, another version, without its rows.
  for (auto [text, why] : {std::pair("{", "it is not JSON"),
                           {"[1]", "%compare --json writes those that are"},
                           {R"({"kind":"kiln-compare","version":9})", "its version is 9"},
                           {R"({"kind":"kiln-compare","version":1})", "device"}}) {
    auto contest = parse_contest(text, "x.json");
    ASSERT_FALSE(contest.ok()) << text;
    EXPECT_NE(contest.error().message.find(why), std::string::npos) << contest.error().message;
    EXPECT_EQ(contest.error().message.find("x.json is no saved comparison"), 0u);
  }
}

// A contest as it would have been saved.
Contest saved(std::vector<std::pair<std::string, double>> rows, double spread = 0.002) {
  Contest c;
  c.device = "cuda:0", c.hardware = "NVIDIA H200", c.target = "sm_90a", c.driver = "580.1", c.when = "2026-01-01";
  for (auto& [name, us] : rows) {
    ContestRow row;
    row.name = name;
    // Samples that differ a little, as real ones do, and in the same way each time.
    for (int i = 0; i < 30; ++i) row.samples.push_back({.us = us * (1 + spread * (i % 7 - 3)), .sm_mhz = 1980});
    c.rows.push_back(std::move(row));
  }
  return c;
}

TEST(Changes, SlowerFasterSameAndMissing) {
  Contest before = saved({{"a", 100}, {"b", 100}, {"c", 100}, {"gone", 5}});
  Contest after = saved({{"a", 110}, {"b", 100.2}, {"c", 80}, {"new", 5}});
  auto changes = compare_contests(before, after, 0.02);
  ASSERT_TRUE(changes.ok());
  ASSERT_EQ(changes->rows.size(), 3u);
  EXPECT_EQ(changes->rows[0].verdict, Verdict::kSlower);
  EXPECT_NEAR(changes->rows[0].speedup, 100.0 / 110, 1e-3);
  EXPECT_EQ(changes->rows[1].verdict, Verdict::kSame);
  EXPECT_EQ(changes->rows[2].verdict, Verdict::kFaster);
  // What CI asks for.
  EXPECT_TRUE(changes->any_slower());
  EXPECT_EQ(changes->missing, std::vector<std::string>{"gone"});
  std::string text = report::to_text(changes_table(*changes));
  EXPECT_NE(text.find("gone: not in the new run"), std::string::npos) << text;
  EXPECT_NE(text.find("new: not in the old run"), std::string::npos);
}

TEST(Changes, NoiseIsNoChange) {
  // Three percent within a spread of five: nothing can be said.
  auto changes = compare_contests(saved({{"a", 100}}, 0.05), saved({{"a", 103}}, 0.05), 0.02);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(changes->rows[0].verdict, Verdict::kUndecided);
  EXPECT_FALSE(changes->any_slower());
}

// A clock that fell explains the difference, at least in part.
TEST(Changes, ASlowerClockIsSaid) {
  Contest after = saved({{"a", 110}});
  for (Sample& s : after.rows[0].samples) s.sm_mhz = 1700;
  auto changes = compare_contests(saved({{"a", 100}}), after, 0.02);
  ASSERT_TRUE(changes.ok());
  EXPECT_NE(report::to_text(changes_table(*changes)).find("the clock was 1980 MHz in the old run and 1700"),
            std::string::npos);
}

TEST(Changes, OtherMachinesDoNotCompare) {
  Contest other = saved({{"a", 100}});
  other.hardware = "NVIDIA A100";
  EXPECT_NE(compare_contests(saved({{"a", 100}}), other, 0.02).error().message.find("NVIDIA A100"), std::string::npos);
  Contest hot = saved({{"a", 100}});
  hot.cache = Cache::kHot;
  // Hot and cold caches measure different things.
  EXPECT_FALSE(compare_contests(saved({{"a", 100}}), hot, 0.02).ok());
  EXPECT_FALSE(compare_contests(saved({{"a", 100}}), saved({{"b", 100}}), 0.02).ok());
}

TEST(Check, ErrorsAreRelativeToTheSizeOfTheResult) {
  Values want{DType::kF32, {4}, 4, 4, {100, -100, 1e-9, 100}};
  Values got = want;
  got.data[2] = 1e-4;  // nothing, beside values of 100
  EXPECT_TRUE(check_values(got, want, 1e-5).ok());
  got.data[3] = 100.1;
  ResultCheck c = check_values(got, want, 1e-5);
  EXPECT_EQ(c.first_bad, 3);
  EXPECT_NEAR(c.max_abs, 0.1, 1e-9);
  EXPECT_NEAR(c.max_rel, 1e-3, 1e-9);
  // An infinity is wrong however large the tolerance is.
  got = want;
  got.data[1] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(check_values(got, want, 0.5).first_bad, 1);
  // The same infinity is right.
  want.data[1] = got.data[1];
  EXPECT_TRUE(check_values(got, want, 0).ok());
  got.shape = {2, 2};
  EXPECT_EQ(check_values(got, want, 0).unknown, "its result has the shape [2, 2], the reference [4]");
}

TEST(Check, LargeTensorsAreLookedAtFromBothEnds) {
  Device cpu = *open_device("cpu");
  const int64_t shape[] = {1000};
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < 1000; ++i) numbers[i] = static_cast<float>(i);
  Tensor t = *Tensor::from_host(cpu, DType::kF32, shape, numbers.data(), 4000);
  Values v = *values_of(t, 10);
  // The first and the last five.
  ASSERT_EQ(v.data, (std::vector<double>{0, 1, 2, 3, 4, 995, 996, 997, 998, 999}));
  EXPECT_EQ(v.index(4), 4);
  EXPECT_EQ(v.index(5), 995);
}

// At 4000 GB/s and at 800 TFLOP/s the two times are compared.
TEST(Roof, TheLongerOfTheTwoBoundsIt) {
  const Ceiling memory{4000, "copy"}, math{800e6, "product"};
  Roofline r = roofline(50, 100000, -1, memory, nullptr);
  EXPECT_DOUBLE_EQ(r.share, 0.5);
  EXPECT_EQ(r.bound, "memory");
  r = roofline(50, 100000, 32e9, memory, &math);
  EXPECT_DOUBLE_EQ(r.share, 0.8);
  EXPECT_EQ(r.bound, "math");
}

}  // namespace
}  // namespace kiln::profiler
