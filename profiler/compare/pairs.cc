#include "profiler/compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "support/diag.h"

namespace kiln::profiler {

namespace {

constexpr double kSame = 0.005;  // effects below this do not count
// Numbers of pairs after which a decision is tried. They are few, since each look is one more chance to be wrong.
constexpr int kLooks[] = {12, 20, 30, 50, 100, 200};

double half_width(const Interval& i) { return (i.high - i.low) / 2; }

// Widths shrink with the square root of n: how many pairs until the interval clears what is in its way.
int needed_pairs(const Decision& d) {
  double half = half_width(d.interval_95), effect = std::abs(d.effect);
  if (!std::isfinite(half) || d.cycles_disagree) return 0;
  auto pairs_for = [&](double now, double wanted) {
    if (wanted <= 0) return std::numeric_limits<double>::infinity();
    return d.pairs * (now / wanted) * (now / wanted);
  };
  double same = effect < kSame ? pairs_for(half, kSame - effect) : std::numeric_limits<double>::infinity();
  // The floor is a confidence interval, too, and narrows as fast.
  double differs = effect > kSame ? std::max(pairs_for(half, effect), pairs_for(d.floor, effect))
                                  : std::numeric_limits<double>::infinity();
  double n = std::min(same, differs);
  // Beyond this it would take days: as good as never.
  constexpr double kMost = 1e6;
  return n < kMost ? std::max(d.pairs + 1, static_cast<int>(std::ceil(n))) : 0;
}

bool has_time(const Sample& s) { return s.us > 0; }

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "FASTER";
    case Verdict::kSlower:
      return "SLOWER";
    case Verdict::kSame:
      return "SAME";
    case Verdict::kUndecided:
      return "UNDECIDED";
  }
  return "";
}

Verdict decide(std::span<const double> log_ratios, double confidence, double floor) {
  Interval interval = median_interval(log_ratios, confidence);
  double effect = median(log_ratios);
  // SAME needs the whole interval within the limit, FASTER and SLOWER need it to exclude 0: everything between the two
  // is undecided, whatever the median.
  if (-kSame <= interval.low && interval.high <= kSame) return Verdict::kSame;
  if (!interval.contains(0) && std::abs(effect) > std::max(kSame, floor))
    return effect > 0 ? Verdict::kFaster : Verdict::kSlower;
  return Verdict::kUndecided;
}

double Decision::speedup() const { return std::exp(effect); }

Interval Decision::speedup_95() const { return {std::exp(interval_95.low), std::exp(interval_95.high)}; }

Decision decide_pairs(std::span<const double> log_ratios, std::span<const double> cycle_ratios,
                      std::span<const double> control, bool last) {
  Decision d;
  d.pairs = static_cast<int>(log_ratios.size());
  d.effect = median(log_ratios);
  d.interval_95 = median_interval(log_ratios, 0.95);
  if (!control.empty()) {
    Interval h = median_interval(control, 0.95);
    d.floor = std::max(std::abs(h.low), std::abs(h.high));
  }
  // From half of the pairs on: clocks are not read with every sample.
  if (cycle_ratios.size() >= kLeastPairs && 2 * cycle_ratios.size() >= log_ratios.size()) {
    d.cycles_effect = median(cycle_ratios);
    d.cycles_disagree = std::abs(d.effect) > kSame && (*d.cycles_effect > 0) != (d.effect > 0);
  }
  // Stricter before the last look, so that several looks together keep 95 %.
  d.verdict = decide(log_ratios, last ? 0.95 : 0.99, d.floor);
  bool differs = d.verdict == Verdict::kFaster || d.verdict == Verdict::kSlower;
  if (differs && d.cycles_disagree) d.verdict = Verdict::kUndecided;
  if (d.verdict == Verdict::kUndecided) d.needed = needed_pairs(d);
  return d;
}

Result<Pairs> run_pairs(std::span<const SampleTaker> takers, size_t baseline, const PairOptions& options,
                        const std::function<double()>& now_s) {
  KILN_ASSERT(baseline < takers.size(), "baseline {} of {} contenders", baseline, takers.size());
  const size_t n = takers.size();
  const double start = now_s();
  Pairs result;
  result.rows.resize(n);

  auto stopped = [&] {
    if (!result.interrupted && options.stop && options.stop()) result.interrupted = true;
    return result.interrupted;
  };
  std::vector<size_t> active;
  for (size_t i = 0; i < n && !options.warm_up; ++i)
    if (i != baseline) active.push_back(i);
  for (size_t i = 0; i < n && options.warm_up && !stopped(); ++i) {
    // Each gets an equal part of a fifth of the time.
    const double until = start + options.timeout_s / 5 * static_cast<double>(i + 1) / static_cast<double>(n);
    auto times = [&, i]() -> Result<double> {
      if (stopped()) return error(ErrorKind::kInterrupted, "interrupted");
      KILN_TRY(Sample s, takers[i]());
      return s.us;
    };
    Result<bool> settled = warm_up(times, until, now_s);
    if (!settled.ok() && settled.error().kind == ErrorKind::kInterrupted) result.interrupted = true;
    if (stopped()) break;
    if (settled.ok() && i != baseline) active.push_back(i);
    if (settled.ok()) continue;
    if (i == baseline) return std::move(settled.error());
    result.rows[i].problem = std::move(settled.error());
  }

  std::mt19937_64 random(options.seed);
  std::vector<std::vector<double>> ratios(n), cycles(n);
  std::vector<double> control;
  auto is_interrupt = [&](const Status& s) {
    const bool is = !s.ok() && s.error().kind == ErrorKind::kInterrupted;
    if (is) result.interrupted = true;
    return is;
  };
  enum class Failed { kNone, kOwn, kBase };
  // One pair in random order.
  auto pair = [&](size_t own, Sample& a, Sample& b) -> std::pair<Failed, Status> {
    // In random order, so that a drift of the clock or a cache left warm favours neither.
    const bool swap = random() & 1;
    for (int i = 0; i < 2; ++i) {
      const bool is_own = (i == 0) != swap;
      Result<Sample> s = takers[is_own ? own : baseline]();
      // The caller has to know whom to blame: the baseline's failure ends all, a contender's only its own row.
      if (!s.ok()) return {is_own ? Failed::kOwn : Failed::kBase, std::move(s.error())};
      (is_own ? a : b) = *s;
    }
    return {Failed::kNone, {}};
  };
  auto control_pair = [&]() -> Status {
    Sample a, b;
    auto [failed, status] = pair(baseline, a, b);
    if (is_interrupt(status)) return {};
    if (!status.ok()) return std::move(status.error());
    result.control_first.push_back(a), result.control_second.push_back(b);
    if (has_time(a) && has_time(b)) control.push_back(std::log(b.us / a.us));
    return {};
  };
  int pairs = 0, timeless = 0;
  auto judge = [&](bool last) {
    for (size_t i : active)
      if (!ratios[i].empty()) result.rows[i].decision = decide_pairs(ratios[i], cycles[i], control, last);
  };
  // Where all others have failed, the baseline still has its times.
  while (active.empty() && options.control && pairs < kLeastPairs && !stopped()) {
    if (now_s() - start > options.timeout_s && !result.control_first.empty()) break;
    KILN_CHECK_OK(control_pair());
    ++pairs;
    if (options.after_round) options.after_round(pairs, active.size());
  }
  for (int look : kLooks) {
    if (look > options.max_pairs && look != kLooks[0]) break;
    const int until = std::min(look, std::max(options.max_pairs, options.least_pairs));
    while (pairs < until && !active.empty() && !stopped()) {
      if (now_s() - start > options.timeout_s && pairs >= options.least_pairs) {
        result.timed_out = true;
        break;
      }
      std::vector<size_t> order = active;
      if (options.control) order.push_back(baseline);
      // For the same reason no contender always follows the same neighbour.
      std::shuffle(order.begin(), order.end(), random);
      for (size_t i : order) {
        if (stopped()) break;
        if (i == baseline) {
          KILN_CHECK_OK(control_pair());
          continue;
        }
        PairedRow& row = result.rows[i];
        Sample own, base;
        auto [failed, status] = pair(i, own, base);
        if (is_interrupt(status)) break;
        if (failed == Failed::kBase) return std::move(status.error());
        if (failed == Failed::kOwn) {
          row.problem = std::move(status);
          std::erase(active, i);
          continue;
        }
        row.own.push_back(own), row.base.push_back(base);
        if (!has_time(own) || !has_time(base)) {
          // A time of 0 has no ratio; such pairs count for nothing.
          ++timeless;
          continue;
        }
        ratios[i].push_back(std::log(base.us / own.us));
        if (own.sm_mhz > 0 && base.sm_mhz > 0) cycles[i].push_back(std::log(base.kcycles() / own.kcycles()));
      }
      ++pairs;
      if (options.after_round) options.after_round(pairs, active.size());
    }
    const bool last =
        result.timed_out || result.interrupted || look == std::end(kLooks)[-1] ||
        std::none_of(std::begin(kLooks), std::end(kLooks), [&](int l) { return l > look && l <= options.max_pairs; });
    judge(last);
    std::erase_if(active, [&](size_t i) { return result.rows[i].decision.verdict != Verdict::kUndecided; });
    if (last || active.empty()) break;
  }
  // All were decided in time, even if the clock ran out with the last pair.
  if (active.empty()) result.timed_out = false;
  if (timeless > 0 && std::all_of(ratios.begin(), ratios.end(), [](const auto& r) { return r.empty(); }))
    return error(ErrorKind::kDevice, "all samples were below the clock's resolution");
  return result;
}

}  // namespace kiln::profiler
