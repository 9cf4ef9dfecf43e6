// Launches that look at each address before it is used: what reaches outside of its tensor is reported with its place
// in the source, and neither a GPU's context nor other memory is lost to it.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/kernel.h"

namespace kiln {

/// What a checked launch that found nothing wrong looked at.
struct CheckedLaunch {
  int accesses = 0;              // loads, stores, atomics and asserts of the source
  std::vector<Place> unchecked;  // accesses whose address comes from no argument: they were done as they are
};

/// As Kernel::launch, with code that guards every load, store and atomic, and waits for its end. An access may touch
/// the memory of the tensor that its address was computed from (all of it, for a view); others are left out: loads give
/// 0. kLaunch: the first of them in the first program that has one, or an assert that failed; everything else was done.
/// kUnsupported: the kernel compiles, but not with guards. The code is slower and compiled apart, once for each
/// specialisation; of the options only num_warps and the stream have an effect on it.
Result<CheckedLaunch> launch_checked(const Kernel& kernel, std::array<int64_t, 3> grid,
                                     std::span<const std::optional<Arg>> args, const LaunchOptions& options = {});
/// Compiles for such a launch: what may be done ahead, on another thread.
Status compile_checked(const Kernel& kernel, std::span<const std::optional<Arg>> args,
                       const LaunchOptions& options = {});
/// In one clause, from a kUnsupported error of these.
std::string why_unchecked(const Diagnostic& refusal);

}  // namespace kiln
