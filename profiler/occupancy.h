// Theoretical occupancy from a target's limits and a kernel's resources; needs no GPU.
// The rules are those of cuda_occupancy.h for compute capability 8.0 and later.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/target/target.h"

namespace kiln::profiler {

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
Occupancy occupancy(const target::Target& target, const BlockResources& block);

/// Blocks of a cluster run at the same time within one GPC: so many on every chip that has clusters, and so many where
/// a kernel asks for more than portability.
inline constexpr int kPortableCluster = 8, kMostCluster = 16;
/// The most clusters of `blocks` blocks that a GPU of so many SMs holds at once, by what its SMs hold. An upper bound:
/// a cluster lies in one GPC whole, and which SMs a GPC has only the driver knows (cuOccupancyMaxActiveClusters), so
/// blocks are left over where `blocks` does not divide what a GPC holds.
int64_t most_clusters(const Occupancy& occupancy, int multiprocessors, int blocks);

/// The most registers per thread that let `blocks` blocks share an SM, or 0 when not even one register does.
int registers_for(const target::Target& target, const BlockResources& block, int blocks);

/// The next occupancy that giving back some of one resource brings, everything else as it is.
struct OccupancyStep {
  int64_t needs = 0;  // registers per thread, or bytes of shared memory per block: the most that will do
  Occupancy gives;
};
/// nullopt: no number of registers lets one block more share an SM.
std::optional<OccupancyStep> fewer_registers(const target::Target& target, const BlockResources& block);
/// nullopt: nor does any amount of shared memory.
std::optional<OccupancyStep> less_shared(const target::Target& target, const BlockResources& block);

}  // namespace kiln::profiler
