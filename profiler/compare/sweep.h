// Measurements over the values of some axes: the table, the plot, and where two contenders cross.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "profiler/compare/pairs.h"
#include "profiler/report/plot.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

struct SweepCell {
  std::string variant;
  double us = 0, spread = 0;        // us 0: not measured
  double q1_us = NAN, q3_us = NAN;  // quartiles of the samples
  double bytes = -1, flop = -1;     // of one run; negative: not known
  Decision decision;                // against the baseline; no pairs for the baseline itself, or without others
  bool is_baseline = false;
  std::string problem;
};

struct SweepPoint {
  std::vector<std::string> values;  // one per axis
  std::vector<SweepCell> cells;
};

struct Sweep {
  std::vector<std::string> axes;
  std::vector<SweepPoint> points;
  bool interrupted = false;
};

/// A row per point and variant.
report::Table sweep_table(const Sweep& sweep);
/// Over the first axis with more than one value; a line per variant and per values of the other axes. Rates when each
/// cell knows its bytes, else times.
report::Plot sweep_plot(const Sweep& sweep);
/// Sentences: where a variant that beat the baseline begins to lose, or the other way, by verdicts and not by medians
/// alone; or that one is faster everywhere.
std::vector<std::string> crossovers(const Sweep& sweep);

}  // namespace kiln::profiler
