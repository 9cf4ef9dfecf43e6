#include "profiler/measure/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::profiler {

namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> v(samples.begin(), samples.end());
  std::sort(v.begin(), v.end());
  return v;
}

// Linear interpolation between order statistics, as numpy's default.
double quantile_of_sorted(const std::vector<double>& v, double q) {
  if (v.empty()) return std::numeric_limits<double>::quiet_NaN();
  double at = q * static_cast<double>(v.size() - 1);
  size_t below = static_cast<size_t>(at);
  if (below + 1 >= v.size()) return v.back();
  double part = at - static_cast<double>(below);
  return v[below] + part * (v[below + 1] - v[below]);
}

}  // namespace

double quantile(std::span<const double> samples, double q) { return quantile_of_sorted(sorted(samples), q); }

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

double mean(std::span<const double> samples) {
  if (samples.empty()) return 0;
  double sum = 0;
  for (double s : samples) sum += s;
  return sum / static_cast<double>(samples.size());
}

double stddev(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  double m = mean(samples), sum = 0;
  for (double s : samples) sum += (s - m) * (s - m);
  // Bessel's correction: these are samples, not all there is.
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

Summary summarize(std::span<const double> samples) {
  Summary s;
  s.n = static_cast<int>(samples.size());
  if (samples.empty()) return s;
  std::vector<double> v = sorted(samples);
  s.min = v.front();
  s.q1 = quantile_of_sorted(v, 0.25);
  s.median = quantile_of_sorted(v, 0.5);
  s.q3 = quantile_of_sorted(v, 0.75);
  s.max = v.back();
  s.mean = mean(samples);
  s.stddev = stddev(samples);
  return s;
}

Ranks median_ranks(int n, double confidence) {
  // P(median outside (x_k, x_{n+1-k})) = 2 P(Binomial(n, 1/2) ≤ k - 1); the largest k that keeps it small enough.
  double tail = 0, allowed = (1 - confidence) / 2;
  int k = 0;
  for (int i = 0; i < n; ++i) {
    // Through logarithms: the binomial coefficients of a few hundred samples overflow a double's factorials.
    tail += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) - n * std::log(2.0));
    if (tail > allowed) break;
    k = i + 1;
  }
  return k == 0 ? Ranks{} : Ranks{k, n + 1 - k};
}

Interval median_interval(std::span<const double> samples, double confidence) {
  Ranks r = median_ranks(static_cast<int>(samples.size()), confidence);
  if (r.low == 0) return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  std::vector<double> v = sorted(samples);
  return {v[static_cast<size_t>(r.low - 1)], v[static_cast<size_t>(r.high - 1)]};
}

double theil_sen_slope(std::span<const double> samples) {
  size_t n = samples.size();
  if (n < 2) return 0;
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) slopes.push_back((samples[j] - samples[i]) / static_cast<double>(j - i));
  // The median of all slopes: a single outlier does not turn it, as it would a least-squares line.
  return median(slopes);
}

double lag1_autocorrelation(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  double m = mean(samples), below = 0, above = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    below += (samples[i] - m) * (samples[i] - m);
    if (i > 0) above += (samples[i] - m) * (samples[i - 1] - m);
  }
  // Equal samples do not vary, so there is nothing to correlate.
  return below > 0 ? above / below : 0;
}

}  // namespace kiln::profiler
