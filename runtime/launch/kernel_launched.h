// What stands behind a kernel's handle: its function, and how it was launched. Enough to compile it again, for its
// stages to be shown.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/frontend/frontend.h"
#include "kiln/kernel.h"

namespace kiln::runtime {

struct LaunchedAs {
  std::vector<frontend::ArgSpec> args;
  frontend::Options options;
  std::string target;
};

/// Of the last launch; null when there was none.
std::shared_ptr<const LaunchedAs> launched_as(const Kernel& kernel);
/// Compiles for a launch that then counts as the last one: after a checked launch, whose code is not what the kernel
/// is.
Status note_launch(const Kernel& kernel, std::span<const std::optional<Arg>> args, const LaunchOptions& options);
const std::shared_ptr<const frontend::JitFunction>& function_of(const Kernel& kernel);
/// A hash of the compiler for `device` and of all source texts and globals that the code follows from, wherever they
/// stand: what keeps a finding about the kernel (the fastest configuration, say) from outliving it.
std::string identity_of(const Kernel& kernel, const Device& device);

}  // namespace kiln::runtime
