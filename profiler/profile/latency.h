// The phases of a launch, from the driver's call to the kernel's end (docs/profiling.md, "Launch latency").
//
// A launch is idle when the stream had nothing left to do when the call began, so that what it waited for is overhead;
// otherwise it is queued, and what it waited for is mostly the work before it. The two are never mixed in one column.
// First launches, which load or compile code, are separate: their times are not those of a launch in a loop.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

enum class LaunchPiece : uint8_t {
  kCall,         // on a GPU: the driver's call; on the CPU: the launch without the kernel
  kPrepare,      // queued - call's start
  kBatching,     // submitted - queued
  kFrontEnd,     // start - submitted: the GPU's front end, and the stream's work before it
  kLaunchStart,  // start - call's start
  kExecution,    // end - start
  kGap,          // start - end of the work before it on the stream
  kOverlap,      // that end - start, where it began before it (programmatic dependent launch): it has no gap
};
inline constexpr int kLaunchPieces = 8;

/// Microseconds of each launch of which a piece is known.
struct PieceSamples {
  std::vector<double> idle, queued;
};

/// The first launch of a kernel in the profile, when it did more than launch. Microseconds; 0: nothing of it.
struct FirstLaunch {
  std::string kernel;
  double whole = 0;       // of the launch, or of the driver's call when no span encloses it
  double compile = 0;     // a specialisation that was not in memory
  double load = 0;        // its machine code to the device
  double lazy_load = 0;   // by the driver, on the first call of a function
  double driver_jit = 0;  // PTX by the driver's compiler
  std::vector<std::pair<std::string, double>> phases;  // of `compile`, in their order
  double rest() const { return whole - compile - load - lazy_load - driver_jit; }
};

/// Launches of one CUDA graph: one call, many kernels. Microseconds, medians over its launches.
struct GraphLaunches {
  uint32_t graph = 0;
  int64_t launches = 0, nodes = 0;
  double call = -1, launch_start = -1, makespan = -1, work = -1;
  double node_gap = -1;  // between a node's end and the next one's start; -1: fewer than two nodes
};

struct Latency {
  int64_t idle = 0, queued = 0;  // launches that are counted
  PieceSamples pieces[kLaunchPieces];
  std::vector<FirstLaunch> first;
  std::vector<GraphLaunches> graphs;
  std::vector<std::pair<std::string, int64_t>> disturbed;  // kind of overhead, launches whose call it stood in
  double plain_call_us = -1, plain_graph_us = -1;          // with no profiler attached; negative: not measured

  const PieceSamples& of(LaunchPiece piece) const { return pieces[static_cast<size_t>(piece)]; }
  /// Launches that began before the work ahead of them on the stream had ended.
  int64_t early() const {
    const PieceSamples& overlap = of(LaunchPiece::kOverlap);
    return static_cast<int64_t>(overlap.idle.size() + overlap.queued.size());
  }
};
Latency latency(const Timeline& timeline);

report::Table latency_table(const Timeline& timeline, const Latency& latency);
/// Empty when no launch did more than launch.
report::Table first_launches_table(const Latency& latency);
report::Table graphs_table(const Latency& latency);

}  // namespace kiln::profiler
