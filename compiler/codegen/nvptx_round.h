// An LLVM function pass for NVPTX: rounds f32 to bf16 and back in one instruction of full rate.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// `fpext (fptrunc x to bfloat) to float` becomes cvt.rn.bf16x2.f32 with x as the upper half and 0 as the lower one,
/// whose 32 bits are the rounded float. For a single cvt.rn.bf16.f32 ptxas (12.4 to 13.0) emits F2F.BF16.F32, which
/// runs at a quarter of that rate: a chain of six pointwise operations in bf16 took 549 us instead of 370 on an H200.
/// Goes when ptxas packs by itself. Needs sm_80.
void round_to_bf16_by_pairs(llvm::Function& fn);

}  // namespace kiln::codegen
