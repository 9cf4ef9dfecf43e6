// Which iterations of a loop a profile is of: `wait` of them are left alone, `warmup` run under the profiler and are
// forgotten, `active` are kept; all that `repeat` times. The words and their meaning are those of torch.profiler.
#pragma once
#include <cstdint>
#include <string_view>

namespace kiln::profiler {

/// The range around each iteration that is kept.
inline constexpr std::string_view kStepRange = "step";

enum class StepAction : uint8_t { kWait, kWarmup, kActive };

struct Schedule {
  int64_t wait = 0, warmup = 1, active = 3;
  int64_t repeat = 1;      // 0: for ever
  int64_t skip_first = 0;  // left alone before the first cycle

  int64_t cycle() const { return wait + warmup + active; }

  /// What is done with iteration `step`, counted from 0.
  StepAction at(int64_t step) const {
    if (step < skip_first || cycle() <= 0) return StepAction::kWait;
    step -= skip_first;
    if (repeat > 0 && step / cycle() >= repeat) return StepAction::kWait;
    const int64_t in_cycle = step % cycle();
    if (in_cycle < wait) return StepAction::kWait;
    return in_cycle < wait + warmup ? StepAction::kWarmup : StepAction::kActive;
  }
  /// Whether iteration `step` is the last that is kept of its cycle.
  bool ends_cycle(int64_t step) const {
    return at(step) == StepAction::kActive && (step - skip_first) % cycle() == cycle() - 1;
  }
};

}  // namespace kiln::profiler
