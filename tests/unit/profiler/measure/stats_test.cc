#include "profiler/measure/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace kiln::profiler {
namespace {

uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(Stats, QuantilesOfKnownSamples) {
  const std::vector<double> v = {4, 1, 3, 2, 5};
  EXPECT_EQ(median(v), 3);
  EXPECT_EQ(quantile(v, 0), 1);
  EXPECT_EQ(quantile(v, 1), 5);
  EXPECT_EQ(quantile(v, 0.25), 2);
  EXPECT_DOUBLE_EQ(quantile(v, 0.1), 1.4);
  const std::vector<double> even = {1, 2, 3, 10};
  EXPECT_EQ(median(even), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Stats, ConstantSamples) {
  const std::vector<double> v(17, 42.0);
  Summary s = summarize(v);
  EXPECT_EQ(s.n, 17);
  EXPECT_EQ(s.min, 42);
  EXPECT_EQ(s.q1, 42);
  EXPECT_EQ(s.median, 42);
  EXPECT_EQ(s.q3, 42);
  EXPECT_EQ(s.stddev, 0);
  EXPECT_EQ(s.spread(), 0);
  EXPECT_EQ(theil_sen_slope(v), 0);
  EXPECT_EQ(lag1_autocorrelation(v), 0);
}

TEST(Stats, SpreadAndDeviation) {
  const std::vector<double> v = {90, 95, 100, 105, 110};
  Summary s = summarize(v);
  EXPECT_DOUBLE_EQ(s.spread(), 0.05);
  EXPECT_NEAR(stddev(v), 7.90569415, 1e-8);
}

TEST(Stats, RanksAreThoseOfTheProtocol) {
  const struct {
    int n, low, high;
  } kTable[] = {{12, 3, 10}, {20, 6, 15}, {30, 10, 21}, {50, 18, 33}, {100, 40, 61}, {200, 86, 115}};
  for (auto [n, low, high] : kTable) {
    Ranks r = median_ranks(n, 0.95);
    EXPECT_EQ(r.low, low) << n;
    EXPECT_EQ(r.high, high) << n;
  }
  EXPECT_EQ(median_ranks(5, 0.95).low, 0);  // 1 - 2/2^5 is below 95 %
  EXPECT_EQ(median_ranks(6, 0.95).low, 1);
  EXPECT_LT(median_ranks(50, 0.99).low, 18);
}

TEST(Stats, IntervalCoversTheMedianAsOftenAsItSays) {
  std::mt19937_64 rng(fresh_seed());
  std::exponential_distribution<double> skewed(1);
  int covered = 0;
  constexpr int kTrials = 4000, kN = 30;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> v(kN);
    for (double& x : v) x = skewed(rng);
    covered += median_interval(v, 0.95).contains(std::log(2.0));
  }
  // Exact coverage for n = 30 is 95.7 %; five standard errors of 4000 trials are 1.6 %.
  EXPECT_GT(covered, 0.941 * kTrials);
  EXPECT_LT(covered, 0.974 * kTrials);
}

TEST(Stats, IntervalOfTooFewSamplesIsUnbounded) {
  const std::vector<double> v = {1, 2, 3};
  EXPECT_TRUE(std::isinf(median_interval(v, 0.95).low));
  EXPECT_TRUE(std::isinf(median_interval(v, 0.95).high));
}

TEST(Stats, SlopeIgnoresOutliers) {
  std::mt19937_64 rng(fresh_seed());
  std::uniform_real_distribution<double> noise(-0.01, 0.01);
  std::vector<double> v;
  for (int i = 0; i < 101; ++i) v.push_back(100 + 0.25 * i + noise(rng));
  v[20] = 1e6, v[21] = 1e6, v[77] = -1e6;
  EXPECT_NEAR(theil_sen_slope(v), 0.25, 0.01);
}

TEST(Stats, AutocorrelationSeesAlternationAndPersistence) {
  std::vector<double> alternating, steps;
  for (int i = 0; i < 100; ++i) {
    alternating.push_back(i % 2 ? 1 : -1);
    steps.push_back(i < 50 ? 0 : 1);
  }
  EXPECT_LT(lag1_autocorrelation(alternating), -0.95);
  EXPECT_GT(lag1_autocorrelation(steps), 0.9);
  std::mt19937_64 rng(fresh_seed());
  std::normal_distribution<double> normal;
  std::vector<double> independent(4000);
  for (double& x : independent) x = normal(rng);
  EXPECT_LT(std::abs(lag1_autocorrelation(independent)), 0.1);
}

}  // namespace
}  // namespace kiln::profiler
