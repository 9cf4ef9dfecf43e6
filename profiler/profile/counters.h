// Hardware counters of kernels as plain data: what was counted, and the figures that findings are made of.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kiln::profiler {

/// One launch: the value of each metric that was asked for, in their order. A value that the chip could not make is
/// NaN.
struct KernelCounters {
  std::string kernel;
  std::vector<double> values;
};

/// Figures of a kernel from its counters: medians over its launches; percent where the name says so. Missing: not
/// asked for, or not to be had.
struct KernelFigures {
  std::string kernel;
  int launches = 0;
  std::optional<double> us;
  std::optional<double> achieved_occupancy;  // percent of an SM's maximum of warps, over its active cycles
  std::optional<double> tensor_percent;      // cycles in which the tensor pipe works
  std::optional<double> issue_percent;       // cycles in which a scheduler issues
  std::optional<double> dram_percent;        // of the peak rate of memory
  std::optional<double> dram_read_bytes, dram_write_bytes;
  std::optional<double> l1_hit_percent, l2_hit_percent;
  std::optional<double> bank_conflicts;       // of shared memory, extra cycles
  std::optional<double> sectors_per_request;  // of global loads: at best 4 for 4 bytes a lane, 16 for 16
  std::optional<double> sm_mhz;
};

}  // namespace kiln::profiler
