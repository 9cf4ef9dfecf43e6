// %why of a kernel: what the compiler's passes say of their decisions on it, by source line.
#pragma once
#include <string_view>

#include "kiln/result.h"

namespace kiln::repl {

struct MagicContext;

/// Whether the text begins with the name of a kernel of the session.
bool names_kernel(MagicContext& context, std::string_view text);

/// Compiles the kernel ("matmul_kernel BLOCK_M=64 num_warps=8 pass=select_wgmma target=sm_90a") and prints a row per
/// remark. The rows made before an error are printed too.
Status why_kernel(MagicContext& context, std::string_view text);

}  // namespace kiln::repl
