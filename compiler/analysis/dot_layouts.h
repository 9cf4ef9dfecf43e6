// The layouts that a `dot` on registers requires, by its attribute `mma` (docs/layouts.md, "Tensor cores"). A dot
// without the attribute is computed element by element.
#pragma once
#include <optional>

#include "compiler/ir/ir.h"
#include "compiler/layout/dot_plan.h"

namespace kiln::analysis {

/// True when mma.sync computes the dot.
bool uses_mma(const ir::Op& dot);
/// True unless the attribute selects an instruction that reads its operands from shared memory.
bool is_on_registers(const ir::Op& dot);
/// Whether arithmetic, or another dot, stands between an operand and memory.
bool is_computed(const ir::Value* operand);
/// Which operands lie contiguous along k in memory: a of [m, k], b of [n, k].
struct AlongK {
  bool a = false, b = false;
};
/// A good layout of the result and the addend.
layout::LinearLayout dot_result_layout(const ir::Op& dot, int num_warps, AlongK along_k = {});
/// The layout that operand 0 or 1 must have for a result with this layout.
layout::LinearLayout dot_operand_layout(const ir::Op& dot, int index, const layout::LinearLayout& result);
/// The registers that each thread or warp combines; nothing when the op's layouts do not match.
std::optional<layout::DotPlan> plan_dot(const ir::Op& dot);

}  // namespace kiln::analysis
