#include "profiler/compare/sweep.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::profiler {
namespace {

SweepCell cell(std::string variant, double us, double effect = 0, Verdict verdict = Verdict::kUndecided) {
  SweepCell c;
  c.variant = std::move(variant);
  c.us = us;
  c.is_baseline = c.variant == "base";
  if (!c.is_baseline) c.decision.pairs = 12, c.decision.effect = effect, c.decision.verdict = verdict;
  return c;
}

Sweep of_sizes(const std::vector<std::pair<int, double>>& effects) {
  Sweep s;
  s.axes = {"n"};
  for (auto [n, effect] : effects) {
    Verdict v = effect > 0.01 ? Verdict::kFaster : effect < -0.01 ? Verdict::kSlower : Verdict::kSame;
    s.points.push_back({{std::to_string(n)}, {cell("base", n), cell("fused", n * std::exp(-effect), effect, v)}});
  }
  return s;
}

TEST(Sweep, TheCrossingIsNamed) {
  auto found = crossovers(of_sizes({{256, -0.4}, {1024, -0.2}, {4096, 0.2}, {16384, 0.5}}));
  ASSERT_EQ(found.size(), 1u);
  // Half way between 1024 and 4096, on a logarithmic axis.
  EXPECT_EQ(found[0], "fused is slower than base at n = 1024 and faster at 4096, and they cross near 2050");
}

TEST(Sweep, WhatIsTheSameBetweenIsSkipped) {
  auto found = crossovers(of_sizes({{16384, 0.5}, {256, -0.4}, {1024, 0.001}}));  // in any order
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("slower than base at n = 256 and faster at 16384"), std::string::npos) << found[0];
}

TEST(Sweep, NoCrossingIsSaidToo) {
  auto found = crossovers(of_sizes({{256, 0.4}, {1024, 0.001}, {4096, 0.3}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "fused is faster than base at 2 of 3 points, and nowhere slower: no crossing");
  EXPECT_TRUE(crossovers(of_sizes({{256, 0.001}, {1024, 0}})).empty());
}

TEST(Sweep, OtherAxesMakeOtherLines) {
  Sweep s;
  s.axes = {"dtype", "n"};
  for (const char* t : {"bf16", "f32"})
    for (int n : {256, 1024})
      s.points.push_back({{t, std::to_string(n)}, {cell("base", n), cell("fused", n / 2.0, 0.69, Verdict::kFaster)}});
  report::Plot plot = sweep_plot(s);
  EXPECT_EQ(plot.x_label, "dtype");
  EXPECT_EQ(plot.x_names, (std::vector<std::string>{"bf16", "f32"}));
  ASSERT_EQ(plot.lines.size(), 4u);
  EXPECT_EQ(plot.lines[3].name, "fused (n=1024)");
}

TEST(Sweep, RatesWhenBytesAreKnown) {
  Sweep s = of_sizes({{1000, 0.1}, {100000, 0.1}});
  EXPECT_EQ(sweep_plot(s).y_label, "us");
  EXPECT_TRUE(sweep_plot(s).x_log);
  for (SweepPoint& p : s.points)
    for (SweepCell& c : p.cells) c.bytes = 1e6;
  EXPECT_EQ(sweep_plot(s).y_label, "GB/s");
  EXPECT_DOUBLE_EQ(sweep_plot(s).lines[0].points[0].y, 1);
}

TEST(Sweep, VariantsThatMoveOtherBytesAreShownBySpeed) {
  Sweep s = of_sizes({{1000, 0.1}, {100000, -0.1}});
  for (SweepPoint& p : s.points)
    for (SweepCell& c : p.cells) c.bytes = c.is_baseline ? 2e6 : 1e6;
  const report::Plot plot = sweep_plot(s);
  EXPECT_EQ(plot.y_label, "times as fast as base");
  ASSERT_EQ(plot.lines.size(), 2u);
  EXPECT_DOUBLE_EQ(plot.lines[0].points[0].y, 1) << "the baseline";
  EXPECT_NEAR(plot.lines[1].points[0].y, std::exp(0.1), 1e-9);
  EXPECT_NEAR(plot.lines[1].points[1].y, std::exp(-0.1), 1e-9);
}

TEST(Sweep, FailedCellsStandInTheTableOnly) {
  Sweep s = of_sizes({{256, 0.4}, {1024, 0.4}});
  s.points[1].cells[1] = {};
  s.points[1].cells[1].variant = "fused";
  s.points[1].cells[1].problem = "too large for memory";
  std::string text = report::to_text(sweep_table(s));
  EXPECT_NE(text.find("fused at 1024: too large for memory"), std::string::npos) << text;
  EXPECT_EQ(sweep_plot(s).lines[1].points.size(), 1u);
}

}  // namespace
}  // namespace kiln::profiler
