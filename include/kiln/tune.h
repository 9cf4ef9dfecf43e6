// The fastest of a kernel's configurations (docs/tuning.md).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/kernel.h"
#include "kiln/tensor.h"

namespace kiln {

/// What varies: values of constexpr parameters, and how the kernel is launched.
struct TuningConfig {
  std::vector<std::pair<std::string, int64_t>> constants = {};  // {"BLOCK", 1024}
  CodeOptions options = {};
};
/// "BLOCK: 1024, num_warps: 4, num_stages: 3, num_ctas: 1"
std::string to_string(const TuningConfig& config);

struct TuningOptions {
  double budget_s = 10;  // of wall time in all; a compilation or launch that has begun completes
  bool cold_cache = true;
  /// Tensors that every configuration must leave as the first one does; they are restored afterwards.
  std::vector<Tensor> compared = {};
  /// A configuration that accesses memory outside of its tensors fails by itself (kiln/check.h).
  bool check_accesses = true;
  /// Results of earlier runs are read, and those of this one kept, for this kernel, device and grid, and
  /// arguments of these dtypes, shapes and values.
  bool use_records = true;
  std::function<bool()> should_stop = {};  // polled often, from the calling thread
};

struct TunedConfig {
  size_t config = 0;    // its place among the configurations
  double us = 0;        // median; 0: not measured
  std::string problem;  // why it was not measured: it does not compile, cannot win, is wrong, or the budget ended
  int registers = -1;   // -1 unknown
  int64_t spill_bytes = -1;
};

struct Tuning {
  size_t best = 0;                // the fastest configuration
  std::vector<TunedConfig> rows;  // one per configuration, in their order
  bool from_records = false;      // nothing was measured now
};

/// Times every configuration of a launch over `grid(config)` programs. `args` are as for Kernel::launch; entries of
/// constants are replaced. kName: a constant that is no parameter; kLaunch: no configuration works, with the reasons as
/// notes; kInterrupted: stopped before anything was measured.
Result<Tuning> tune(const Kernel& kernel, const std::function<std::array<int64_t, 3>(const TuningConfig&)>& grid,
                    std::span<const std::optional<Arg>> args, std::span<const TuningConfig> configs,
                    const TuningOptions& options = {});

}  // namespace kiln
