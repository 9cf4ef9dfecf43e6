#include "profiler/tune/halving.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "profiler/measure/stats.h"

namespace kiln::profiler {

namespace {

constexpr int kFirstSamples = 4, kMostSamples = 32;
constexpr int kLongest = 4;      // times its samples: a rung that noise leaves unclear
constexpr double kHopeless = 3;  // times as slow as the leader

class Halving {
 public:
  Halving(std::span<const Sampler> samplers, const HalvingOptions& options)
      : samplers_(samplers), options_(options), random_(options.seed), start_(options.now_s()) {
    result_.heats.resize(samplers.size());
    alive_.resize(samplers.size());
    std::iota(alive_.begin(), alive_.end(), 0);
  }

  HalvingResult run() {
    for (double until = start_ + options_.warm_up_s; !over_ && !alive_.empty() && options_.now_s() < until;)
      turn(/*counted=*/false);
    const int rungs = rung_count(static_cast<int>(alive_.size()));
    for (rung_ = 0; !over_ && !alive_.empty(); ++rung_) {
      for (int i : alive_) heat(i).rung = rung_;
      // What is left of the time is shared by this rung and those to come.
      const double now = options_.now_s(), left = start_ + options_.budget_s - now;
      const double until = now + left / std::max(1, rungs - rung_);
      const int nominal = rung_samples(rung_);
      for (int n = 1; n <= kLongest * nominal && !alive_.empty(); ++n) {
        samples_to_come_ = std::max(1, nominal + 1 - n) * static_cast<int>(alive_.size()) + samples_after(rung_);
        turn(/*counted=*/true);
        if (over_) break;
        drop_hopeless();
        if (options_.now_s() >= until || (n >= nominal && is_clear())) break;
      }
      if (alive_.size() <= 1) break;
      if (!over_) keep_better();
      if (alive_.size() == 1) break;
    }
    rank();
    return std::move(result_);
  }

 private:
  Heat& heat(int i) { return result_.heats[static_cast<size_t>(i)]; }
  double median_of(int i) { return median(heat(i).us); }

  void turn(bool counted) {
    std::vector<int> order = alive_;
    // The first contender, what is in use today, is the first to have a sample: any budget can compare with it.
    std::shuffle(order.begin() + (taken_ == 0 && counted), order.end(), random_);
    for (int i : order) {
      if (!counted && options_.now_s() - start_ >= options_.warm_up_s) return;
      if (options_.should_stop && options_.should_stop()) return end(HalvingEnd::kInterrupted);
      if (taken_ > 0 && options_.now_s() - start_ >= options_.budget_s) return end(HalvingEnd::kBudget);
      auto us = samplers_[static_cast<size_t>(i)]();
      if (!us.ok() && us.error().kind == ErrorKind::kInterrupted) return end(HalvingEnd::kInterrupted);
      if (!us.ok()) {
        heat(i).failure = us.error().message;
        std::erase(alive_, i);
        continue;
      }
      if (!counted || !(*us > 0)) continue;  // below the clock's resolution
      heat(i).us.push_back(*us);
      ++taken_;
      --samples_to_come_;
      report();
    }
  }

  void end(HalvingEnd why) {
    over_ = true;
    result_.end = why;
  }

  int leader() {
    int best = -1;
    for (int i : alive_)
      if (!heat(i).us.empty() && (best < 0 || median_of(i) < median_of(best))) best = i;
    return best;
  }

  void drop_hopeless() {
    const int best = leader();
    if (best < 0) return;
    const double limit = kHopeless * median_of(best);
    std::erase_if(alive_, [&](int i) {
      const std::vector<double>& us = heat(i).us;
      return !us.empty() && *std::min_element(us.begin(), us.end()) > limit;
    });
  }

  /// Whether nobody of the slower half was, in a quarter of its samples, as fast as the leader in half of its own.
  bool is_clear() {
    sort_alive();
    if (alive_.size() <= 1) return true;
    const double best = median_of(alive_[0]);
    for (size_t k = (alive_.size() + 1) / 2; k < alive_.size(); ++k)
      if (quantile(heat(alive_[k]).us, 0.25) < best) return false;
    return true;
  }

  /// Best first; without those whose samples were all below the clock's resolution.
  void sort_alive() {
    std::erase_if(alive_, [&](int i) { return heat(i).us.empty(); });
    std::stable_sort(alive_.begin(), alive_.end(), [&](int a, int b) { return median_of(a) < median_of(b); });
  }

  void keep_better() {
    sort_alive();
    const size_t n = alive_.size(), half = (n + 1) / 2, most = std::max(half, n * 3 / 4);
    if (n <= 1) return;
    const double best = median_of(alive_[0]);
    std::vector<int> kept(alive_.begin(), alive_.begin() + static_cast<ptrdiff_t>(half));
    for (size_t k = half; k < n && kept.size() < most; ++k) {
      const std::vector<double>& us = heat(alive_[k]).us;
      if (*std::min_element(us.begin(), us.end()) <= best) kept.push_back(alive_[k]);
    }
    alive_ = std::move(kept);
  }

  /// Samples of the rungs after `rung`, if each halves.
  int samples_after(int rung) const {
    int sum = 0;
    for (size_t n = (alive_.size() + 1) / 2; n > 1; n = (n + 1) / 2) sum += rung_samples(++rung) * static_cast<int>(n);
    return sum;
  }

  void report() {
    if (!options_.on_progress) return;
    HalvingProgress p;
    p.rung = rung_;
    p.alive = static_cast<int>(alive_.size());
    p.best = leader();
    if (p.best >= 0) p.best_us = median_of(p.best);
    const double used = options_.now_s() - start_;
    p.left_s = std::clamp(used / taken_ * samples_to_come_, 0.0, std::max(0.0, options_.budget_s - used));
    options_.on_progress(p);
  }

  void rank() {
    for (size_t i = 0; i < result_.heats.size(); ++i)
      if (result_.heats[i].failure.empty() && !result_.heats[i].us.empty())
        result_.ranking.push_back(static_cast<int>(i));
    std::stable_sort(result_.ranking.begin(), result_.ranking.end(), [&](int a, int b) {
      return heat(a).rung != heat(b).rung ? heat(a).rung > heat(b).rung : median_of(a) < median_of(b);
    });
  }

  std::span<const Sampler> samplers_;
  const HalvingOptions& options_;
  std::mt19937_64 random_;
  double start_;
  HalvingResult result_;
  std::vector<int> alive_;
  int rung_ = 0, taken_ = 0, samples_to_come_ = 0;
  bool over_ = false;
};

}  // namespace

int rung_samples(int rung) { return std::min(kFirstSamples << std::min(rung, 8), kMostSamples); }

int rung_count(int contenders) {
  int rungs = 1;
  for (; contenders > 2; contenders = (contenders + 1) / 2) ++rungs;
  return rungs;
}

HalvingResult halve(std::span<const Sampler> samplers, const HalvingOptions& options) {
  return Halving(samplers, options).run();
}

}  // namespace kiln::profiler
