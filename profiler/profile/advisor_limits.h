// Every number that the advisor compares with, once, with its reason.
#pragma once
#include <cstddef>
#include <cstdint>

#include "profiler/profile/timeline.h"

namespace kiln::profiler::limits {

/// Of one rule: what weighs less than the third place is seldom worth reading.
inline constexpr size_t kFindingsPerRule = 3;

// overhead-bound: at twice the GPU's time a program that feeds it perfectly would still leave it idle half the time.
// Fewer launches than this are no loop, and a single one always has more CPU time than a short kernel.
inline constexpr double kOverheadRatio = 2;
inline constexpr int64_t kOverheadLaunches = 10;

// gpu-bound: what is left is the gaps between kernels, about 1 µs each.
inline constexpr double kBusy = 0.9;

// hotspot: no other kernel can matter more.
inline constexpr double kDominates = 0.5;

// short-launches: a launch costs 2 to 3 µs of CPU time, so under 10 µs its tax is over a fifth of the work; 50 of them
// make up 0.1 ms.
inline constexpr int64_t kManyLaunches = 50;
inline constexpr Ns kShortKernel = 10'000;

// cold-start: a first step varies by less than half even with cold caches; thrice is a different thing. A tenth of the
// time spent in compilation and loading is worth a warm-up; under a millisecond nobody feels it.
inline constexpr double kColdRatio = 3;
inline constexpr double kColdShare = 0.1;
inline constexpr Ns kColdLeast = 1'000'000;
inline constexpr size_t kColdSteps = 3;   // the first, and two to compare with
inline constexpr size_t kColdPhases = 4;  // named, the longest ones

inline constexpr double kColdUnnamed = 1.25;  // the phases make up under 80 %: the rest is said

// slow-begin: half of a range's time, and far more than the interpreter takes for a statement.
inline constexpr double kSlowBegin = 0.5;
inline constexpr Ns kSlowBeginLeast = 200'000;

// unneeded-sync: launch and wait cost 8 µs where a launch alone costs 2 to 3, so a wait that covers under 50 µs of work
// adds more than a tenth. Three of one line are a loop. Below 5 % of the loop's time it does not matter.
inline constexpr Ns kLittleWork = 50'000;
inline constexpr int64_t kLoop = 3;
inline constexpr double kSyncShare = 0.05;

// profilers-gap: longer than any gap between kernels of a full queue.
inline constexpr Ns kProfilersGap = 10'000;

// spread: half the interquartile range over the median. Clocks that hold give under 1 %; kernels under 5 µs are at the
// timestamps' own noise, and quartiles of fewer than 10 runs say little.
inline constexpr double kSpread = 0.05;
inline constexpr int kSpreadRuns = 10;
inline constexpr Ns kSpreadLeast = 5'000;

// Kernels under a tenth of the device's time are not worth tuning.
inline constexpr double kWorthTuning = 0.1;

// low-tensor-use: a pipelined product keeps the tensor pipe at 60 to 90 %; mma.sync without a pipeline gives 30 %.
inline constexpr double kLowTensor = 20;
// A kernel over this is bound by its tensor cores, whatever its occupancy.
inline constexpr double kGoodTensor = 60;

// occupancy-limit: under half of the warps, latency is hidden only by work within each warp.
inline constexpr double kLowOccupancy = 0.5;

// memory-bound: a copy kernel reaches 85 to 93 % of the peak rate.
inline constexpr double kNearCeiling = 80;

// bank-conflicts: extra cycles of shared memory, of all cycles of the kernel.
inline constexpr double kConflictShare = 0.05;

// uncoalesced: 4 sectors are a warp of f32 side by side, 8 of f64 or of two f32 per lane, 16 of four f32 per lane.
inline constexpr double kManySectors = 17;

// one-stream: kernels that fill under half of the SMs, a quarter of the time, back to back (a gap that a full queue
// leaves is 1 µs).
inline constexpr double kHalfFull = 0.5;
inline constexpr double kOneStreamShare = 0.25;
inline constexpr int64_t kOneStreamKernels = 8;
inline constexpr Ns kBackToBack = 2'000;

}  // namespace kiln::profiler::limits
