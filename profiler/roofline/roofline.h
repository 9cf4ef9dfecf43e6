// The roofline: what was reached against what this device can do at most, by arithmetic intensity. Plain data in, a
// table and a plot out.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/dtype.h"
#include "profiler/report/plot.h"
#include "profiler/report/table.h"
#include "profiler/roofline/ceilings.h"

namespace kiln::profiler {

/// Where a figure comes from.
enum class Source { kModel, kDeclared, kCounted };

struct RoofPoint {
  std::string name;
  double us = 0;                 // the median of one run
  double bytes = -1, flop = -1;  // of one run; negative: not known
  Source bytes_from = Source::kModel, flop_from = Source::kModel;
  std::optional<DType> product = {};  // operands of its matrix products: which math ceiling counts
  std::string problem = {};           // why there is no point: it was not measured
};

struct RooflineChart {
  std::string device, hardware, cache;        // "cuda:0", "NVIDIA H200", "cold"
  std::optional<Ceiling> memory, l2, vector;  // nullopt: not measured
  std::map<DType, Ceiling> products;          // by the operands' type
  std::vector<RoofPoint> points;
  std::vector<std::string> notes;
};

/// What bounds a point, and how much of the roof over it was reached.
struct RoofVerdict {
  double intensity = -1;  // FLOP per byte; negative: not known
  double flop_per_us = -1, bytes_per_us = -1;
  double share = -1;    // of the roof at that intensity, 0 to 1 and above; negative: not known
  std::string bound;    // "memory", "f32 math", "bf16 products"
  std::string unknown;  // why there is no share
};
RoofVerdict judge(const RooflineChart& chart, const RoofPoint& point);

report::Table roofline_table(const RooflineChart& chart);
/// Both axes logarithmic: FLOP per byte against FLOP per second. Points without an intensity are not in it; empty lines
/// when there is none.
report::Plot roofline_plot(const RooflineChart& chart);

}  // namespace kiln::profiler
