#include "compiler/target/occupancy.h"

#include <algorithm>
#include <limits>

namespace kiln::target {

namespace {

constexpr int kSubPartitions = 4;          // each has a quarter of the registers and takes whole warps
constexpr int kRegisterGranularity = 256;  // registers, per warp
constexpr int64_t kSharedGranularity = 128;
constexpr int64_t kReservedShared = 1024;  // per block, taken by the system
constexpr int kMaxRegistersPerThread = 255;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int blocks_by_registers(const Target& target, int registers, int warps) {
  if (registers > kMaxRegistersPerThread) return 0;
  if (registers == 0) return std::numeric_limits<int>::max();
  int per_warp = static_cast<int>(round_up(static_cast<int64_t>(registers) * kWarpSize, kRegisterGranularity));
  int warps_per_sm = target.registers_per_sm / kSubPartitions / per_warp * kSubPartitions;
  return warps_per_sm / warps;
}

}  // namespace

std::string_view name(OccupancyLimiter limiter) {
  switch (limiter) {
    case OccupancyLimiter::kThreads:
      return "threads";
    case OccupancyLimiter::kBlocks:
      return "blocks";
    case OccupancyLimiter::kRegisters:
      return "registers";
    case OccupancyLimiter::kSharedMemory:
      return "shared";
    case OccupancyLimiter::kDoesNotFit:
      return "does not fit";
  }
  return "";
}

Occupancy occupancy(const Target& target, const BlockResources& block) {
  Occupancy o;
  int warps = (block.threads + kWarpSize - 1) / kWarpSize;
  if (warps == 0 || !target.is_cuda()) return o;
  int max_warps = target.threads_per_sm / kWarpSize;
  o.by_threads = max_warps / warps;
  o.by_blocks = target.blocks_per_sm;
  o.by_registers = blocks_by_registers(target, block.registers_per_thread, warps);
  int64_t shared = round_up(block.shared_bytes + kReservedShared, kSharedGranularity);
  o.by_shared = block.shared_bytes > target.shared_per_block ? 0 : static_cast<int>(target.shared_per_sm / shared);

  o.blocks_per_sm = std::min({o.by_threads, o.by_blocks, o.by_registers, o.by_shared});
  o.warps_per_sm = o.blocks_per_sm * warps;
  o.fraction = static_cast<double>(o.warps_per_sm) / max_warps;
  if (o.blocks_per_sm == 0) return o;
  // Of equal limits, name the one that a kernel's author can change least: the machine's own before the kernel's.
  if (o.by_threads == o.blocks_per_sm)
    o.limiter = OccupancyLimiter::kThreads;
  else if (o.by_blocks == o.blocks_per_sm)
    o.limiter = OccupancyLimiter::kBlocks;
  else if (o.by_registers == o.blocks_per_sm)
    o.limiter = OccupancyLimiter::kRegisters;
  else
    o.limiter = OccupancyLimiter::kSharedMemory;
  return o;
}

int registers_for(const Target& target, const BlockResources& block, int blocks) {
  int warps = (block.threads + kWarpSize - 1) / kWarpSize;
  for (int r = kMaxRegistersPerThread; r > 0; --r)
    if (blocks_by_registers(target, r, warps) >= blocks) return r;
  return 0;
}

int registers_moved(const Target& target, const BlockResources& block, int own_warps, int given, int blocks) {
  constexpr int kMost = 240;
  const int warps = block.threads / kWarpSize;
  const int even = registers_for(target, block, blocks) / kMovedRegisters * kMovedRegisters;
  return std::min((even * warps - given * (warps - own_warps)) / own_warps / kMovedRegisters * kMovedRegisters, kMost);
}

int64_t shared_for(const Target& target, int blocks) {
  return target.shared_per_sm / blocks / kSharedGranularity * kSharedGranularity - kReservedShared;
}

}  // namespace kiln::target
