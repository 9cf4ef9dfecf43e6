// `kiln demo`: the gain of fusion on the default device.
#pragma once
#include "kiln/device.h"
#include "kiln/result.h"
#include "repl/shell/options.h"

namespace kiln::repl {

/// Prints a table for each of three expressions and their variants, or for named kernels of kernels/ fused against
/// unfused with what a GPU would get. Gives kExitMismatch when an output is further from its float64 reference than it
/// may be.
Result<int> demo_command(const DemoArgs& args, const std::string& device, bool json);

/// demo_expressions.cc
Result<int> expressions_demo(const DemoArgs& args, const Device& device, bool json);

}  // namespace kiln::repl
