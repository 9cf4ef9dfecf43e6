// `kiln demo`: the gain of fusion on the default device.
#pragma once
#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/report/table.h"
#include "repl/shell/options.h"

namespace kiln::repl {

/// Prints a table for each of three expressions and their variants, or for named kernels of kernels/ fused against
/// unfused; on a CPU also what a GPU would get of them. Gives kExitMismatch when an output is further from its float64
/// reference than it may be.
Result<int> demo_command(const DemoArgs& args, const Device& device, bool json);

/// What the default GPU target would get of the three expressions, at the sizes that they have there. Runs nothing.
Result<report::Table> demo_static_figures(const Device& device);

/// demo_expressions.cc
Result<int> expressions_demo(const DemoArgs& args, const Device& device, bool json);

}  // namespace kiln::repl
