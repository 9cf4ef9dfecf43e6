// Bounds-checks each address of a kernel: the first one outside of the tensor that it was computed from is recorded
// instead of faulting:
//   %v = load %p, %m   →   %a = ptr_to_int %p
//                          %outside = %a < begin of the tensor | %a > its end - 4
//                          atomic_rmw min (slot of this access), (program, distance), %m & %outside
//                          %v = load %p, %m & !%outside
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::passes {

enum class GuardKind : uint8_t { kRead, kWrite, kAtomic, kAssert };

/// One access of the source, or an assert, which is recorded instead of stopping the device.
struct Guard {
  GuardKind kind = GuardKind::kRead;
  Place place;
  std::vector<int> params;     // that the address may be computed from, by their number; none: an assert
  DType element = DType::kI8;  // that is accessed
  bool has_mask = false;       // the source gave one
  std::string text;            // of an assert
};

/// What a launch of a guarded kernel needs and returns. After the kernel's own parameters come, for each of `pointers`,
/// the first byte and the end of its tensor's memory (i64), and then a pointer to guards.size() + 1 words of 64 bits,
/// all but the last initialised with kNothingFound.
struct GuardedAccesses {
  std::vector<int> pointers;   // parameters that are pointers, in order
  std::vector<Guard> guards;   // one word each
  std::vector<Place> unknown;  // accesses whose address comes from no parameter: they are done as they are
};

inline constexpr int64_t kNothingFound = INT64_MAX;

/// The lowest program in which a guard found a violation (x fastest), and where.
struct GuardFinding {
  int64_t program = 0;  // INT32_MAX: that or a later one
  /// In bytes: positive after the last place where the access would fit, else negative, before the first one. The
  /// limits of int32 stand for anything farther. Of a program's places after the end it is the nearest.
  int32_t distance = 0;
};
inline constexpr int kGuardProgramShift = 32;  // of a word: the program above, the distance below
/// Of a guard's word; nullopt when it found nothing.
inline std::optional<GuardFinding> read_guard(int64_t word) {
  if (word == kNothingFound) return std::nullopt;
  return GuardFinding{word >> kGuardProgramShift, static_cast<int32_t>(word & UINT32_MAX)};
}

/// Guards every load, store, atomic and assert of a kernel in the tile stage. Accesses through descriptors become
/// accesses through pointers, so that a descriptor which describes more than its tensor is found too.
GuardedAccesses guard_accesses(ir::Module& module);

}  // namespace kiln::passes
