// `kiln compile --emit c`: a C source with a kernel's code for some GPUs and a function that launches it, for programs
// without a compiler at run time.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "compiler/compile.h"

namespace kiln::repl {

/// The source is complete in one file, a header too: other files include it with NAME_DECLARATIONS_ONLY defined, where
/// NAME is the function's, with '_' for the '.' behind a class. `compiled` are kernels of one function and signature,
/// for GPUs. kUnsupported: the parameters that are left differ.
Result<std::string> c_launcher(std::span<const CompiledKernel> compiled, const std::string& function,
                               const std::string& file);

/// The value of a HostExpression (support/tensor_map.h), an int64_t, as a C expression over variables with the
/// parameters' names and types.
std::string c_expression(const HostExpression& e, std::span<const KernelParam> params);
/// The C functions that such expressions call.
std::string c_helpers(std::string_view text);

}  // namespace kiln::repl
