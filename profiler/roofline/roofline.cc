#include "profiler/roofline/roofline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "support/diag.h"

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;

constexpr double kLow = 0.4;     // below this share of its roof something else bounds a kernel
constexpr double kAbove = 1.03;  // above it the roof was not the one that counts

std::string product_name(DType type) { return fmt::format("{} products", name(type)); }

// The math ceiling over a point, with its name; nullptr when it was not measured.
const Ceiling* math_over(const RooflineChart& chart, const RoofPoint& point) {
  // A point of no product is held to f32 math outside of the tensor cores.
  if (!point.product) return chart.vector ? &*chart.vector : nullptr;
  auto found = chart.products.find(*point.product);
  return found == chart.products.end() ? nullptr : &found->second;
}

// Rates in the unit of the chart's axis.
struct RateUnit {
  double per_us;  // operations per microsecond in one of it
  const char* name;
};
RateUnit unit_of(const RooflineChart& chart) {
  double most = chart.vector ? chart.vector->per_us : 0;
  for (const auto& [type, ceiling] : chart.products) most = std::max(most, ceiling.per_us);
  return most >= 1e6 ? RateUnit{1e6, "TFLOP/s"} : RateUnit{1e3, "GFLOP/s"};
}

Cell amount(double value, Source from, const char* what, const char* unit) {
  if (value < 0) return Cell::unknown(fmt::format("not known; give {} or --measured", what));
  std::string text = report::human_bytes(value);
  // Without the B at its end: the same prefixes serve FLOP.
  text.pop_back();
  text += unit;
  text += from == Source::kCounted ? " counted" : from == Source::kDeclared ? " declared" : "";
  return Cell::shown(std::move(text), static_cast<int64_t>(value));
}

}  // namespace

RoofVerdict judge(const RooflineChart& chart, const RoofPoint& point) {
  RoofVerdict v;
  if (!point.problem.empty() || point.us <= 0) {
    v.unknown = point.problem.empty() ? "it was not measured" : point.problem;
    return v;
  }
  if (point.bytes > 0) v.bytes_per_us = point.bytes / point.us;
  if (point.flop > 0) v.flop_per_us = point.flop / point.us;
  if (point.bytes > 0 && point.flop > 0) v.intensity = point.flop / point.bytes;
  const Ceiling* math = math_over(chart, point);
  if (point.bytes < 0 && point.flop < 0) {
    v.unknown = "neither bytes nor FLOP are known: bytes=N and flop=N say them, --measured counts them";
  } else if (!chart.memory) {
    v.unknown = "the ceiling of memory was not measured";
  } else if (point.flop > 0 && !math) {
    v.unknown = point.product ? "the ceiling of " + product_name(*point.product) + " could not be measured"
                              : "the ceiling of f32 math could not be measured";
  } else {
    const Roofline r = roofline(point.us, point.bytes, point.flop, *chart.memory, math);
    v.share = r.share;
    v.bound = r.bound == "memory" ? "memory" : point.product ? product_name(*point.product) : "f32 math";
  }
  return v;
}

report::Table roofline_table(const RooflineChart& chart) {
  const RateUnit rate = unit_of(chart);
  report::Table table({{"what", "", Align::kLeft},
                       {"time", "us"},
                       {"bytes", ""},
                       {"FLOP", ""},
                       {"FLOP/byte", "", Align::kRight, "intensity"},
                       {"rate", "GB/s"},
                       {"math", rate.name},
                       {"roof", "%", Align::kRight, "share"},
                       {"bound by", "", Align::kLeft}});
  for (const RoofPoint& p : chart.points) {
    const RoofVerdict v = judge(chart, p);
    auto figure = [&](double value, int digits) { return value < 0 ? Cell::none() : Cell::of(value, digits); };
    table.add_row({p.name, p.us > 0 ? Cell::of(p.us, p.us < 100 ? 2 : 1) : Cell::none(),
                   amount(p.bytes, p.bytes_from, "bytes=N", "B"), amount(p.flop, p.flop_from, "flop=N", ""),
                   figure(v.intensity, v.intensity < 10 ? 3 : 1), figure(v.bytes_per_us / 1e3, 1),
                   figure(v.flop_per_us / rate.per_us, 3),
                   v.share < 0 ? Cell::unknown(p.name + ": " + v.unknown) : Cell::of(v.share * 100, 1),
                   v.bound.empty()  ? Cell::none()
                   : v.share < kLow ? Cell("neither (" + v.bound + " is next)")
                                    : Cell(v.bound)});
    if (v.share >= 0 && v.share < kLow)
      table.add_note(p.name +
                     ": well under both roofs, so latency, occupancy or a small grid limits it: "
                     "%counters with bundle=stalls shows why its warps stall");
    // No more than the clock and the measured ceiling scatter, else it read less from memory than the model says.
    if (v.share > kAbove && v.bound == "memory")
      table.add_note(p.name + ": above the roof of memory, so part of its bytes came from a cache");
  }
  auto ceiling = [&](const Ceiling& c, double per_us, const char* unit) {
    return fmt::format("{:.4g} {} ({})", c.per_us / per_us, unit, c.what);
  };
  std::vector<std::string> roofs;
  if (chart.memory) roofs.push_back(ceiling(*chart.memory, 1e3, "GB/s"));
  if (chart.l2) roofs.push_back(ceiling(*chart.l2, 1e3, "GB/s"));
  if (chart.vector) roofs.push_back(ceiling(*chart.vector, rate.per_us, rate.name));
  for (const auto& [type, c] : chart.products) roofs.push_back(ceiling(c, rate.per_us, rate.name));
  table.add_note(fmt::format("{} ({}); ceilings measured here: {}", chart.device, chart.hardware,
                             roofs.empty() ? "none" : fmt::format("{}", fmt::join(roofs, ", "))));
  table.add_note(fmt::format("times with caches {}; bytes and FLOP by the model unless they say counted or declared",
                             chart.cache));
  for (const std::string& note : chart.notes) table.add_note(note);
  return table;
}

report::Plot roofline_plot(const RooflineChart& chart) {
  const RateUnit rate = unit_of(chart);
  report::Plot plot;
  plot.title = fmt::format("roofline of {} ({})", chart.device, chart.hardware);
  plot.x_label = "FLOP/byte";
  plot.y_label = rate.name;
  plot.x_log = plot.y_log = true;

  struct Math {
    std::string name;
    double per_us;
  };
  std::vector<Math> math;
  if (chart.vector) math.push_back({"f32 math", chart.vector->per_us});
  for (const auto& [type, c] : chart.products) math.push_back({product_name(type), c.per_us});
  std::vector<Math> memory;
  if (chart.memory) memory.push_back({"memory", chart.memory->per_us});
  if (chart.l2) memory.push_back({"L2", chart.l2->per_us});

  double low = INFINITY, high = 0, most_math = 0, fastest = 0;
  for (const Math& m : memory) fastest = std::max(fastest, m.per_us);
  for (const Math& m : math) most_math = std::max(most_math, m.per_us);
  for (const RoofPoint& p : chart.points) {
    const double x = judge(chart, p).intensity;
    if (x <= 0) continue;
    low = std::min(low, x), high = std::max(high, x);
  }
  if (high == 0 || most_math == 0 || memory.empty()) return plot;
  // Some room to both sides, and every ridge within sight.
  for (const Math& m : math)
    for (const Math& b : memory) low = std::min(low, m.per_us / b.per_us), high = std::max(high, m.per_us / b.per_us);
  low /= 4, high *= 4;
  for (const Math& b : memory) {
    // The slope ends where it meets the highest roof.
    const double end = most_math / b.per_us;
    plot.lines.push_back({fmt::format("{}: {:.4g} GB/s", b.name, b.per_us / 1e3),
                          {{low, low * b.per_us / rate.per_us}, {end, most_math / rate.per_us}},
                          report::PlotForm::kLine});
  }
  for (const Math& m : math)
    plot.lines.push_back({fmt::format("{}: {:.4g} {}", m.name, m.per_us / rate.per_us, rate.name),
                          // A roof begins where the fastest memory meets it.
                          {{m.per_us / fastest, m.per_us / rate.per_us}, {high, m.per_us / rate.per_us}},
                          report::PlotForm::kLine});
  for (const RoofPoint& p : chart.points) {
    const RoofVerdict v = judge(chart, p);
    if (v.intensity <= 0) continue;
    plot.lines.push_back({v.share < 0 ? p.name : fmt::format("{}: {:.0f} % of {}", p.name, v.share * 100, v.bound),
                          {{v.intensity, v.flop_per_us / rate.per_us}},
                          report::PlotForm::kPoints});
  }
  return plot;
}

}  // namespace kiln::profiler
