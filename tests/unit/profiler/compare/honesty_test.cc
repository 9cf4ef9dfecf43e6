// The comparison's honesty, without clocks: machines that are made up, with the noise of real ones. What is the same
// must not be called faster, and what differs by 2 % must be found.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "profiler/compare/comparison.h"
#include "profiler/compare/pairs.h"
#include "profiler/measure/timer.h"
#include "support/diag.h"

namespace kiln::profiler {
namespace {

// Times like a GPU's: a narrow body, outliers on one side, and a clock that drifts for all alike.
struct Machine {
  uint64_t seed;
  double noise;     // standard deviation of the body, relative
  double outliers;  // share of samples that take up to half as long again
  double drift;     // of the whole run, relative: thermal, as a slow wave and a slope
  std::mt19937_64 random{seed};
  std::normal_distribution<double> normal{};
  std::uniform_real_distribution<double> uniform{};
  int taken = 0;
  double now = 0;

  SampleTaker takes(double us) {
    return [this, us]() -> Result<Sample> {
      const double at = taken++ / 400.0;
      double t = us * (1 + noise * normal(random)) * (1 + drift * (at + 0.3 * std::sin(9 * at)));
      if (uniform(random) < outliers) t *= 1 + 0.5 * uniform(random);
      now += t * 1e-6;
      return Sample{t};
    };
  }
};

struct Counts {
  int faster = 0, slower = 0, same = 0, undecided = 0;
};

Counts verdicts(int trials, double a_us, double b_us, double noise, double outliers, double drift, uint64_t seed) {
  Counts c;
  for (int i = 0; i < trials; ++i) {
    Machine m{seed + static_cast<uint64_t>(i), noise, outliers, drift};
    const SampleTaker takers[] = {m.takes(b_us), m.takes(a_us)};
    PairOptions options;
    options.seed = seed * 31 + static_cast<uint64_t>(i);
    auto pairs = run_pairs(takers, 0, options, [&] { return m.now; });
    EXPECT_TRUE(pairs.ok());
    switch (pairs->rows[1].decision.verdict) {
      case Verdict::kFaster:
        ++c.faster;
        break;
      case Verdict::kSlower:
        ++c.slower;
        break;
      case Verdict::kSame:
        ++c.same;
        break;
      case Verdict::kUndecided:
        ++c.undecided;
        break;
    }
  }
  return c;
}

uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

constexpr int kTrials = 400;

// Measured over many seeds: 1 to 2 % of the trials are called, so that 5 % of 400 is beyond any luck.
TEST(Honesty, TheSameIsNotCalledFasterOrSlower) {
  const uint64_t seed = fresh_seed();
  for (double noise : {0.002, 0.01, 0.05})
    for (double drift : {0.0, 0.05}) {
      Counts c = verdicts(kTrials, 100, 100, noise, 0.05, drift, seed);
      EXPECT_LE(c.faster + c.slower, kTrials * 5 / 100) << "noise " << noise << " drift " << drift;
    }
}

TEST(Honesty, TheSameIsCalledTheSameWhenNoiseIsLow) {
  const uint64_t seed = fresh_seed();
  for (double drift : {0.0, 0.05}) {
    Counts c = verdicts(kTrials, 100, 100, 0.004, 0.05, drift, seed);
    EXPECT_GE(c.same, kTrials * 95 / 100) << "drift " << drift << ": " << c.undecided << " undecided";
  }
}

TEST(Honesty, TwoPercentAreFound) {
  const uint64_t seed = fresh_seed();
  for (double noise : {0.004, 0.01})
    for (double drift : {0.0, 0.05}) {
      Counts longer = verdicts(kTrials, 102, 100, noise, 0.05, drift, seed);
      EXPECT_GE(longer.slower, kTrials * 95 / 100) << "noise " << noise << " drift " << drift;
      Counts shorter = verdicts(kTrials, 100, 102, noise, 0.05, drift, seed);
      EXPECT_GE(shorter.faster, kTrials * 95 / 100) << "noise " << noise << " drift " << drift;
    }
}

// A clock that happens to be slower whenever one of the two runs: its time is longer, its work is not.
TEST(Pairs, TimesThatCyclesContradictAreNotCalled) {
  double now = 0;
  auto takes = [&](double us, double mhz) -> SampleTaker {
    return [&now, us, mhz, i = 0]() mutable -> Result<Sample> {
      now += us * 1e-6;
      return Sample{.us = us + 0.001 * (i++ % 7), .sm_mhz = mhz};
    };
  };
  const SampleTaker takers[] = {takes(100, 1000), takes(103, 960)};
  auto pairs = run_pairs(takers, 0, {}, [&] { return now; });
  ASSERT_TRUE(pairs.ok());
  const Decision& d = pairs->rows[1].decision;
  EXPECT_TRUE(d.cycles_disagree);
  EXPECT_EQ(d.verdict, Verdict::kUndecided);
  EXPECT_EQ(d.pairs, 200);
  EXPECT_EQ(d.needed, 0);  // more pairs do not help
  ASSERT_TRUE(d.cycles_effect);
  EXPECT_NEAR(*d.cycles_effect, std::log(100.0 * 1000 / (103.0 * 960)), 1e-3);
}

TEST(Pairs, OneFailureLeavesTheOthers) {
  Machine m{fresh_seed(), 0.002, 0, 0};
  int calls = 0;
  const SampleTaker takers[] = {m.takes(100), m.takes(50),
                                [&, good = m.takes(80)]() -> Result<Sample> {
                                  if (++calls > 25) return error(ErrorKind::kLaunch, "the kernel faulted");
                                  return good();
                                },
                                []() -> Result<Sample> { return error(ErrorKind::kMemory, "too large"); }};
  auto pairs = run_pairs(takers, 0, {}, [&] { return m.now; });
  ASSERT_TRUE(pairs.ok());
  EXPECT_EQ(pairs->rows[1].decision.verdict, Verdict::kFaster);
  EXPECT_NEAR(pairs->rows[1].decision.speedup(), 2, 0.02);
  EXPECT_FALSE(pairs->rows[2].problem.ok());
  EXPECT_FALSE(pairs->rows[3].problem.ok());
  EXPECT_EQ(pairs->rows[3].problem.error().kind, ErrorKind::kMemory);
  EXPECT_TRUE(pairs->rows[3].own.empty());
  EXPECT_EQ(pairs->control_first.size(), pairs->rows[1].own.size());
}

TEST(Pairs, AFailureOfTheBaselineIsOne) {
  const SampleTaker takers[] = {[]() -> Result<Sample> { return error(ErrorKind::kLaunch, "no"); },
                                []() -> Result<Sample> { return Sample{1}; }};
  auto pairs = run_pairs(takers, 0, {}, [now = 0.0]() mutable { return now += 0.001; });
  ASSERT_FALSE(pairs.ok());
  EXPECT_EQ(pairs.error().kind, ErrorKind::kLaunch);
}

TEST(Pairs, AnInterruptKeepsWhatIsThere) {
  Machine m{fresh_seed(), 0.05, 0, 0};
  int rounds = 0;
  PairOptions options;
  options.after_round = [&](int, size_t) { ++rounds; };
  options.stop = [&] { return rounds == 15; };
  const SampleTaker takers[] = {m.takes(100), m.takes(101)};
  auto pairs = run_pairs(takers, 0, options, [&] { return m.now; });
  ASSERT_TRUE(pairs.ok());
  EXPECT_TRUE(pairs->interrupted);
  EXPECT_EQ(pairs->rows[1].own.size(), 15u);
  EXPECT_EQ(pairs->rows[1].decision.pairs, 15);
}

TEST(Pairs, UndecidedSaysHowManyItWouldTake) {
  // Spread ±2 %, effect 1 %: undecided at 12, and the estimate is of the right order.
  std::vector<double> ratios;
  for (int i = 0; i < 12; ++i) ratios.push_back(0.01 + (i % 2 ? 0.02 : -0.02) * (1 + i / 12.0));
  Decision d = decide_pairs(ratios, {}, {}, false);
  EXPECT_EQ(d.verdict, Verdict::kUndecided);
  EXPECT_GT(d.needed, 12);
  EXPECT_LT(d.needed, 1000);
}

TEST(Pairs, OrderIsRandomWithinAPair) {
  std::vector<int> order;
  double now = 0;
  auto takes = [&](int who) -> SampleTaker {
    return [&, who]() -> Result<Sample> {
      order.push_back(who);
      now += 1e-4;
      return Sample{100.0 + 5 * static_cast<double>(order.size() % 9)};
    };
  };
  const SampleTaker takers[] = {takes(0), takes(1)};
  PairOptions options;
  options.control = false;
  ASSERT_TRUE(run_pairs(takers, 0, options, [&] { return now; }).ok());
  int first_own = 0, pairs = 0;
  for (size_t i = order.size() - 24; i + 1 < order.size(); i += 2) {
    EXPECT_NE(order[i], order[i + 1]);
    first_own += order[i] == 1;
    ++pairs;
  }
  EXPECT_GT(first_own, 0);
  EXPECT_LT(first_own, pairs);
}

}  // namespace
}  // namespace kiln::profiler
