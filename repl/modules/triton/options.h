// Launch options as scripts give and read them.
#pragma once
#include "repl/script/interp/interp.h"
#include "support/launch_options.h"

namespace kiln::script {

/// None stands for the default where that is None. What is out of range is told when the kernel is compiled.
void set_option(Interp& in, const LaunchOption& option, const Value& value, CodeOptions& out);
Value option_value(const LaunchOption& option, const CodeOptions& options);
/// "num_warps=4, num_stages=3": the named arguments of a triton.Config.
std::string config_arguments(const CodeOptions& options);

}  // namespace kiln::script
