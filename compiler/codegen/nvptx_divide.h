// An LLVM function pass for NVPTX: 64-bit division without the subroutine that ptxas calls.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// Expands divisions and remainders of two i64 by a value that varies. ptxas makes a call of each. A call anywhere in a
/// kernel makes it wait for every wgmma (its remark C7509); where it compiles for linking, as the driver does, what a
/// callee changes is not known to it, and each access to global memory moves its descriptor to uniform registers anew.
/// Operands of 32 bits divide as such; others by the reciprocal in f64, rounded down, with one remainder step and one
/// correction. Many divisions without wgmma keep the subroutine, which is shorter. Division by zero gives any value, as
/// in PTX.
void divide_without_calls(llvm::Function& fn);

}  // namespace kiln::codegen
