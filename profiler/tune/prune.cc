#include "profiler/tune/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "profiler/roofline/occupancy.h"

namespace kiln::profiler {

namespace {

// Some spilling is often the price of a larger tile that pays; this much more than the least is not.
constexpr int64_t kSpillBytes = 1024;
constexpr int64_t kSpillFactor = 8;

std::string does_not_fit(const KernelInfo& info, const PruneLimits& limits) {
  const target::Target& t = *limits.target;
  const int threads = (info.num_warps + info.extra_warps) * 32;
  if (limits.max_threads > 0 && threads > limits.max_threads)
    return fmt::format("{} threads, and a block may have {}", threads, limits.max_threads);
  if (limits.shared_bytes > 0 && info.shared_bytes > limits.shared_bytes)
    return fmt::format("{} bytes of shared memory, and a block may have {}", info.shared_bytes, limits.shared_bytes);
  if (info.registers < 0) return "";
  if (int64_t{info.registers} * threads > t.registers_per_sm)
    return fmt::format("{} registers x {} threads, and the file has {}", info.registers, threads, t.registers_per_sm);
  const Occupancy o =
      occupancy(t, {.threads = threads, .registers_per_thread = info.registers, .shared_bytes = info.shared_bytes});
  if (o.blocks_per_sm == 0)
    return fmt::format("no block fits an SM, for its {}", name(o.by_registers == 0 ? OccupancyLimiter::kRegisters
                                                               : o.by_shared == 0  ? OccupancyLimiter::kSharedMemory
                                                                                   : OccupancyLimiter::kThreads));
  return "";
}

}  // namespace

std::vector<std::string> prune(std::span<const Compiled* const> compiled, const PruneLimits& limits) {
  std::vector<std::string> reasons(compiled.size());
  const bool gpu = limits.target && limits.target->is_cuda();
  int64_t least_spills = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < compiled.size(); ++i) {
    if (!compiled[i] || !gpu) continue;
    const KernelInfo& info = compiled[i]->info;
    reasons[i] = does_not_fit(info, limits);
    // Only among those that fit: what cannot run sets no measure.
    if (reasons[i].empty() && info.spill_bytes >= 0) least_spills = std::min(least_spills, info.spill_bytes);
  }
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (size_t i = 0; i < compiled.size(); ++i) {
    if (!compiled[i] || !reasons[i].empty()) continue;
    const KernelInfo& info = compiled[i]->info;
    // least_spills may be the largest number, which must not be multiplied.
    if (gpu && info.spill_bytes > kSpillBytes && info.spill_bytes / kSpillFactor > least_spills) {
      reasons[i] = fmt::format("{} bytes of spills, where another has {}", info.spill_bytes, least_spills);
      continue;
    }
    auto [first, fresh] = seen.emplace(std::pair(info.code, compiled[i]->launch), i);
    if (!fresh) reasons[i] = fmt::format("the same code as {}", compiled[first->second]->config);
  }
  return reasons;
}

}  // namespace kiln::profiler
