// Lines over an axis, for the terminal and as SVG. Plain data in, text out.
#pragma once
#include <cmath>
#include <string>
#include <vector>

namespace kiln::report {

enum class PlotForm {
  kMarked,  // a line with its points marked
  kLine,    // the line alone
  kPoints,  // the points alone
};

struct PlotPoint {
  double x, y;                   // a y that is no finite number is a gap in the line
  double low = NAN, high = NAN;  // of the samples behind y: an error bar
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;  // in the order of x
  PlotForm form = PlotForm::kMarked;
};

struct Plot {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = false;
  std::vector<std::string> x_names;  // not empty: x counts these from 0, and they are its ticks
  std::vector<PlotLine> lines;
  std::string bars = {};  // what error bars are, for the SVG: "quartiles of the samples"
};

enum class PlotStyle {
  kPlain,    // ASCII, one letter per line
  kBraille,  // dots of 2 × 4 per character
  kColor,    // the same, each line in its colour
};
/// Empty when there is no point at all. No line is wider than `columns`; 0: as the terminal that standard output is.
/// Wide terminals are not filled.
std::string to_terminal(const Plot& plot, PlotStyle style, int columns = 0, int height = 16);
/// A whole SVG document for light and dark pages (prefers-color-scheme). Lines are labelled where they end; nothing
/// overlaps and nothing is cut off, so its height grows with the number of lines.
std::string to_svg(const Plot& plot);

/// Whether values are easier to distinguish on a logarithmic axis: all positive, the largest over 8 times the smallest.
bool wants_log(const std::vector<double>& values);

}  // namespace kiln::report
