// The ticks of axes: round values, texts that differ, never too many.
#include "profiler/report/ticks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace kiln::report {
namespace {

std::string texts(const Ticks& ticks) {
  std::string out;
  for (const Tick& t : ticks.major) out += (out.empty() ? "" : " ") + t.text;
  return ticks.factor.empty() ? out : out + " " + ticks.factor;
}

TEST(Ticks, LinearStepsAreRound) {
  EXPECT_EQ(texts(linear_ticks(0, 10, 6)), "0 2 4 6 8 10");
  EXPECT_EQ(texts(linear_ticks(0, 1, 6)), "0.0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(texts(linear_ticks(0, 9.7, 6)), "0 2 4 6 8");
  EXPECT_EQ(texts(linear_ticks(-1, 1, 5)), "-1.0 -0.5 0.0 0.5 1.0");
  EXPECT_EQ(texts(linear_ticks(0, 10, 5)), "0.0 2.5 5.0 7.5 10.0");
  EXPECT_EQ(texts(linear_ticks(0.97, 1.04, 6)), "0.98 1.00 1.02 1.04");
  EXPECT_EQ(texts(linear_ticks(0, 5000, 6)), "0 1000 2000 3000 4000 5000");
  EXPECT_EQ(texts(linear_ticks(117, 483, 5)), "200 300 400");
}

TEST(Ticks, WholeNumbersHaveNoHalves) {
  EXPECT_EQ(texts(linear_ticks(1, 3, 9, true)), "1 2 3");
  EXPECT_EQ(texts(linear_ticks(0, 10, 4, true)), "0 5 10");
  EXPECT_EQ(texts(linear_ticks(0, 10, 5, true)), "0 5 10");
}

TEST(Ticks, LargeAndSmallOnesHaveAFactor) {
  EXPECT_EQ(texts(linear_ticks(0, 4e6, 5)), "0 1 2 3 4 ×10⁶");
  EXPECT_EQ(texts(linear_ticks(0, 2.5e8, 6)), "0 50 100 150 200 250 ×10⁶");
  EXPECT_EQ(texts(linear_ticks(0, 4e-6, 5)), "0 1 2 3 4 ×10⁻⁶");
  EXPECT_EQ(texts(linear_ticks(-3e9, 0, 4)), "-3 -2 -1 0 ×10⁹");
}

TEST(Ticks, PowersOfTen) {
  EXPECT_EQ(texts(log_ticks(1, 1000, 7)), "1 10 100 1000");
  EXPECT_EQ(texts(log_ticks(1, 100, 7)), "1 2 5 10 20 50 100");
  EXPECT_EQ(texts(log_ticks(3, 80, 5)), "5 10 20 50");
  EXPECT_EQ(texts(log_ticks(0.02, 30, 7)), "0.03 0.1 0.3 1 3 10 30");
  EXPECT_EQ(texts(log_ticks(1, 1e6, 7)), "10⁰ 10¹ 10² 10³ 10⁴ 10⁵ 10⁶");
  EXPECT_EQ(texts(log_ticks(1e-9, 1e9, 7)), "10⁻⁹ 10⁻⁶ 10⁻³ 10⁰ 10³ 10⁶ 10⁹");
  EXPECT_EQ(texts(log_ticks(1e7, 1e8, 5)), "10⁷ 2×10⁷ 5×10⁷ 10⁸");
  EXPECT_EQ(texts(log_ticks(100, 130, 5)), "100 110 120 130") << "less than a decade: linear steps";
  EXPECT_EQ(log_ticks(1, 1000, 7).minor.size(), 24u) << "2…9 of three decades";
}

TEST(Ticks, PowersOfTwo) {
  EXPECT_EQ(texts(binary_ticks(128, 4096, 9)), "128 256 512 1024 2048 4096");
  EXPECT_EQ(texts(binary_ticks(128, 4096, 4)), "256 1024 4096");
  EXPECT_EQ(texts(binary_ticks(4096, 1 << 28, 5)), "2¹² 2¹⁶ 2²⁰ 2²⁴ 2²⁸");
  EXPECT_EQ(texts(binary_ticks(1000, 1100, 3)), "1000 1050 1100") << "fewer than two powers";
}

TEST(Ticks, AnyRangeHasSomeWithinItAndTheirTextsDiffer) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 12), share(0.001, 1);
  for (int i = 0; i < 20000; ++i) {
    const double high = std::pow(10, exponent(random)), low = high * (1 - share(random));
    const int most = 2 + static_cast<int>(random() % 9);
    for (int kind = 0; kind < 3; ++kind) {
      const Ticks t = kind == 0   ? linear_ticks(low, high, most)
                      : kind == 1 ? log_ticks(low, high, most)
                                  : binary_ticks(low, high, most);
      const std::string what = fmt::format("kind {}, {} to {}, {}: {}", kind, low, high, most, texts(t));
      EXPECT_GE(t.major.size(), 1u) << what;
      EXPECT_LE(t.major.size(), static_cast<size_t>(most)) << what;
      std::set<std::string> seen;
      for (const Tick& tick : t.major) {
        EXPECT_TRUE(seen.insert(tick.text).second) << what;
        EXPECT_GE(tick.value, low - 1e-6 * high) << what;
        EXPECT_LE(tick.value, high * (1 + 1e-6)) << what;
      }
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace kiln::report
