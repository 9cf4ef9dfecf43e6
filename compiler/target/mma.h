// The table of mma.sync instructions.
#pragma once
#include <cstdint>
#include <string_view>

#include "compiler/target/target.h"
#include "kiln/dtype.h"

namespace kiln::target {

struct MmaRow {
  std::string_view name;          // "m16n8k16.f32.f16.f16.f32", as the attribute `mma` of a dot has it
  std::string_view shape, types;  // of the instruction
  DType a, b, accumulator;
  uint32_t features;  // all of them are needed

  int depth() const { return 256 / bits(a); }  // elements along k
};

/// What warp groups multiply at once, with operands in shared memory.
struct GroupMma {
  std::string_view name;  // "wgmma", the value of the attribute `mma` of a dot
  int warps, rows;        // of a group, and of its result
  int fewest_columns, most_columns;
  int fewest_bytes;   // along k
  uint32_t features;  // all of them are needed
};

/// The value of the attribute `mma` of a dot that uses scalar multiplications.
inline constexpr std::string_view kFma = "fma";

/// The first row that multiplies these types on the target, or nullptr.
const MmaRow* find_mma(const Target& target, DType a, DType b, DType accumulator);
/// The row of that name, or nullptr.
const MmaRow* mma_row(std::string_view name);

/// What the target's groups of warps compute products of these types with, or nullptr; and whether they compute any.
const GroupMma* find_group_mma(const Target& target, DType a, DType b, DType accumulator);
bool has_group_mma(const Target& target);
/// Whether operands of the type may lie in shared memory with either dimension contiguous; else along k alone.
bool lies_either_way(const Target& target, DType operand);
/// The row of that name, or nullptr.
const GroupMma* group_mma(std::string_view name);

}  // namespace kiln::target
