// Robust statistics of timing samples: plain functions of plain numbers, so every one is tested on constants.
#pragma once
#include <span>
#include <vector>

namespace kiln::profiler {

/// The q-quantile (0 ≤ q ≤ 1), interpolated linearly between order statistics. NaN for no samples.
double quantile(std::span<const double> samples, double q);
double median(std::span<const double> samples);
double mean(std::span<const double> samples);
/// Sample standard deviation (n - 1); 0 for fewer than two samples.
double stddev(std::span<const double> samples);

/// min, quartiles and count of samples, in the samples' unit.
struct Summary {
  int n = 0;
  double min = 0, q1 = 0, median = 0, q3 = 0, max = 0;
  double mean = 0, stddev = 0;

  /// Half the interquartile range over the median: the "± x %" that tables print.
  double spread() const { return median > 0 ? (q3 - q1) / (2 * median) : 0; }
  /// Standard deviation over the mean: what the stopping rule looks at.
  double noise() const { return mean > 0 ? stddev / mean : 0; }
};
Summary summarize(std::span<const double> samples);

/// Ranks (from 1) of the order statistics that enclose the median with at least `confidence`, exactly and for any
/// distribution: the binomial(n, 1/2) tail. {0, 0} when n is too small for that confidence.
struct Ranks {
  int low = 0, high = 0;
};
Ranks median_ranks(int n, double confidence);

struct Interval {
  double low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};
/// The interval of median_ranks; (-inf, inf) when n is too small.
Interval median_interval(std::span<const double> samples, double confidence);

/// Median slope over all pairs, per sample index: drift that a few outliers cannot fake. 0 for fewer than two samples.
double theil_sen_slope(std::span<const double> samples);

/// Correlation of each sample with the one before it. 0 when the samples do not vary.
double lag1_autocorrelation(std::span<const double> samples);

}  // namespace kiln::profiler
