// The measuring logic against samplers and clocks that are made up, so every rule is exact and needs no device.
#include "profiler/measure/measure.h"
#include "profiler/compare/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kiln/interrupt.h"
#include "profiler/measure/timer.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln::profiler {
namespace {

// A clock that moves by what each sample reports.
struct FakeMachine {
  double now = 0;
  int calls = 0;
  Sampler sampler(std::function<double(int)> us) {
    return [this, us = std::move(us)]() -> Result<double> {
      double t = us(calls++);
      now += t * 1e-6;
      return t;
    };
  }
  std::function<double()> clock() {
    return [this] { return now; };
  }
};

TEST(Measure, ConstantTimeStopsAtTheMinimum) {
  FakeMachine m;
  auto r = measure_samples(m.sampler([](int) { return 1e5; }), {}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->us.n, 10);  // min_samples; half a second was over after five
  EXPECT_EQ(r->us.median, 1e5);
  EXPECT_EQ(r->flags, 0u);
  EXPECT_EQ(r->discarded, 0);
}

TEST(Measure, WarmUpIsNotInTheSamples) {
  FakeMachine m;
  auto r =
      measure_samples(m.sampler([](int i) { return i < 12 ? 9e5 - 5e4 * i : 1e5; }), {.timeout_s = 300}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->us.max, 1e5);
  EXPECT_EQ(r->flags, 0u);
}

TEST(Measure, NoisyTimeEndsByTheTimeoutAndSaysSo) {
  FakeMachine m;
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> d(5e4, 15e4);
  auto r = measure_samples(m.sampler([&](int) { return d(rng); }), {.timeout_s = 5}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->flags & kNoisy);
  EXPECT_TRUE(r->flags & kNotSettled);
  EXPECT_LE(m.now, 5.2);
  EXPECT_GE(r->us.n, 3);
}

TEST(Measure, MeasuresLongEnough) {
  FakeMachine m;
  auto r = measure_samples(m.sampler([](int) { return 1000.0; }), {}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->us.n, 500);  // 0.5 s in samples of 1 ms
}

TEST(Measure, DriftIsFlagged) {
  FakeMachine m;
  int measured = 0;
  auto r = measure_samples(m.sampler([&](int i) { return i < 20 ? 1e4 : 1e4 + 20.0 * measured++; }), {.timeout_s = 2},
                           m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->flags & kDrift);
  EXPECT_TRUE(r->flags & kAutocorrelated);
  EXPECT_NE(flag_names(r->flags).find("drift"), std::string::npos);
}

TEST(Measure, SamplesWithoutATimeAreDiscardedAndCounted) {
  FakeMachine m;
  auto r = measure_samples(m.sampler([](int i) { return i > 30 && i % 4 == 0 ? 0.0 : 1e5; }), {.min_samples = 30},
                           m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_GT(r->discarded, 0);
  EXPECT_EQ(r->us.min, 1e5);
}

TEST(Measure, AnErrorOfTheSampleIsReturned) {
  FakeMachine m;
  int calls = 0;
  Sampler failing = [&]() -> Result<double> {
    if (++calls > 7) return error(ErrorKind::kLaunch, "the kernel faulted");
    m.now += 0.1;
    return 1e5;
  };
  auto r = measure_samples(failing, {}, m.clock());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().kind, ErrorKind::kLaunch);
}

TEST(Measure, AnInterruptKeepsWhatWasTaken) {
  for (const int taken : {1, 2, 4, 100}) {
    FakeMachine m;
    int calls = 0;
    Sampler stopped = [&]() -> Result<double> {
      if (++calls > taken) return error(ErrorKind::kInterrupted, "interrupted");
      m.now += 0.1;
      return 1e5;
    };
    auto r = measure_samples(stopped, {.min_total_s = 1000, .timeout_s = 1000}, m.clock());
    ASSERT_TRUE(r.ok()) << taken;
    EXPECT_TRUE(r->flags & kStopped);
    EXPECT_EQ((r->flags & kFewSamples) != 0, taken < 3) << taken;
    EXPECT_EQ(r->us.median, 1e5);
    EXPECT_GT(r->us.n, 0);
  }
  FakeMachine m;
  auto none =
      measure_samples([]() -> Result<double> { return error(ErrorKind::kInterrupted, "interrupted"); }, {}, m.clock());
  EXPECT_EQ(none.error().kind, ErrorKind::kInterrupted);
}

TEST(Timer, IsNotWaitedForWithCtrlC) {
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  request_interrupt();
  auto timer = Timer::make(*device);
  clear_interrupt();
  ASSERT_FALSE(timer.ok());
  EXPECT_EQ(timer.error().kind, ErrorKind::kInterrupted);
}

TEST(Compare, AFasterKernelIsFoundAndItsRatioIsRight) {
  FakeMachine m;
  std::mt19937_64 rng(3);
  std::normal_distribution<double> noise(1, 0.002);
  auto r = compare_samples(m.sampler([&](int) { return 100 * noise(rng); }),
                           m.sampler([&](int) { return 125 * noise(rng); }), {}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->verdict, Verdict::kFaster);
  EXPECT_NEAR(r->speedup, 1.25, 0.01);
  EXPECT_TRUE(r->speedup_95.contains(1.25));
  EXPECT_EQ(r->pairs, 12);  // decided at the first look
}

TEST(Compare, EqualKernelsAreTheSame) {
  FakeMachine m;
  std::mt19937_64 rng(4);
  std::normal_distribution<double> noise(1, 0.001);
  Sampler s = m.sampler([&](int) { return 100 * noise(rng); });
  auto r = compare_samples(s, s, {}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->verdict, Verdict::kSame);
  EXPECT_LT(r->floor, 0.005);
}

TEST(Compare, ASmallEffectUnderMuchNoiseIsNotCalled) {
  FakeMachine m;
  std::mt19937_64 rng(5);
  std::uniform_real_distribution<double> noise(0.5, 2);
  auto r = compare_samples(m.sampler([&](int) { return 100 * noise(rng); }),
                           m.sampler([&](int) { return 101 * noise(rng); }), {}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->verdict, Verdict::kUndecided);
  EXPECT_EQ(r->pairs, 200);
}

TEST(Compare, AnEffectBelowTheFloorIsNotCalled) {
  const std::vector<double> ratios(30, 0.02);
  EXPECT_EQ(decide(ratios, 0.95, 0), Verdict::kFaster);
  EXPECT_EQ(decide(ratios, 0.95, 0.03), Verdict::kUndecided);
  const std::vector<double> slower(30, -0.02);
  EXPECT_EQ(decide(slower, 0.95, 0), Verdict::kSlower);
  const std::vector<double> tiny(30, 0.003);
  EXPECT_EQ(decide(tiny, 0.95, 0), Verdict::kSame);
}

TEST(Compare, StopsAtTheTimeout) {
  FakeMachine m;
  std::mt19937_64 rng(6);
  std::uniform_real_distribution<double> noise(0.5, 2);
  Sampler s = m.sampler([&](int) { return 1e6 * noise(rng); });
  auto r = compare_samples(s, s, {.timeout_s = 20}, m.clock());
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(r->timed_out);
  EXPECT_GE(r->pairs, 6);
}

}  // namespace
}  // namespace kiln::profiler
