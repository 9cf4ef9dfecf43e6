// The statistics of a comparison: contenders against one baseline, in interleaved pairs. Plain numbers in, verdicts
// out; what takes the samples and what tells the time are arguments, so all of it is tested without a clock.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "profiler/measure/timer.h"

namespace kiln::profiler {

enum class Verdict { kFaster, kSlower, kSame, kUndecided };
std::string_view name(Verdict verdict);

/// The verdict from log ratios ln(tB/tA): FASTER or SLOWER when the interval excludes 0 and the effect is above
/// max(0.5 %, floor), SAME when the interval lies inside ±0.5 %, else UNDECIDED.
Verdict decide(std::span<const double> log_ratios, double confidence, double floor);

/// What follows from the pairs of one contender. Logarithms of ratios: above 0, the contender is faster.
struct Decision {
  Verdict verdict = Verdict::kUndecided;
  int pairs = 0;
  double effect = 0;     // median of ln(baseline/own)
  Interval interval_95;  // of that median, by exact order statistics
  double floor = 0;      // what the baseline against itself shows; 0 without a control
  /// The same median in cycles of the device; nullopt when too few samples know the clock.
  std::optional<double> cycles_effect;
  bool cycles_disagree = false;  // its sign is another: the clock changed, not the work
  int needed = 0;  // UNDECIDED: pairs that a verdict would take, when spreads stay as they are; 0: unknown

  double speedup() const;
  Interval speedup_95() const;
};

/// `log_ratios` and `control` are ln(baseline/own) and ln(baseline/baseline) of the pairs so far; `cycle_ratios` are
/// those of the pairs whose clocks are known. `last` takes 95 % intervals, else 99 %.
Decision decide_pairs(std::span<const double> log_ratios, std::span<const double> cycle_ratios,
                      std::span<const double> control, bool last);

/// The fewest that a 95 % interval of a median can be drawn from: taken whatever the time.
inline constexpr int kLeastPairs = 6;

struct PairOptions {
  double timeout_s = 30;
  int max_pairs = 200;
  int least_pairs = kLeastPairs;    // whatever the time; fewer give figures, and no verdict
  bool warm_up = true;              // false: all have just run, and take long
  bool control = true;              // pairs of the baseline with itself, as many as the others have
  uint64_t seed = 1;                // of every random order
  std::function<bool()> stop = {};  // asked between pairs; what was measured until then counts
  /// Each of the `active` contenders, those without a verdict, had its pair number `pairs`.
  std::function<void(int pairs, size_t active)> after_round = {};
};

struct PairedRow {
  std::vector<Sample> own, base;  // pair by pair; empty for the baseline
  Decision decision;
  Status problem;  // of a sample that failed: the row ends there
};

struct Pairs {
  std::vector<PairedRow> rows;  // one per contender, the baseline's empty
  std::vector<Sample> control_first, control_second;
  bool timed_out = false;  // a row was still undecided, with fewer pairs than it could have had
  bool interrupted = false;
};

/// Warms each up, then takes pairs in random order of contenders and random order within a pair. After n = 12, 20, 30,
/// 50, 100 and 200 pairs each row is looked at, and leaves once it is decided. An error is the baseline's, or that a
/// sample showed no time at all.
Result<Pairs> run_pairs(std::span<const SampleTaker> takers, size_t baseline, const PairOptions& options,
                        const std::function<double()>& now_s);

}  // namespace kiln::profiler
