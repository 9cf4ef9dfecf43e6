// Theoretical occupancy from a target's limits and a kernel's resources; needs no GPU.
// The rules are those of cuda_occupancy.h for compute capability 8.0 and later.
#pragma once
#include <cstdint>
#include <string_view>

#include "compiler/target/target.h"

namespace kiln::target {

inline constexpr int kWarpSize = 32;

/// What one block of a kernel takes.
struct BlockResources {
  int threads = 128;
  int registers_per_thread = 0;
  int64_t shared_bytes = 0;  // static and dynamic together
};

enum class OccupancyLimiter { kThreads, kBlocks, kRegisters, kSharedMemory, kDoesNotFit };
std::string_view name(OccupancyLimiter limiter);

struct Occupancy {
  int blocks_per_sm = 0;
  int warps_per_sm = 0;
  double fraction = 0;  // of the warps that an SM can hold
  OccupancyLimiter limiter = OccupancyLimiter::kDoesNotFit;
  /// Blocks that each resource alone would allow.
  int by_threads = 0, by_blocks = 0, by_registers = 0, by_shared = 0;
};

/// For a GPU target; shared memory may go up to the opt-in maximum.
Occupancy occupancy(const Target& target, const BlockResources& block);

/// The most registers per thread that let `blocks` blocks share an SM, or 0 when not even one register does.
int registers_for(const Target& target, const BlockResources& block, int blocks);

/// setmaxnreg counts registers by so many.
inline constexpr int kMovedRegisters = 8;
/// What it leaves to each thread of warps of which single threads run roles: as much as these like, and the least.
inline constexpr int kLeft = 40, kLeastLeft = 24;
/// Registers of a thread in the first `own_warps` warps of a block, when setmaxnreg leaves `given` to each thread of
/// the others, and `blocks` blocks share an SM.
int registers_moved(const Target& target, const BlockResources& block, int own_warps, int given, int blocks);

/// The most bytes of shared memory of a block that let `blocks` blocks share an SM; not positive when none do.
int64_t shared_for(const Target& target, int blocks);

}  // namespace kiln::target
