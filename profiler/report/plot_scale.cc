#include "profiler/report/plot_scale.h"

#include <algorithm>

namespace kiln::report {

namespace {

// An axis from 0 is honest about ratios; one on which all lies within its upper third shows little else.
constexpr double kFromZeroBelow = 0.65;

template <class Fn>
void each_point(const std::vector<PlotLine>& lines, Fn fn) {
  for (const PlotLine& l : lines)
    for (const PlotPoint& p : l.points)
      if (std::isfinite(p.y)) fn(p);
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double v) {
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
};

Scale scale_of(Range r, bool log) {
  if (r.high < r.low) r = log ? Range{1, 10} : Range{0, 1};
  if (log) r = {std::log10(r.low), std::log10(r.high)};
  // One value, or values that differ by rounding only.
  if (r.high - r.low <= 1e-9 * std::max(std::abs(r.low), std::abs(r.high))) {
    // Some room, so that the value lies in the middle of the axis.
    const double room = log ? 0.5 : r.low == 0 ? 1 : std::abs(r.low) / 2;
    r = {r.low - room, r.high + room};
  }
  return {r.low, r.high, log};
}

bool is_power_of_two(double v) {
  int exponent = 0;
  // frexp gives powers of two the mantissa 0.5.
  return v >= 1 && std::frexp(v, &exponent) == 0.5;
}

}  // namespace

bool wants_log(const std::vector<double>& values) {
  if (values.empty()) return false;
  // A factor of eight is three powers of two: sizes that double are read off a logarithmic axis.
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low > 0 && *high > 8 * *low;
}

std::vector<PlotLine> drawable(const Plot& plot) {
  std::vector<PlotLine> lines;
  for (const PlotLine& l : plot.lines) {
    PlotLine kept{l.name, {}, l.form};
    for (PlotPoint p : l.points) {
      if (!std::isfinite(p.x) || (plot.x_log && p.x <= 0)) continue;
      if (!std::isfinite(p.y) || (plot.y_log && p.y <= 0)) p.y = p.low = p.high = NAN;
      if (!std::isfinite(p.low) || !std::isfinite(p.high)) p.low = p.high = NAN;
      // A bar that reaches 0 or less ends at its point: it has no logarithm.
      if (plot.y_log && p.low <= 0) p.low = p.y;
      kept.points.push_back(p);
    }
    lines.push_back(std::move(kept));
  }
  return lines;
}

bool has_points(const std::vector<PlotLine>& lines) {
  bool any = false;
  each_point(lines, [&](const PlotPoint&) { any = true; });
  return any;
}

Scale x_scale(const Plot& plot, const std::vector<PlotLine>& lines) {
  Range r;
  each_point(lines, [&](const PlotPoint& p) { r.add(p.x); });
  return scale_of(r, plot.x_log);
}

Scale y_scale(const Plot& plot, const std::vector<PlotLine>& lines) {
  Range r;
  each_point(lines, [&](const PlotPoint& p) { r.add(p.y), r.add(p.low), r.add(p.high); });
  // A single value from 0, too: alone it would fill the axis.
  if (!plot.y_log && r.low > 0 && (r.low == r.high || r.low < kFromZeroBelow * r.high)) r.low = 0;
  return scale_of(r, plot.y_log);
}

Ticks x_ticks(const Plot& plot, const std::vector<PlotLine>& lines, const Scale& scale, int most) {
  bool binary = has_points(lines), whole = true;
  each_point(lines, [&](const PlotPoint& p) {
    binary = binary && is_power_of_two(p.x);
    whole = whole && p.x == std::floor(p.x);
  });
  const double low = scale.inverse(scale.low), high = scale.inverse(scale.high);
  if (plot.x_log) return binary ? binary_ticks(low, high, most) : log_ticks(low, high, most);
  return linear_ticks(low, high, most, whole);
}

Ticks y_ticks(const Scale& scale, int most) {
  const double low = scale.inverse(scale.low), high = scale.inverse(scale.high);
  return scale.log ? log_ticks(low, high, most) : linear_ticks(low, high, most);
}

}  // namespace kiln::report
