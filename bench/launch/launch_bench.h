// Benchmark of the launch path: what a launch through Kiln's C++ and C API costs beside the raw call underneath it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kiln/device.h"
#include "kiln/result.h"

namespace kiln::bench {

/// Nanoseconds per call of both sides, one number per interleaved round, in ascending order. `extra_ns` is the median
/// of what ours took more in each round: the two medians may come from different rounds, and a CPU changes its pace
/// between them by far more than a launch costs.
struct LaunchCost {
  std::string device, what;
  int64_t slots = 0;
  std::vector<double> raw_ns, kiln_ns;
  double extra_ns = 0;
  std::string api = "C++ Kernel::launch";
};

/// A raw launch of a kernel with three arguments, on a stream of its own that `drain` waits for: what a kernel's launch
/// costs at least on this machine. nullopt on the CPU.
struct RawCall {
  std::function<void()> launch;
  std::function<Status()> drain;
};
Result<std::optional<RawCall>> raw_launch(const Device& device);

/// Gives `row` each device's launches of kernels with one and with eight arguments beside the raw call, by both APIs.
Status measure_launches(const std::function<void(const LaunchCost&)>& row);

/// Prints one row per device, number of arguments and API: raw call, Kernel::launch or kiln_launch, and the difference,
/// in ns of CPU time per launch (minimum and median of interleaved rounds, the difference round by round). Without a
/// GPU only the rows of the cpu device.
Status run_launch_bench();

}  // namespace kiln::bench
