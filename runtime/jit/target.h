// Which target of the compiler's tables a GPU runs.
#pragma once
#include <string>

namespace kiln::runtime {

/// "sm_90a" for capability 90; empty when the GPU is older than every target.
std::string target_for_capability(int capability);

}  // namespace kiln::runtime
