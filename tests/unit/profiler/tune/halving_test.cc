// Successive halving against contenders and clocks that are made up.
#include "profiler/tune/halving.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "support/diag.h"

namespace kiln::profiler {
namespace {

/// Contenders whose samples a function of (contender, which sample of it) gives; the clock moves by each.
struct Field {
  double now = 0;
  std::vector<int> calls;
  std::vector<int> order;  // contenders in the order in which they were sampled
  std::vector<Sampler> samplers;

  Field(int count, const std::function<double(int, int)>& us) : calls(static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i)
      samplers.push_back([this, i, us]() -> Result<double> {
        order.push_back(i);
        double t = us(i, calls[static_cast<size_t>(i)]++);
        now += t * 1e-6;
        return t;
      });
  }
  HalvingOptions options(double budget_s = 1e9) {
    HalvingOptions o;
    o.budget_s = budget_s;
    o.warm_up_s = 0;
    o.now_s = [this] { return now; };
    return o;
  }
};

TEST(Halving, TheFastestOfManyWinsAndTheOthersAreTimedLess) {
  Field f(16, [](int i, int) { return 100.0 + i; });
  HalvingResult r = halve(f.samplers, f.options());
  EXPECT_EQ(r.end, HalvingEnd::kDecided);
  ASSERT_EQ(r.ranking.size(), 16u);
  EXPECT_EQ(r.ranking[0], 0);
  EXPECT_EQ(r.ranking[1], 1);
  EXPECT_EQ(f.calls[15], rung_samples(0));
  EXPECT_EQ(f.calls[0], rung_samples(0) + rung_samples(1) + rung_samples(2) + rung_samples(3));
  EXPECT_EQ(rung_count(16), 4);
  // A rung costs no more than the first.
  EXPECT_LE(f.order.size(), 16u * 4 * 4);
}

TEST(Halving, EachTurnTimesEveryoneInAnotherOrder) {
  Field f(8, [](int i, int) { return 100.0 + i; });
  halve(f.samplers, f.options());
  std::vector<std::vector<int>> turns;
  for (int t = 0; t < rung_samples(0); ++t) {
    std::vector<int> turn(f.order.begin() + 8 * t, f.order.begin() + 8 * (t + 1));
    turns.push_back(turn);
    std::sort(turn.begin(), turn.end());
    EXPECT_EQ(turn, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7})) << t;
  }
  EXPECT_NE(turns[0], turns[1]);
}

TEST(Halving, NoiseDoesNotHideATenthOfTheTime) {
  const auto seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> noise(0, 0.03);
  int right = 0;
  for (int run = 0; run < 50; ++run) {
    Field f(24, [&](int i, int) { return (i == 17 ? 90.0 : 100.0 + i % 7) * noise(random); });
    HalvingOptions o = f.options();
    o.seed = seed + static_cast<uint64_t>(run);
    right += halve(f.samplers, o).ranking[0] == 17;
  }
  EXPECT_GE(right, 48);
}

TEST(Halving, ARungThatNoiseLeavesUnclearIsLonger) {
  // Every other sample of the slower ones is as fast as the best.
  Field f(4, [](int i, int n) { return i == 0 ? 100.0 : n % 2 ? 99.0 : 140.0; });
  halve(f.samplers, f.options());
  EXPECT_EQ(f.calls[0], 4 * (rung_samples(0) + rung_samples(1) + rung_samples(2)));
  Field g(4, [](int i, int) { return 100.0 + i; });
  halve(g.samplers, g.options());
  EXPECT_EQ(g.calls[0], rung_samples(0) + rung_samples(1));
}

TEST(Halving, OneThatIsHopelesslySlowIsTimedOnce) {
  Field f(4, [](int i, int) { return i == 2 ? 1000.0 : 100.0 + i; });
  HalvingResult r = halve(f.samplers, f.options());
  EXPECT_EQ(f.calls[2], 1);
  EXPECT_EQ(r.ranking.back(), 2);
}

TEST(Halving, ALuckyStartDoesNotWin) {
  // The first sample of 5 is twice as fast as it ever is again.
  Field f(8, [](int i, int n) { return i == 5 && n == 0 ? 50.0 : i == 3 ? 95.0 : 100.0; });
  EXPECT_EQ(halve(f.samplers, f.options()).ranking[0], 3);
}

TEST(Halving, TheBudgetIsKeptToWithinOneSample) {
  for (double budget : {0.0, 0.01, 0.35, 2.0, 7.7}) {
    Field f(10, [](int i, int) { return 1e5 + 100.0 * i; });  // a tenth of a second each
    HalvingResult r = halve(f.samplers, f.options(budget));
    EXPECT_LE(f.now, budget + 0.101) << budget;
    EXPECT_GE(r.ranking.size(), 1u);
    // A larger one is shared among the rungs, so that the last ends within it.
    EXPECT_EQ(r.end, budget < 0.5 ? HalvingEnd::kBudget : HalvingEnd::kDecided) << budget;
    for (int i = 0; i < 10; ++i) EXPECT_EQ(r.heats[static_cast<size_t>(i)].us.size(), f.calls[static_cast<size_t>(i)]);
  }
}

TEST(Halving, AMiddlingBudgetStillReachesTheLastRung) {
  Field f(16, [](int i, int) { return 1e4 + 100.0 * i; });
  HalvingResult r = halve(f.samplers, f.options(1.5));  // 64 samples of the first rung alone would take 0.64 s
  EXPECT_LE(f.now, 1.51);
  EXPECT_EQ(r.ranking[0], 0);
  EXPECT_EQ(r.heats[0].rung, 3);
}

TEST(Halving, WarmUpIsNotCounted) {
  Field f(2, [](int, int n) { return n < 5 ? 1000.0 : 10.0; });
  HalvingOptions o = f.options();
  o.warm_up_s = 0.0095;
  HalvingResult r = halve(f.samplers, o);
  for (const Heat& h : r.heats)
    for (double us : h.us) EXPECT_EQ(us, 10.0);
}

TEST(Halving, WarmUpEndsInTheMiddleOfATurn) {
  Field f(50, [](int i, int) { return 1e5 + i; });
  HalvingOptions o = f.options(1.0);
  o.warm_up_s = 0.25;
  HalvingResult r = halve(f.samplers, o);
  EXPECT_LE(f.now, 1.101);
  int counted = 0;
  for (const Heat& h : r.heats) counted += static_cast<int>(h.us.size());
  EXPECT_EQ(static_cast<int>(f.order.size()) - counted, 3);
  // However little time there is, the first has its sample.
  EXPECT_EQ(f.order[3], 0);
  EXPECT_EQ(r.heats[0].us.size(), 1u);
}

TEST(Halving, AFailingContenderLeavesTheOthers) {
  Field f(4, [](int i, int) { return 100.0 + i; });
  int n = 0;
  f.samplers[0] = [&]() -> Result<double> {
    if (++n < 3) return 10.0;
    return error(ErrorKind::kLaunch, "it broke");
  };
  HalvingResult r = halve(f.samplers, f.options());
  EXPECT_EQ(r.heats[0].failure, "it broke");
  EXPECT_EQ(r.ranking[0], 1);
  EXPECT_EQ(r.ranking.size(), 3u);
  for (Sampler& s : f.samplers) s = []() -> Result<double> { return error(ErrorKind::kLaunch, "all broke"); };
  EXPECT_TRUE(halve(f.samplers, f.options()).ranking.empty());
}

TEST(Halving, AnInterruptKeepsWhatIsKnown) {
  for (int after : {0, 1, 5, 9, 40}) {
    Field f(8, [](int i, int) { return 100.0 + i; });
    HalvingOptions o = f.options();
    o.should_stop = [&] { return static_cast<int>(f.order.size()) >= after; };
    HalvingResult r = halve(f.samplers, o);
    EXPECT_EQ(r.end, HalvingEnd::kInterrupted);
    EXPECT_EQ(static_cast<int>(f.order.size()), after);
    if (after >= 9) {
      EXPECT_EQ(r.ranking[0], 0);
    }
    EXPECT_EQ(r.ranking.empty(), after == 0);
  }
  Field f(3, [](int i, int) { return 100.0 + i; });
  f.samplers[1] = []() -> Result<double> { return error(ErrorKind::kInterrupted, "stopped"); };
  EXPECT_EQ(halve(f.samplers, f.options()).end, HalvingEnd::kInterrupted);
}

TEST(Halving, ProgressCountsDownAndNamesTheLeader) {
  Field f(8, [](int i, int) { return 1000.0 + i; });
  HalvingOptions o = f.options();
  std::vector<HalvingProgress> seen;
  o.on_progress = [&](const HalvingProgress& p) { seen.push_back(p); };
  halve(f.samplers, o);
  ASSERT_EQ(seen.size(), f.order.size());
  EXPECT_EQ(seen.front().alive, 8);
  EXPECT_EQ(seen.back().best, 0);
  EXPECT_EQ(seen.back().best_us, 1000.0);
  EXPECT_NEAR(seen.back().left_s, 0, 1e-9);
  EXPECT_GT(seen.front().left_s, seen[seen.size() / 2].left_s);
}

TEST(Halving, NoneAndOne) {
  Field none(0, [](int, int) { return 1.0; });
  EXPECT_TRUE(halve(none.samplers, none.options()).ranking.empty());
  Field one(1, [](int, int) { return 5.0; });
  HalvingResult r = halve(one.samplers, one.options());
  EXPECT_EQ(r.ranking, std::vector<int>{0});
  EXPECT_EQ(r.heats[0].us.size(), static_cast<size_t>(rung_samples(0)));
}

}  // namespace
}  // namespace kiln::profiler
