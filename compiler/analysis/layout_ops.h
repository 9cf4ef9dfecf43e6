// Facts of the distributed stage about an op's layouts: which operand register a shape op takes, how layouts propagate
// through an op in both directions, and how many elements a memory access moves at once.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/layout/algebra.h"

namespace kiln::analysis {

/// A register of one of an op's operands.
struct OperandRegister {
  int operand = 0;
  int reg = 0;
  bool operator==(const OperandRegister&) const = default;
};

/// For a shape op of the distributed stage (expand_dims, broadcast, reshape, trans, join, split): where each register
/// of result `index` comes from. Always in the same thread; the verifier has checked the layouts. (splat, constant and
/// arange have no operand tile: every register is computed.)
std::vector<OperandRegister> source_registers(const ir::Op& op, int index = 0);

/// The layout that operand `index` needs so that the op gives its result as `result` without moving data between
/// threads; nothing when there is none (reduce; or join of a layout that cannot be split).
std::optional<layout::LinearLayout> operand_layout(const ir::Op& op, int index, const layout::LinearLayout& result);

/// The layout of the op's results when its (first tile) operand has layout `operand`.
std::optional<layout::LinearLayout> result_layout(const ir::Op& op, const layout::LinearLayout& operand);

}  // namespace kiln::analysis
