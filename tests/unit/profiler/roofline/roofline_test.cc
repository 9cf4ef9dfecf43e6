// The roofline as plain data: verdicts, table and plot of points made by hand.
#include "profiler/roofline/roofline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kiln/device.h"
#include "kiln/interrupt.h"
#include "profiler/measure/timer.h"
#include "tests/unit/open_device.h"

namespace kiln::profiler {
namespace {

// 4 TB/s, 60 TFLOP/s of f32, 600 of bf16 products: ridges at 15 and 150 FLOP per byte.
RooflineChart chart_of(std::vector<RoofPoint> points) {
  RooflineChart c;
  c.device = "cuda:0", c.hardware = "made up", c.cache = "cold";
  c.memory = Ceiling{4e6, "copy"};
  c.vector = Ceiling{60e6, "multiply-adds"};
  c.l2 = Ceiling{6e6, "reads"};
  c.products[DType::kBF16] = {600e6, "a product"};
  c.points = std::move(points);
  return c;
}

RoofPoint point(double us, double bytes, double flop) {
  RoofPoint p;
  p.name = "p", p.us = us, p.bytes = bytes, p.flop = flop;
  return p;
}

TEST(Roofline, NamesWhatBoundsAPoint) {
  RoofVerdict v = judge(chart_of({}), point(100, 320e6, 80e6));
  EXPECT_DOUBLE_EQ(v.intensity, 0.25);
  EXPECT_DOUBLE_EQ(v.share, 0.8);
  EXPECT_EQ(v.bound, "memory");
  EXPECT_DOUBLE_EQ(v.bytes_per_us, 3.2e6);

  v = judge(chart_of({}), point(100, 4e6, 3e9));
  EXPECT_EQ(v.bound, "f32 math");
  EXPECT_DOUBLE_EQ(v.share, 0.5);

  RoofPoint product = point(100, 4e6, 30e9);
  product.product = DType::kBF16;
  v = judge(chart_of({}), product);
  EXPECT_EQ(v.bound, "bf16 products");
  EXPECT_DOUBLE_EQ(v.share, 0.5);
}

TEST(Roofline, WithoutTheCeilingOfMemoryAPointHasItsRates) {
  RooflineChart chart = chart_of({point(100, 320e6, 80e6)});
  chart.memory = std::nullopt;
  const RoofVerdict v = judge(chart, chart.points[0]);
  EXPECT_LT(v.share, 0);
  EXPECT_EQ(v.unknown, "the ceiling of memory was not measured");
  EXPECT_DOUBLE_EQ(v.bytes_per_us, 3.2e6);
  const std::string text = report::to_text(roofline_table(chart));
  EXPECT_NE(text.find("3200.0"), std::string::npos) << text;
  EXPECT_NE(text.find("ceilings measured here: 6000 GB/s (reads)"), std::string::npos) << text;
  chart.l2 = std::nullopt;
  EXPECT_TRUE(roofline_plot(chart).lines.empty());
}

TEST(Roofline, WhatIsNotKnownIsNoFigure) {
  RoofVerdict v = judge(chart_of({}), point(100, -1, -1));
  EXPECT_LT(v.share, 0);
  EXPECT_NE(v.unknown.find("bytes=N"), std::string::npos);

  v = judge(chart_of({}), point(100, 200e6, -1));  // bytes alone: the roof of memory alone
  EXPECT_LT(v.intensity, 0);
  EXPECT_DOUBLE_EQ(v.share, 0.5);

  RoofPoint product = point(100, 1e6, 1e9);
  product.product = DType::kF32;
  v = judge(chart_of({}), product);
  EXPECT_LT(v.share, 0) << "the ceiling of another type is no roof";
  EXPECT_NE(v.unknown.find("f32 products"), std::string::npos) << v.unknown;

  RoofPoint failed = point(0, 1, 1);
  failed.problem = "it does not compile";
  EXPECT_EQ(judge(chart_of({}), failed).unknown, "it does not compile");
}

TEST(Roofline, TheTableSaysWhereFiguresComeFrom) {
  RoofPoint counted = point(100, 440e6, 80e6);
  counted.bytes_from = Source::kCounted;
  counted.name = "counted";
  RoofPoint slow = point(1000, 4e6, 1e6);
  slow.name = "slow";
  const std::string text = report::to_text(roofline_table(chart_of({counted, slow})));
  EXPECT_NE(text.find("440 MB counted"), std::string::npos) << text;
  EXPECT_NE(text.find("4.00 MB"), std::string::npos) << text;
  EXPECT_NE(text.find("110.0"), std::string::npos) << text;
  EXPECT_NE(text.find("above the roof of memory"), std::string::npos) << text;
  EXPECT_NE(text.find("neither (memory is next)"), std::string::npos) << text;
  EXPECT_NE(text.find("4000 GB/s (copy)"), std::string::npos) << text;
  EXPECT_NE(text.find("600 TFLOP/s (a product)"), std::string::npos) << text;
}

TEST(Roofline, ThePlotHasRoofsThatMeetAndPointsUnderThem) {
  const RooflineChart chart = chart_of({point(100, 320e6, 80e6), point(100, 5e6, -1)});
  const report::Plot plot = roofline_plot(chart);
  ASSERT_EQ(plot.lines.size(), 5u) << "memory, L2, f32, bf16 and the one point that has an intensity";
  EXPECT_TRUE(plot.x_log && plot.y_log);
  EXPECT_EQ(plot.lines[0].form, report::PlotForm::kLine);
  EXPECT_DOUBLE_EQ(plot.lines[0].points[1].x, 150);  // the ridge of the products
  EXPECT_DOUBLE_EQ(plot.lines[0].points[1].y, 600);  // TFLOP/s
  EXPECT_DOUBLE_EQ(plot.lines[2].points[0].x, 10);   // f32 math from the L2's slope on
  EXPECT_EQ(plot.lines[4].form, report::PlotForm::kPoints);
  EXPECT_DOUBLE_EQ(plot.lines[4].points[0].x, 0.25);
  EXPECT_DOUBLE_EQ(plot.lines[4].points[0].y, 0.8);
  const std::string svg = report::to_svg(plot);
  EXPECT_NE(svg.find("<path class=\"c0\""), std::string::npos);
  EXPECT_NE(svg.find("r=\"5\""), std::string::npos);
  for (report::PlotStyle style : {report::PlotStyle::kPlain, report::PlotStyle::kBraille})
    EXPECT_NE(report::to_terminal(plot, style).find("80 % of memory"), std::string::npos);
  EXPECT_TRUE(roofline_plot(chart_of({})).lines.empty());
  EXPECT_TRUE(report::to_terminal(roofline_plot(chart_of({})), report::PlotStyle::kPlain).empty());
}

// Of a ceiling that no other test measures: what is measured once is not measured again.
TEST(Ceilings, CtrlCEndsTheirMeasurementsAndNothingOfThemIsKept) {
  const Device cpu = *open_device("cpu");
  const auto measured = [&] { return product_ceiling(cpu, DType::kF64); };
  request_interrupt();
  const auto refused = measured();
  clear_interrupt();
  ASSERT_FALSE(refused.ok());
  ASSERT_EQ(refused.error().kind, ErrorKind::kInterrupted) << refused.error().message;

  std::jthread ctrl_c([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    request_interrupt();
  });
  const double start = steady_seconds();
  const auto cut_short = measured();
  const double seconds = steady_seconds() - start;
  ctrl_c.join();
  clear_interrupt();
  if (!cut_short.ok() && cut_short.error().kind != ErrorKind::kInterrupted) GTEST_SKIP() << cut_short.error().message;
  ASSERT_FALSE(cut_short.ok()) << "the library's product takes less than 20 ms in all";
  EXPECT_LT(seconds, 2);

  const auto whole = measured();
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  request_interrupt();
  const auto known = measured();
  clear_interrupt();
  ASSERT_TRUE(known.ok()) << "what is known takes no time";
  EXPECT_EQ(known->per_us, whole->per_us);
}

TEST(Ceilings, TheCpuHasMemoryAndMathAndNoL2) {
  Device cpu = *open_device("cpu");
  auto vector = vector_ceiling(cpu);
  ASSERT_TRUE(vector.ok()) << vector.error().message;
  EXPECT_GT(vector->per_us, 0);
  auto again = vector_ceiling(cpu);
  EXPECT_EQ(again->per_us, vector->per_us) << "measured once";
  auto l2 = l2_ceiling(cpu);
  ASSERT_FALSE(l2.ok());
  EXPECT_EQ(l2.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace kiln::profiler
