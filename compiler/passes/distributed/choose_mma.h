// Says for each `dot` what computes it: a row of target/mma.def, or single multiplications.
//
//   %r = dot %a, %b, %c : f32[64, 64]   →   %r = dot %a, %b, %c {mma = "m16n8k16.f32.f16.f16.f32"} : f32[64, 64]
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Dots that have the attribute `mma` already stay as they are. Operands are cast where the target lacks the
/// instruction: fp8 to f16, and what no instruction takes to f32. f32 operands of precision "tf32x3" become three
/// products of their upper and lower halves; those of precision "ieee" and f64 are left to single multiplications, as
/// are tiles less deep than an instruction.
Status choose_mma(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
