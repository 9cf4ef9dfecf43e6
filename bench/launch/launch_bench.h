// Benchmark of the launch path: what a launch through Kiln's C++ API costs beside the raw call underneath it.
#pragma once

#include "kiln/result.h"

namespace kiln::bench {

/// Prints one row per device and number of arguments: raw call, Kernel::launch, and the difference, in ns of CPU time
/// per launch (minimum and median of interleaved rounds). Without a GPU only the rows of the cpu device.
Status run_launch_bench();

}  // namespace kiln::bench
