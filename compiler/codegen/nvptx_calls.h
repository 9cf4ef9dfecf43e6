// NVPTX: calls, which would serialize the wgmma of a kernel, are taken in line.
#pragma once
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace kiln::codegen {

/// Whether it is inline assembly with that word.
bool is_asm_with(const llvm::Instruction& i, llvm::StringRef word);

/// Whether it has wgmma. A call anywhere in a kernel then makes ptxas wait for every one (its remark C7509).
bool has_wgmma(const llvm::Function& fn);

/// Takes functions in line that ask for it; in a function with wgmma also the slow paths of math functions that others
/// call.
void inline_calls(llvm::Function& fn);

/// Removes the module's own functions that nothing calls any more: assemblers compile what is there.
void drop_uncalled(llvm::Module& module);

}  // namespace kiln::codegen
