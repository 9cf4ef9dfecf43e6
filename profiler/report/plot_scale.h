// What both forms of a plot share: which points can be drawn, the ranges of its axes, their ticks.
#pragma once
#include <cmath>
#include <vector>

#include "profiler/report/plot.h"
#include "profiler/report/ticks.h"

namespace kiln::report {

// One axis: values to [0, 1].
struct Scale {
  double low = 0, high = 1;  // logarithms of base 10 on a logarithmic axis
  bool log = false;

  double at(double v) const { return (value(v) - low) / (high - low); }
  double from(double share) const { return inverse(low + share * (high - low)); }
  double value(double v) const { return log ? std::log10(v) : v; }
  double inverse(double v) const { return log ? std::pow(10.0, v) : v; }
};

/// The lines as their axes can show them: a point without a y that can be shown has y NaN, a gap. Error bars that reach
/// 0 on a logarithmic axis end at their point.
std::vector<PlotLine> drawable(const Plot& plot);

/// Whether any line has a point with a finite y.
bool has_points(const std::vector<PlotLine>& lines);

/// Of drawable lines, exactly as far as their points reach (and some way around one single value).
Scale x_scale(const Plot& plot, const std::vector<PlotLine>& lines);
/// The same with error bars. From 0 on a linear axis, unless the values are so near one another that little would be
/// left of their differences.
Scale y_scale(const Plot& plot, const std::vector<PlotLine>& lines);

/// Of numbers, not of names: in powers of two when all points are.
Ticks x_ticks(const Plot& plot, const std::vector<PlotLine>& lines, const Scale& scale, int most);
Ticks y_ticks(const Scale& scale, int most);

}  // namespace kiln::report
