// The changes that would raise a kernel's theoretical occupancy (compiler/target/occupancy.h).
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/target/occupancy.h"

namespace kiln::profiler {

using target::BlockResources;
using target::name;
using target::Occupancy;
using target::occupancy;
using target::OccupancyLimiter;
using target::registers_for;
using target::shared_for;

/// Blocks of a cluster run at the same time within one GPC: so many on every chip that has clusters, and so many where
/// a kernel asks for more than portability.
inline constexpr int kPortableCluster = 8, kMostCluster = 16;
/// The most clusters of `blocks` blocks that a GPU of so many SMs holds at once, by what its SMs hold. An upper bound:
/// a cluster lies in one GPC whole, and which SMs a GPC has only the driver knows (cuOccupancyMaxActiveClusters), so
/// blocks are left over where `blocks` does not divide what a GPC holds.
int64_t most_clusters(const Occupancy& occupancy, int multiprocessors, int blocks);

/// The next higher occupancy that using less of one resource gives, everything else unchanged.
struct OccupancyStep {
  int64_t needs = 0;  // registers per thread, or bytes of shared memory per block: the most that will do
  Occupancy gives;
};
/// nullopt: no number of registers lets one block more share an SM.
std::optional<OccupancyStep> fewer_registers(const target::Target& target, const BlockResources& block);
/// nullopt: nor does any amount of shared memory.
std::optional<OccupancyStep> less_shared(const target::Target& target, const BlockResources& block);

}  // namespace kiln::profiler
