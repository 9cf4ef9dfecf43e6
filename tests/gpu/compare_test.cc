// The gate, the clock and a whole contest on a real GPU. Times are not looked at, but for one that is twice another.
#include "profiler/compare/compare.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "profiler/measure/gate.h"
#include "profiler/measure/nvml.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::profiler {
namespace {

using namespace kiln::runtime;

// Spins for a number of cycles, then writes 1.
struct Spinner {
  Device device;
  Tensor out;
  std::shared_ptr<LoadedKernel> kernel;

  Status make(const Device& d) {
    device = d;
    const int64_t shape[] = {1};
    KILN_TRY(out, Tensor::zeros(device, DType::kI32, shape));
    KILN_TRY(kernel, load_ptx(device, "spin", spin_ptx(), 2));
    return {};
  }
  std::function<Status()> spins(uint64_t cycles) const {
    return [*this, cycles] { return launch_ptx(device, *kernel, {1, 1, 1}, {out.address(), cycles}); };
  }
  Contender contender(std::string name, uint64_t cycles) const {
    Contender c;
    c.name = std::move(name);
    c.device = device;
    c.launch = spins(cycles);
    c.output = [t = out]() -> Result<Tensor> { return t; };
    c.poison = [t = out] { return t.fill(85); };
    c.facts.bytes = 4;
    return c;
  }
};

TEST(GateTest, HoldsTheStreamUntilItIsOpened) {
  GPU_OR_SKIP(device);
  auto gate = Gate::make(device, 5000);
  ASSERT_TRUE(gate.ok()) << gate.error().message;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK((*gate)->close());
    auto event = device.record();
    ASSERT_TRUE(event.ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(event->impl()->is_done());
    (*gate)->open();
    ASSERT_OK(event->synchronize());
    EXPECT_FALSE((*gate)->ran_out());
  }
}

TEST(GateTest, EndsByItselfAtTheLimit) {
  GPU_OR_SKIP(device);
  auto gate = Gate::make(device, 20);
  ASSERT_TRUE(gate.ok()) << gate.error().message;
  ASSERT_OK((*gate)->close());
  ASSERT_OK(device.synchronize());  // would wait for ever
  EXPECT_TRUE((*gate)->ran_out());
  (*gate)->open();
  ASSERT_OK((*gate)->close());
  (*gate)->open();
  ASSERT_OK(device.synchronize());
  EXPECT_FALSE((*gate)->ran_out());
}

TEST(GateTest, ReadsTheClock) {
  GPU_OR_SKIP(device);
  auto gate = Gate::make(device);
  ASSERT_TRUE(gate.ok()) << gate.error().message;
  Spinner spinner;
  ASSERT_OK(spinner.make(device));
  ASSERT_OK((*gate)->stamp(Gate::kBefore));
  ASSERT_OK(spinner.spins(2000000)());
  ASSERT_OK((*gate)->stamp(Gate::kAfter));
  ASSERT_OK(device.synchronize());
  EXPECT_GT((*gate)->sm_mhz(), 100);
  EXPECT_LT((*gate)->sm_mhz(), 5000);
}

TEST(TimerTest, SamplesAreHeldAndKnowTheClock) {
  GPU_OR_SKIP(device);
  Spinner spinner;
  ASSERT_OK(spinner.make(device));
  auto timer = Timer::make(device);
  ASSERT_TRUE(timer.ok());
  for (Cache cache : {Cache::kCold, Cache::kHot}) {
    // The CPU takes far longer to launch than the kernel to run.
    auto slow_launch = [&]() -> Status {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return spinner.spins(20000)();
    };
    auto sample = timer->taker({"spin", device, slow_launch}, cache)();
    ASSERT_TRUE(sample.ok()) << sample.error().message;
    EXPECT_TRUE(sample->held);
    EXPECT_GT(sample->us, 0);
    EXPECT_LT(sample->us, 2000);
    EXPECT_GE(sample->call_us, 5000);
    EXPECT_GT(sample->sm_mhz, 100);
  }
}

TEST(TimerTest, ALaunchThatWaitsForTheDeviceDoesNotHang) {
  GPU_OR_SKIP(device);
  Spinner spinner;
  ASSERT_OK(spinner.make(device));
  auto timer = Timer::make(device);
  ASSERT_TRUE(timer.ok());
  auto waits = [&]() -> Status {
    KILN_CHECK_OK(spinner.spins(20000)());
    return device.synchronize();
  };
  auto sample = timer->taker({"waits", device, waits}, Cache::kCold)();
  ASSERT_TRUE(sample.ok()) << sample.error().message;
  EXPECT_FALSE(sample->held);
}

TEST(ContestTest, TwiceTheWorkIsSlower) {
  GPU_OR_SKIP(device);
  Spinner spinner;
  ASSERT_OK(spinner.make(device));
  ContestOptions options;
  options.timeout_s = 20;
  auto contest = run_contest(
      {spinner.contender("one", 100000), spinner.contender("two", 200000), spinner.contender("half", 50000)}, options);
  ASSERT_TRUE(contest.ok()) << contest.error().message;
  EXPECT_EQ(contest->rows[1].decision.verdict, Verdict::kSlower);
  EXPECT_NEAR(contest->rows[1].decision.speedup(), 0.5, 0.1);
  EXPECT_EQ(contest->rows[2].decision.verdict, Verdict::kFaster);
  for (const ContestRow& row : contest->rows) {
    EXPECT_TRUE(row.problem.ok());
    EXPECT_TRUE(row.check.ok());
    EXPECT_GT(row.sm_mhz(), 100);
    EXPECT_GT(row.call_us(), 0);
    EXPECT_FALSE(row.graph_us.empty()) << row.no_graph;
  }
  ASSERT_TRUE(contest->rows[1].decision.cycles_effect.has_value());
  printf("%s", report::to_text(contest_table(*contest)).c_str());
  printf("%s", report::to_text(contest_details(*contest)).c_str());
}

TEST(NvmlTest, KnowsThisGpuOrSaysWhyNot) {
  GPU_OR_SKIP(device);
  auto nvml = Nvml::open(device.info().pci_bus);
  if (!nvml.ok()) {
    EXPECT_EQ(nvml.error().kind, ErrorKind::kDevice);
    GTEST_SKIP() << nvml.error().message;
  }
  EXPECT_GT(*nvml->max_sm_clock(), 100);
  EXPECT_LE(*nvml->sm_clock(), *nvml->max_sm_clock() * 1.1);
  EXPECT_TRUE(nvml->throttle_reasons().ok());
}

}  // namespace
}  // namespace kiln::profiler
