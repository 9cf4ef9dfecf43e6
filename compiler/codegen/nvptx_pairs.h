// An LLVM function pass for NVPTX: loops carry halves in pairs.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// Two phis of 16 bits whose values are only ever put together, as the operand of a tensor core is, become one phi of
/// their pair:
///
///   %a = phi half [%x, %loop], [0, %entry]
///   %b = phi half [%y, %loop], [0, %entry]            →   %p = phi <2 x half> [{%x, %y}, %loop], [0, %entry]
///   %p = {%a, %b}
///
/// Two floats are then rounded by one instruction, in the block that makes them. ptxas (13.0) pairs them by itself, but
/// takes longer, and leaves a few copies in the loop.
void carry_halves_in_pairs(llvm::Function& fn);

}  // namespace kiln::codegen
