// A against B: two launchables, or two samplers.
#pragma once
#include <cstdint>
#include <functional>

#include "profiler/compare/pairs.h"

namespace kiln::profiler {

struct CompareOptions {
  Cache cache = Cache::kCold;
  double timeout_s = 30;
  int max_pairs = 200;
  bool control = true;  // measure A against A too, for the noise floor
  uint64_t seed = 1;    // of the random AB/BA order
};

/// A against B over interleaved pairs. speedup > 1: A is faster.
struct Comparison {
  Summary a_us, b_us;
  double speedup = 1;   // exp(median of ln(tB/tA))
  Interval speedup_95;  // exact order statistics
  double floor = 0;     // |ln ratio| that A against A shows; 0 without a control
  Verdict verdict = Verdict::kUndecided;
  int pairs = 0;
  bool timed_out = false;  // fewer pairs than a decision needed
};

/// Looks at n = 12, 20, 30, 50, 100 and 200 pairs; 99 % intervals until the last look.
Result<Comparison> compare_samples(const Sampler& a, const Sampler& b, const CompareOptions& options,
                                   const std::function<double()>& now_s);

/// Both must be of one device.
Result<Comparison> compare(const Launchable& a, const Launchable& b, const CompareOptions& options = {});

}  // namespace kiln::profiler
