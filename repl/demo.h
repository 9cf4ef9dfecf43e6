// `kiln demo`: fused kernels against one kernel per operation on the device that is found, and what a GPU would get.
#pragma once
#include "kiln/result.h"
#include "repl/options.h"

namespace kiln::repl {

/// Prints two tables. Gives kExitMismatch when an output is further from its float64 reference than the case allows.
Result<int> demo_command(const DemoArgs& args, const std::string& device, bool json);

}  // namespace kiln::repl
