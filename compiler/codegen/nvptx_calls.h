// NVPTX: kernels whose wgmma a call would serialize.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// Whether it is inline assembly with that word.
bool is_asm_with(const llvm::Instruction& i, llvm::StringRef word);

/// Whether it has wgmma. A call anywhere in a kernel then makes ptxas wait for every one (its remark C7509).
bool has_wgmma(const llvm::Function& fn);

/// In a function with wgmma, takes the slow paths of math functions, which others call, in line.
void inline_calls(llvm::Function& fn);

}  // namespace kiln::codegen
