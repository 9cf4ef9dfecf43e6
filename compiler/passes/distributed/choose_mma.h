// Selects how each `dot` is computed: a row of target/mma.def, or scalar multiplications.
//
//   %r = dot %a, %b, %c : f32[64, 64]   →   %r = dot %a, %b, %c {mma = "m16n8k16.f32.f16.f16.f32"} : f32[64, 64]
//
// Where operands are widened from narrower elements, `k_width` says how many neighbours along k a thread holds of both
// (analysis/operand_runs.h).
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Dots that already have the attribute `mma` stay as they are. Operands are cast where the target lacks the
/// instruction: fp8 to f16, and types without any instruction to f32. f32 operands of precision "tf32x3" become three
/// products of their upper and lower halves. Precision "ieee" and f64 use scalar multiplications, as do tiles with less
/// depth than an instruction.
Status choose_mma(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

}  // namespace kiln::passes
