// The bridge from the runtime to the compiler: arguments of a launch → specialisation → code, from a cache or compiled.
#pragma once
#include <string>

namespace kiln::runtime {

/// The compile target for a GPU of this compute capability × 10, from the target tables: the row of just that
/// generation with the most features ("sm_90a"), else the newest older row whose code runs there; empty when there is
/// none.
std::string target_for_capability(int capability);

}  // namespace kiln::runtime
