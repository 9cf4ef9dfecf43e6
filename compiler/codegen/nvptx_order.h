// An LLVM function pass for NVPTX: orders instructions by the use of their results, to shorten live ranges.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// The lowering of tiles goes op by op over all registers of a thread, so that in a chain of ops every register is live
/// at once; ptxas keeps much of that order. This moves what has no side effect to just before its first use, operands
/// first: memory operations keep their order, and the chain runs to its end for one register before it starts for the
/// next. Beside the accumulators of wgmma, which leave few registers, what follows from loads comes after every few of
/// them: ptxas would spill what is loaded before the rest, and wait for each load to do so.
void order_by_need(llvm::Function& fn);

}  // namespace kiln::codegen
