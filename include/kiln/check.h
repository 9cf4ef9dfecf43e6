// Bounds-checked launches: an access outside of its tensor is reported with its place
// in the source, and harms neither a GPU's context nor other memory.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/kernel.h"

namespace kiln {

/// What a checked launch without a violation has checked.
struct CheckedLaunch {
  int accesses = 0;              // loads, stores, atomics and asserts of the source
  std::vector<Place> unchecked;  // accesses whose address comes from no argument: they ran unchecked
};

/// As Kernel::launch, with code that checks every load, store and atomic, and waits for its end. An access may use
/// the memory of the tensor that its address was computed from (all of it, for a view). Others are skipped: loads give
/// 0. kLaunch: the first of them in the first program that has one, or a failed assert; everything else was done.
/// kUnsupported: the kernel compiles, but not with checks. The code is slower and compiled separately, once for each
/// specialisation. Options count as in any launch, except that it is one block's (num_ctas), does not load ahead
/// (num_stages) and waits for the launch before it (launch_pdl).
Result<CheckedLaunch> launch_checked(const Kernel& kernel, std::array<int64_t, 3> grid,
                                     std::span<const std::optional<Arg>> args, const LaunchOptions& options = {});
/// Compiles for such a launch; may be done ahead, on another thread.
Status compile_checked(const Kernel& kernel, std::span<const std::optional<Arg>> args,
                       const LaunchOptions& options = {});
/// The reason in one clause, from a kUnsupported error of these.
std::string why_unchecked(const Diagnostic& refusal);

}  // namespace kiln
