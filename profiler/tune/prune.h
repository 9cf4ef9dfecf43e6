// Which compiled configurations need not be measured, by their figures alone.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "kiln/kernel.h"

namespace kiln::profiler {

/// What a device allows.
struct PruneLimits {
  const target::Target* target = nullptr;  // null or the host: only duplicates are found
  int64_t shared_bytes = 0;                // most of one program; 0: no limit
  int max_threads = 0;                     // most of one program; 0: no limit
};

struct Compiled {
  KernelInfo info;
  std::string config;  // names it in a reason
  std::string launch;  // grid and runtime arguments as a text: equal code launched alike is a duplicate
};

/// For each why it needs no measuring, or "": more registers than the file has, more shared memory or threads than a
/// program may have, no block fits an SM, spills far above those of others, the same code as an earlier one. `compiled`
/// may hold nulls, for what did not compile. At least one stays of those that fit.
std::vector<std::string> prune(std::span<const Compiled* const> compiled, const PruneLimits& limits);

}  // namespace kiln::profiler
