#include "runtime/blas/select.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "support/diag.h"

namespace kiln::runtime::blas {
namespace {

TEST(SelectBest, FindsTheFastestThroughNoise) {
  uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> noise(0.99, 1.01);
  for (int fastest : {0, 7, 31}) {
    std::vector<int> calls(32);
    auto s = select_best(
        32,
        [&](int i) -> Result<double> {
          ++calls[static_cast<size_t>(i)];
          return (i == fastest ? 90 : 100.0 + i) * noise(random);
        },
        seed);
    ASSERT_TRUE(s.ok());
    EXPECT_EQ(s->best, fastest);
    EXPECT_NEAR(s->us[static_cast<size_t>(fastest)], 90, 1);
    EXPECT_EQ(calls[static_cast<size_t>(fastest)], 1 + 3 + 9);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), 13), 8) << "finalists";
    EXPECT_EQ(std::count(calls.begin(), calls.end(), 4), 24);
  }
}

TEST(SelectBest, WarmUpDoesNotCountAndOrderIsRandom) {
  std::set<int> first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    int calls = 0;
    auto s = select_best(
        5,
        [&](int i) -> Result<double> {
          if (calls++ == 0) first.insert(i);
          return calls <= 5 ? 1e9 : 10.0 + i;  // the first launch of a kernel loads it
        },
        seed);
    ASSERT_TRUE(s.ok());
    EXPECT_EQ(s->best, 0);
    EXPECT_EQ(s->us[0], 10);
  }
  EXPECT_GT(first.size(), 2u);
}

TEST(SelectBest, WhatFailsIsOut) {
  auto fails = [](int i, int bad) -> Result<double> {
    if (i <= bad) return error(ErrorKind::kUnsupported, "candidate {} does not run", i);
    return 5.0 + i;
  };
  auto s = select_best(
      4, [&](int i) { return fails(i, 1); }, 3);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->best, 2);
  EXPECT_TRUE(std::isnan(s->us[0]) && std::isnan(s->us[1]));
  auto none = select_best(
      3, [&](int i) { return fails(i, 2); }, 3);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message.find("candidate "), 0u);
  int calls = 0;
  auto late = select_best(
      2,
      [&](int i) -> Result<double> {
        if (++calls > 6 && i == 0) return error(ErrorKind::kDevice, "broke later");
        return 1.0 + i / 10.0;
      },
      3);
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->best, 1) << "a candidate that fails once is not trusted";
}

TEST(SelectBest, One) {
  auto s = select_best(
      1, [](int) -> Result<double> { return 2.0; }, 0);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->best, 0);
}

}  // namespace
}  // namespace kiln::runtime::blas
