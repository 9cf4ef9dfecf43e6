// An LLVM function pass for NVPTX: 64-bit division without the subroutine that ptxas calls.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// In a function with wgmma, expands each division and remainder of two i64 by a value that varies. ptxas makes a call
/// of one, and a call anywhere in a kernel makes it wait for every wgmma (its remark C7509). Operands of 32 bits divide
/// as such; others by the reciprocal in f64, rounded down, with one remainder step and one correction. What divides
/// elsewhere keeps the subroutine, which takes fewer registers. Division by zero gives any value, as in PTX.
void divide_without_calls(llvm::Function& fn);

}  // namespace kiln::codegen
