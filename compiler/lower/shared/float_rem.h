// C's fmod as an LLVM function of the module, exact for every input. Internal to compiler/lower.
#pragma once
#include <llvm/IR/IRBuilder.h>

namespace kiln::lower {

/// fmod(a, b) of two f32 or f64 scalars or vectors: neither PTX nor LLVM's frem on NVPTX has an exact one, and the
/// host's would be a library call. Made once per module and type; vectors call it per lane.
llvm::Value* emit_fmod(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y);

}  // namespace kiln::lower
