// LLVM IR for a GPU → optimised → PTX text.
#pragma once
#include <string>

#include "compiler/codegen/cubin.h"
#include "compiler/target/target.h"
#include "kiln/result.h"

namespace llvm {
class Module;
}

namespace kiln::codegen {

/// Optimises `module` (as lower_nvptx makes it) in place and prints it as PTX for the target. The module may then be
/// printed too. kInternal: LLVM cannot select something, or the PTX calls a function that nobody defines (a misspelt
/// intrinsic, a library call); only vprintf and __assertfail, which the driver provides, are allowed. May be called
/// from several threads, each with its own LLVMContext.
Result<std::string> emit_ptx(llvm::Module& module, const target::Target& target);

/// The text form of a module, for --emit llvm.
std::string print_llvm(const llvm::Module& module);

}  // namespace kiln::codegen
