// The target for which kernels are shown.
#pragma once
#include <string>

#include "compiler/target/target.h"
#include "kiln/kernel.h"
#include "kiln/result.h"

namespace kiln::repl {

struct MagicContext;

/// The target that is shown when no other is selected.
inline constexpr const char* kDefaultGpuTarget = target::kDefaultGpu.data();

/// %target's, else the one that the kernel was launched for, else the session's device's; kDefaultGpuTarget where that
/// is no GPU.
Result<std::string> gpu_target_of(MagicContext& context, const Kernel& kernel);

}  // namespace kiln::repl
