// A timeline as a picture has it: rows of slices that nest and never partly overlap. The trace file and the page both
// draw these.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/profile/timeline.h"

namespace kiln::profiler {

/// Which of the timeline's lists a slice is of.
enum class SliceKind : uint8_t { kSpan, kCall, kWait, kWork, kOverhead };

struct Slice {
  SliceKind kind = SliceKind::kSpan;
  int index = 0;
  int depth = 0;  // slices of the same lane around it
  Ns start = 0, end = 0;
};

enum class LaneKind : uint8_t {
  kThread,    // statements, ranges, operations, steps, calls of the driver, compile phases, waits
  kStream,    // kernels, copies and fills of one stream of a device
  kWaits,     // waits whose call was not seen
  kOverhead,  // what the driver did on the side
  kProfiler,  // what the profiler itself cost
};

struct Lane {
  LaneKind kind = LaneKind::kThread;
  uint32_t thread = 0;                           // of kThread
  uint32_t device = 0, context = 0, stream = 0;  // of kStream
  int part = 0;  // slices that overlap others of their lane partly (kernels at once on a stream) are in part 1, 2, …
  std::string name;
  std::vector<Slice> slices;  // by start, enclosing ones first
};

/// Threads in the order of their first slice, the rest of the host, streams by number, the profiler. What has no times
/// is in no lane.
std::vector<Lane> lanes(const Timeline& timeline);

/// What a slice is called: "script.py:12", "add_kernel", "cuLaunchKernelEx".
std::string title(const Timeline& timeline, const Slice& slice);
std::string title(const Span& span);

/// What kind of thing a slice is: "kernel", "copy", "driver", "wait"; of a span its step's name.
std::string_view category(const Timeline& timeline, const Slice& slice);

/// Whether an overhead is the profiler's own rather than the driver's.
bool is_of_profiler(const Overhead& overhead);

/// The range of all known times; {start, end} of the timeline when all are within it.
struct Extent {
  Ns start = 0, end = 0;
};
Extent extent(const Timeline& timeline);

}  // namespace kiln::profiler
