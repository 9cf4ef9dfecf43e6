#include "profiler/roofline/occupancy.h"

#include <algorithm>

namespace kiln::profiler {

int64_t most_clusters(const Occupancy& occupancy, int multiprocessors, int blocks) {
  if (blocks < 1 || blocks > kMostCluster) return 0;
  return int64_t{multiprocessors} * occupancy.blocks_per_sm / blocks;
}

std::optional<OccupancyStep> fewer_registers(const target::Target& target, const BlockResources& block) {
  const int now = occupancy(target, block).blocks_per_sm;
  BlockResources fewer = block;
  // Registers are handed out in units, so that most of these steps change nothing.
  for (int r = block.registers_per_thread - 1; r > 0; --r) {
    fewer.registers_per_thread = r;
    if (Occupancy o = occupancy(target, fewer); o.blocks_per_sm > now) return OccupancyStep{r, o};
  }
  return std::nullopt;
}

std::optional<OccupancyStep> less_shared(const target::Target& target, const BlockResources& block) {
  const int now = occupancy(target, block).blocks_per_sm;
  BlockResources less = block;
  less.shared_bytes = std::min(shared_for(target, now + 1), target.shared_per_block);
  if (less.shared_bytes < 0 || less.shared_bytes >= block.shared_bytes) return std::nullopt;
  Occupancy o = occupancy(target, less);
  if (o.blocks_per_sm <= now) return std::nullopt;
  return OccupancyStep{less.shared_bytes, o};
}

}  // namespace kiln::profiler
