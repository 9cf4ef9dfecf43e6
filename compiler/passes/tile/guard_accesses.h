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

/// One access of the source to one of the tensors that its address may be computed from, or an assert, which is
/// recorded instead of stopping the device.
struct Guard {
  GuardKind kind = GuardKind::kRead;
  Place place;
  int param = -1;              // the tensor, by the number of the parameter; -1: an assert
  DType element = DType::kI8;  // that is accessed
  bool has_mask = false;       // the source gave one
  std::string text;            // of an assert
};

/// What a launch of a guarded kernel needs and returns. After the kernel's own parameters come, for each of `pointers`,
/// the first byte and the end of its tensor's memory (i64), and then a pointer to kFirstGuardWord + guards.size() words
/// of 64 bits that hold kNothingFound.
struct GuardedAccesses {
  std::vector<int> pointers;   // parameters that are pointers, in order
  std::vector<Guard> guards;   // one word each
  int accesses = 0;            // and asserts of the source that are guarded
  std::vector<Place> unknown;  // accesses whose address comes from no parameter: they are done as they are
};

inline constexpr int64_t kNothingFound = INT64_MAX;
/// Before the guards' words: one that refused atomics may use, and the lowest program that found something, which ends
/// its `while` loops: with an element that was left out they might not end.
inline constexpr int kSpareWord = 0, kEndedWord = 1, kFirstGuardWord = 2;

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
