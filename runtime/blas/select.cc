#include "runtime/blas/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "support/diag.h"

namespace kiln::runtime::blas {

namespace {

// Rounds over all candidates, then over those that came near to the fastest.
constexpr int kFirstRounds = 3, kFinalRounds = 9;
constexpr size_t kFinalists = 8;
constexpr double kFinalistsWithin = 1.25;

double median(std::vector<double> v) {
  if (v.empty()) return std::numeric_limits<double>::quiet_NaN();
  auto middle = v.begin() + static_cast<ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

}  // namespace

Result<Selection> select_best(int count, const std::function<Result<double>(int)>& sample, uint64_t seed) {
  KILN_ASSERT(count > 0, "nothing to select from");
  std::mt19937_64 random(seed);
  std::vector<std::vector<double>> samples(static_cast<size_t>(count));
  std::vector<int> left(static_cast<size_t>(count));
  std::iota(left.begin(), left.end(), 0);
  Diagnostic last_failure;
  auto round = [&](bool counts) {
    // In another order each round, so that no candidate always finds the caches and clocks that the same other one
    // leaves.
    std::shuffle(left.begin(), left.end(), random);
    std::erase_if(left, [&](int i) {
      auto us = sample(i);
      if (!us.ok()) {
        last_failure = std::move(us.error());
        // What failed once takes part in no later round. Without samples its time is NaN.
        samples[static_cast<size_t>(i)].clear();
        return true;
      }
      if (counts) samples[static_cast<size_t>(i)].push_back(*us);
      return false;
    });
  };
  auto of = [&](int i) { return median(samples[static_cast<size_t>(i)]); };
  // Of equal medians the first, so that the choice is the same each time.
  auto faster = [&](int a, int b) { return of(a) != of(b) ? of(a) < of(b) : a < b; };
  // Does not count: first calls load code.
  round(false);
  for (int i = 0; i < kFirstRounds; ++i) round(true);
  std::sort(left.begin(), left.end(), faster);
  if (left.size() > kFinalists) left.resize(kFinalists);
  if (!left.empty()) {
    double limit = of(left.front()) * kFinalistsWithin;
    std::erase_if(left, [&](int i) { return of(i) > limit; });
  }
  if (left.size() > 1)
    for (int i = 0; i < kFinalRounds; ++i) round(true);
  if (left.empty()) return last_failure;
  Selection s;
  s.best = *std::min_element(left.begin(), left.end(), faster);
  for (const auto& v : samples) s.us.push_back(median(v));
  return s;
}

}  // namespace kiln::runtime::blas
