// Benchmark of the launch path: what a launch through Kiln's C++ API costs beside the raw call underneath it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kiln/result.h"

namespace kiln::bench {

/// Nanoseconds per call of both sides, one number per interleaved round, in ascending order.
struct LaunchCost {
  std::string device, what;
  int64_t slots = 0;
  std::vector<double> raw_ns, kiln_ns;
};

/// Gives `row` each device's launches of kernels with one and with eight arguments beside the raw call.
Status measure_launches(const std::function<void(const LaunchCost&)>& row);

/// Prints one row per device and number of arguments: raw call, Kernel::launch, and the difference, in ns of CPU time
/// per launch (minimum and median of interleaved rounds). Without a GPU only the rows of the cpu device.
Status run_launch_bench();

}  // namespace kiln::bench
