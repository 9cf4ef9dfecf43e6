// `kiln compile --emit c`: a C source with a kernel's code for some GPUs and a function that launches it, for programs
// without a compiler at run time.
#pragma once
#include <span>
#include <string>

#include "compiler/compile.h"

namespace kiln::repl {

/// The source is complete in one file, a header too: other files include it with NAME_DECLARATIONS_ONLY defined, where
/// NAME is the kernel's. `compiled` are kernels of one function and signature, for GPUs. kUnsupported: the parameters
/// that are left differ.
Result<std::string> c_launcher(std::span<const CompiledKernel> compiled, const std::string& file);

}  // namespace kiln::repl
