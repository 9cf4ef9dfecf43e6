// Hardware counters on a real GPU: against what the kernels are known to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kiln/blas.h"
#include "kiln/graph.h"
#include "kiln/kernel.h"
#include "kiln/tensor.h"
#include "profiler/cupti/range_profiler.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using namespace profiler;
using cupti::Collected;
using Shape = std::vector<int64_t>;

constexpr const char* kSource = R"(
import triton
import triton.language as tl

@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)
)";

// A device without permission, or with another profiler, skips and says so: that path has its message tested instead.
#define COLLECTED_OR_SKIP(collected, expr)                                                              \
  auto collected = (expr);                                                                              \
  if (!collected.ok() && collected.error().kind == ErrorKind::kDevice) {                                \
    EXPECT_NE(collected.error().message.find("CUPTI"), std::string::npos) << collected.error().message; \
    GTEST_SKIP() << collected.error().message;                                                          \
  }                                                                                                     \
  ASSERT_TRUE(collected.ok()) << render(collected.error());

std::vector<std::string> names_of(const Device& device, std::string_view bundle_name) {
  auto chip = cupti::chip_of(device);
  EXPECT_TRUE(chip.ok()) << (chip.ok() ? "" : chip.error().message);
  if (!chip.ok()) return {};
  auto found = cupti::resolve(*chip, *cupti::bundle(bundle_name));
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? found->names : std::vector<std::string>{};
}

double value_of(const Collected& c, size_t launch, std::string_view metric) {
  for (size_t i = 0; i < c.metrics.size(); ++i)
    if (c.metrics[i] == metric) return c.launches[launch].values[i];
  ADD_FAILURE() << "no metric " << metric;
  return NAN;
}

void print(const Collected& c) {
  printf("%s: %d passes, %zu launches, %ld dropped, setup %.3f s, run %.3f s\n", c.chip.c_str(), c.passes,
         c.launches.size(), long(c.dropped), c.setup_s, c.run_s);
  for (const KernelCounters& k : c.launches) {
    printf("  %s:", k.kernel.c_str());
    for (size_t i = 0; i < k.values.size(); ++i) printf(" %s=%.6g", c.metrics[i].c_str(), k.values[i]);
    printf("\n");
  }
}

TEST(GpuCounters, AnElementWiseKernelMovesItsBytes) {
  GPU_OR_SKIP(device);
  constexpr int64_t n = int64_t{1} << 26;
  Kernel kernel = *Kernel::from_source(kSource, "counters.py", "scale");
  Tensor x = *Tensor::full(device, DType::kF32, Shape{n}, 2), y = *Tensor::zeros(device, DType::kF32, Shape{n});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(y), Arg(n), Arg(int64_t{1024})};
  auto run = [&] { return kernel.launch({n / 1024, 1, 1}, args); };
  ASSERT_OK(run());
  const std::vector<std::string> metrics = names_of(device, "default");
  COLLECTED_OR_SKIP(c, cupti::collect(device, metrics, {}, run));
  print(*c);
  EXPECT_EQ(c->passes, 1);
  EXPECT_EQ(c->dropped, 0);
  ASSERT_EQ(c->launches.size(), 1u);
  EXPECT_EQ(c->launches[0].kernel, "scale");
  const double bytes = 4.0 * n, us = value_of(*c, 0, "gpu__time_duration.sum") / 1e3;
  EXPECT_NEAR(value_of(*c, 0, "dram__bytes_read.sum") / bytes, 1, 0.05);
  // The end of what was written still lies in the L2.
  EXPECT_NEAR(value_of(*c, 0, "dram__bytes_write.sum") / bytes, 0.95, 0.15);
  EXPECT_GT(us, bytes * 2 / 20e6) << "faster than 20 TB/s";
  EXPECT_LT(us, bytes * 2 / 0.1e6) << "slower than 0.1 TB/s";
  const double occupancy = value_of(*c, 0, "sm__warps_active.avg.pct_of_peak_sustained_active");
  EXPECT_GT(occupancy, 30);
  EXPECT_LE(occupancy, 100.001);
  EXPECT_EQ(value_of(*c, 0, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"), 0);
  EXPECT_LT(value_of(*c, 0, "l1tex__t_sector_hit_rate.pct"), 5) << "every sector is read once";
}

TEST(GpuCounters, ReplayLeavesMemoryAsOneRunWould) {
  GPU_OR_SKIP(device);
  constexpr int64_t n = 1 << 20;
  Kernel kernel = *Kernel::from_source(kSource, "counters.py", "add_one");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{n});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(n), Arg(int64_t{1024})};
  auto run = [&]() -> Status {
    for (int i = 0; i < 3; ++i) KILN_CHECK_OK(kernel.launch({n / 1024, 1, 1}, args));
    return {};
  };
  ASSERT_OK(run());
  const std::vector<std::string> metrics = names_of(device, "memory");
  COLLECTED_OR_SKIP(c, cupti::collect(device, metrics, {}, run));
  print(*c);
  EXPECT_GT(c->passes, 1);
  ASSERT_EQ(c->launches.size(), 3u);
  for (const KernelCounters& k : c->launches) EXPECT_EQ(k.kernel, "add_one");
  EXPECT_EQ(x.to_doubles()->at(0), 6);
  EXPECT_EQ(x.to_doubles()->at(n - 1), 6);
  // 16 bytes a lane, side by side.
  EXPECT_DOUBLE_EQ(value_of(*c, 1, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"), 16);
}

TEST(GpuCounters, LaunchesBeyondTheRoomAreTold) {
  GPU_OR_SKIP(device);
  constexpr int64_t n = 4096;
  Kernel kernel = *Kernel::from_source(kSource, "counters.py", "add_one");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{n});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(n), Arg(int64_t{1024})};
  auto run = [&]() -> Status {
    for (int i = 0; i < 10; ++i) KILN_CHECK_OK(kernel.launch({n / 1024, 1, 1}, args));
    return {};
  };
  ASSERT_OK(run());
  const std::string metrics[] = {"gpu__time_duration.sum"};
  COLLECTED_OR_SKIP(c, cupti::collect(device, metrics, {.max_launches = 4}, run));
  print(*c);
  EXPECT_EQ(c->launches.size(), 4u);
  EXPECT_EQ(c->dropped, 6);
  COLLECTED_OR_SKIP(none, cupti::collect(device, metrics, {}, []() -> Status { return {}; }));
  EXPECT_TRUE(none->launches.empty());
  auto failed = cupti::collect(device, metrics, {}, []() -> Status { return error(ErrorKind::kValue, "no"); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no");
  COLLECTED_OR_SKIP(again, cupti::collect(device, metrics, {}, run));
  EXPECT_EQ(again->launches.size(), 10u) << "a failure in between leaves nothing behind";
}

TEST(GpuCounters, LibrariesAreCountedToo) {
  GPU_OR_SKIP(device);
  constexpr int64_t n = 1024;
  Tensor a = *Tensor::full(device, DType::kBF16, Shape{n, n}, 1),
         b = *Tensor::full(device, DType::kBF16, Shape{n, n}, 1),
         out = *Tensor::zeros(device, DType::kBF16, Shape{n, n});
  Kernel kernel = *Kernel::from_source(kSource, "counters.py", "add_one");
  std::vector<std::optional<Arg>> args = {Arg(out), Arg(n * n), Arg(int64_t{1024})};
  auto work = [&]() -> Status {
    MatmulOptions options;
    options.out = out;
    auto done = matmul(a, b, options);
    if (!done.ok()) return std::move(done.error());
    return kernel.launch({n, 1, 1}, args);
  };
  ASSERT_OK(work());
  const std::string metrics[] = {"gpu__time_duration.sum", "sm__inst_executed_pipe_tensor.sum"};
  COLLECTED_OR_SKIP(c, cupti::collect(device, metrics, {}, work));
  print(*c);
  ASSERT_GE(c->launches.size(), 2u);
  EXPECT_GT(c->launches[0].values[1], 0) << "the product is on tensor cores";
  EXPECT_EQ(c->launches.back().kernel, "add_one");
  EXPECT_EQ(c->launches.back().values[1], 0);
}

// Under kernel replay a graph's kernels would be skipped, or fault.
TEST(GpuCounters, AGraphIsRefusedBeforeItIsLaunched) {
  GPU_OR_SKIP(device);
  constexpr int64_t n = 4096;
  Kernel kernel = *Kernel::from_source(kSource, "counters.py", "add_one");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{n});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(n), Arg(int64_t{1024})};
  auto work = [&] { return kernel.launch({n / 1024, 1, 1}, args); };
  ASSERT_OK(work());
  auto graph = Graph::capture(device, work);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::string metrics[] = {"gpu__time_duration.sum"};
  auto c = cupti::collect(device, metrics, {}, [&] { return graph->launch(); });
  ASSERT_FALSE(c.ok());
  if (c.error().kind == ErrorKind::kDevice) GTEST_SKIP() << c.error().message;
  EXPECT_EQ(c.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(c.error().message.find("graph"), std::string::npos);
  ASSERT_OK(graph->launch());
  EXPECT_EQ(x.to_doubles()->at(0), 2) << "afterwards graphs run as ever";
}

TEST(GpuCounters, NothingStaysAttached) {
  GPU_OR_SKIP(device);
  constexpr int64_t n = 4096;
  Kernel kernel = *Kernel::from_source(kSource, "counters.py", "add_one");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{n});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(n), Arg(int64_t{1024})};
  auto run = [&] { return kernel.launch({n / 1024, 1, 1}, args); };
  auto cost_us = [&] {
    using Clock = std::chrono::steady_clock;
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      const auto begin = Clock::now();
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(run().ok());
      best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 100);
      EXPECT_TRUE(device.synchronize().ok());
    }
    return best;
  };
  ASSERT_OK(run());
  const double before = cost_us();
  const std::string metrics[] = {"gpu__time_duration.sum"};
  COLLECTED_OR_SKIP(c, cupti::collect(device, metrics, {}, run));
  const double after = cost_us();
  printf("CPU time of a launch: %.2f us before, %.2f us after\n", before, after);
  EXPECT_LT(after, 2 * before + 2);
}

}  // namespace
}  // namespace kiln::runtime
