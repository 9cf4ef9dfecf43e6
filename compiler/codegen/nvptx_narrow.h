// An LLVM function pass for NVPTX: arithmetic of 64 bits of which 32 are kept is done in 32 bits.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// (x * c) & 0xffffffff → zext((trunc x) * c), where sums, products, shifts and logic of 64 bits end in a mask or a
/// truncation that keeps no more than the low 32. Hashes are written so; a product of 64 bits takes three instructions
/// and a shift two. InstCombine does the opposite, since 64 bits are a type of the target: at the end of the passes.
void narrow_masked(llvm::Function& fn);

}  // namespace kiln::codegen
