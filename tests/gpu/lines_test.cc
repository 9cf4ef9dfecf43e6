// Samples of program counters on a real GPU, led back to the lines of kernels whose hot line is known.
#include <gtest/gtest.h>

#include <algorithm>

#include "kiln/kernel.h"
#include "kiln/tensor.h"
#include "profiler/cupti/pc_sampling.h"
#include "profiler/cupti/sass_lines.h"
#include "runtime/jit/loaded_code.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using namespace profiler;
using Shape = std::vector<int64_t>;

constexpr const char* kSource = R"(import triton
import triton.language as tl


@triton.jit
def moves_bytes(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(out + i, a + b, mask=i < n)


@triton.jit
def computes(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    for step in range(400):
        a = a * 1.0001 + 0.25 / (a * a + 1.0)
    tl.store(out + i, a, mask=i < n)
)";

std::string line_text(int number) {
  auto text = SourceText::make("k.py", kSource);
  return std::string(text->line(number));
}

struct Taken {
  SampleRun run;
  std::vector<LineProfile> profiles;  // as run.functions
};

/// Samples `runs` launches; a device that cannot be sampled gives its reason.
Result<Taken> sample(const Device& device, const std::function<Status()>& launch, int runs, int period_log2 = 0) {
  KILN_CHECK_OK(launch());
  KILN_CHECK_OK(device.synchronize());
  KILN_TRY(auto sampler, cupti::PcSampler::attach(device, {period_log2}));
  KILN_CHECK_OK(sampler->start());
  for (int i = 0; i < runs; ++i) KILN_CHECK_OK(launch());
  KILN_CHECK_OK(sampler->stop());
  Taken taken;
  KILN_TRY(taken.run, sampler->finish());
  for (const SampledFunction& f : taken.run.functions) {
    std::string cubin;
    for (const auto& code : loaded_code(device)) {
      if (code->name != f.name || code->cubin.empty()) continue;
      KILN_TRY(uint64_t checksum, cupti::cubin_checksum(code->cubin));
      if (checksum == f.code) cubin = code->cubin;
    }
    if (cubin.empty())  // no assembler here: the driver compiled it
      for (const auto& code : loaded_code(device))
        if (code->name == f.name) {
          KILN_TRY(Assembled made, device.impl()->backend().assembler()->assemble(code->ptx));
          cubin = std::move(made.image);
        }
    LineTable table;
    if (!cubin.empty()) {
      KILN_TRY(table, cupti::cubin_lines(cubin, f.name));
    }
    taken.profiles.push_back(line_profile(f, table));
  }
  return taken;
}

#define SAMPLED_OR_SKIP(taken, expr)                                                            \
  auto taken = (expr);                                                                          \
  if (!taken.ok() && taken.error().kind == ErrorKind::kDevice) {                                \
    EXPECT_NE(taken.error().message.find("CUPTI"), std::string::npos) << taken.error().message; \
    GTEST_SKIP() << taken.error().message;                                                      \
  }                                                                                             \
  ASSERT_TRUE(taken.ok()) << render(taken.error());

void print(const Taken& taken) {
  printf("period 2^%d, %ld samples, %ld dropped, %ld elsewhere\n", taken.run.period_log2, long(taken.run.total),
         long(taken.run.dropped), long(taken.run.elsewhere));
  for (const LineProfile& p : taken.profiles)
    for (const LineSamples* l : hottest_first(p))
      printf("  %s:%d %5.1f%% idle %ld of %ld: %s | %s\n", p.function.c_str(), l->line, 100 * p.share(*l),
             long(l->counts.total_idle()), long(l->counts.total()), describe(l->counts).c_str(),
             line_text(l->line).c_str());
}

struct Prepared {
  Kernel kernel;
  std::vector<Tensor> tensors;
  std::function<Status()> launch;
};

Prepared prepared(const Device& device, const char* name, int64_t n, int tensors) {
  Prepared s;
  s.kernel = *Kernel::from_source(kSource, "k.py", name);
  std::vector<std::optional<Arg>> args;
  for (int i = 0; i < tensors; ++i) s.tensors.push_back(*Tensor::full(device, DType::kF32, Shape{n}, 0.5));
  for (const Tensor& t : s.tensors) args.emplace_back(t);
  args.emplace_back(n), args.emplace_back(int64_t{1024});
  s.launch = [kernel = s.kernel, args, n] { return kernel.launch({(n + 1023) / 1024, 1, 1}, args); };
  return s;
}

TEST(GpuLines, AMemoryBoundKernelWaitsAtItsLoadsAndStores) {
  GPU_OR_SKIP(device);
  Prepared s = prepared(device, "moves_bytes", int64_t{1} << 24, 3);
  SAMPLED_OR_SKIP(taken, sample(device, s.launch, 10));
  print(*taken);
  ASSERT_EQ(taken->profiles.size(), 1u);
  const LineProfile& p = taken->profiles[0];
  EXPECT_EQ(p.function, "moves_bytes");
  EXPECT_GT(p.counts.total(), 1000);
  EXPECT_LT(p.unplaced, p.counts.total() / 20);
  auto hot = hottest_first(p);
  ASSERT_FALSE(hot.empty());
  const std::string line = line_text(hot[0]->line);
  EXPECT_TRUE(line.find("tl.load") != line.npos || line.find("tl.store") != line.npos) << line;
  EXPECT_EQ(p.counts.by_weight()[0], Stall::kLongScoreboard) << "it waits for global memory";
  EXPECT_GT(p.share(*hot[0]), 0.3);
  // Samples are counted once: the counters of idle cycles are a part of the others.
  EXPECT_LE(p.counts.total_idle(), p.counts.total());
  EXPECT_LE(p.counts.total(), taken->run.total);
}

TEST(GpuLines, AComputeBoundKernelIsHotWhereItComputes) {
  GPU_OR_SKIP(device);
  Prepared s = prepared(device, "computes", int64_t{1} << 20, 2);
  SAMPLED_OR_SKIP(taken, sample(device, s.launch, 3));
  print(*taken);
  ASSERT_EQ(taken->profiles.size(), 1u);
  const LineProfile& p = taken->profiles[0];
  auto hot = hottest_first(p);
  ASSERT_FALSE(hot.empty());
  EXPECT_NE(line_text(hot[0]->line).find("0.25 / (a * a + 1.0)"), std::string::npos) << line_text(hot[0]->line);
  EXPECT_GT(p.share(*hot[0]), 0.8);
  EXPECT_NE(p.counts.by_weight()[0], Stall::kLongScoreboard);
}

TEST(GpuLines, AShorterPeriodTakesMoreSamples) {
  GPU_OR_SKIP(device);
  Prepared s = prepared(device, "computes", int64_t{1} << 18, 2);
  SAMPLED_OR_SKIP(rare, sample(device, s.launch, 2, 14));
  SAMPLED_OR_SKIP(often, sample(device, s.launch, 2, 11));
  printf("2^14: %ld, 2^11: %ld\n", long(rare->run.total), long(often->run.total));
  EXPECT_EQ(rare->run.period_log2, 14);
  EXPECT_EQ(often->run.period_log2, 11);
  EXPECT_GT(often->run.total, 4 * rare->run.total);
}

// Two specialisations of one kernel have the same name, and their samples are told apart by their code.
TEST(GpuLines, KernelsOfOneNameAreToldApart) {
  GPU_OR_SKIP(device);
  Prepared s = prepared(device, "moves_bytes", int64_t{1} << 22, 3);
  const int64_t odd = (int64_t{1} << 22) - 1;
  std::vector<std::optional<Arg>> args = {Arg(s.tensors[0]), Arg(s.tensors[1]), Arg(s.tensors[2]), Arg(odd),
                                          Arg(int64_t{512})};
  auto both = [&]() -> Status {
    KILN_CHECK_OK(s.launch());
    return s.kernel.launch({(odd + 511) / 512, 1, 1}, args);
  };
  SAMPLED_OR_SKIP(taken, sample(device, both, 10));
  ASSERT_EQ(taken->run.functions.size(), 2u);
  EXPECT_EQ(taken->run.functions[0].name, taken->run.functions[1].name);
  EXPECT_NE(taken->run.functions[0].code, taken->run.functions[1].code);
  for (const LineProfile& p : taken->profiles) EXPECT_LT(p.unplaced, p.counts.total() / 20);
}

TEST(GpuLines, APeriodThatCannotBeIsRefused) {
  GPU_OR_SKIP(device);
  auto sampler = cupti::PcSampler::attach(device, {4});
  ASSERT_FALSE(sampler.ok());
  EXPECT_EQ(sampler.error().kind, ErrorKind::kValue);
}

// The driver's assembler makes the machine code of PTX that came without a cubin, with its lines.
TEST(GpuLines, PtxThatTheDriverCompilesHasLines) {
  GPU_OR_SKIP(device);
  Prepared s = prepared(device, "moves_bytes", 4096, 3);
  ASSERT_OK(s.launch());
  const auto all = loaded_code(device);
  const auto code = std::find_if(all.rbegin(), all.rend(), [](const auto& c) { return c->name == "moves_bytes"; });
  ASSERT_NE(code, all.rend());
  auto made = device.impl()->backend().assembler()->assemble((*code)->ptx);
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto table = cupti::cubin_lines(made->image, "moves_bytes");
  if (!table.ok() && table.error().kind == ErrorKind::kDevice) GTEST_SKIP() << table.error().message;
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_TRUE(table->has_lines());
  EXPECT_EQ(table->files, std::vector<std::string>{"k.py"});
}

}  // namespace
}  // namespace kiln::runtime
