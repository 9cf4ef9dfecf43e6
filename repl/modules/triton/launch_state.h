// What the module triton keeps for its session.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "kiln/kernel.h"
#include "repl/modules/triton/access_checks.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

struct LaunchState {
  explicit LaunchState(Interp&) {}
  /// Before each launch of a kernel; may be empty.
  std::function<void(const Kernel&, std::span<const std::optional<Arg>>, const LaunchOptions&)> on_launch;
  /// Of every launch of a kernel; what they find goes to the log.
  AccessChecks access_checks = AccessChecks::kOff;
  AccessLog access_log;
  /// On the CPU the first launch of each form (types and sizes of arguments, values of numbers, grid) is checked.
  bool checks_first = false;
};
inline LaunchState& launch_state(Interp& in) { return in.state<LaunchState>(); }

}  // namespace kiln::script
