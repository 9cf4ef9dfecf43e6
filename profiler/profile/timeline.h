// What a profile is: everything that was seen between its start and its end, joined. Plain data, made by Session
// (session.h) or by hand in tests; every table, trace and finding is a function of it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/trace.h"

namespace kiln::profiler {

/// Nanoseconds of CLOCK_MONOTONIC. 0: not known.
using Ns = int64_t;

/// What a host thread did. Spans of one thread nest.
struct Span {
  trace::Step step = trace::Step::kRange;
  std::string name, detail, file;
  std::string operands;  // of the products that a range's flop counts, as declared: "bf16"
  int line = 0;
  Ns start = 0, end = 0;
  uint32_t thread = 0;
  int64_t bytes = 0;
  double flop = 0;
  uint64_t stream = 0;
  std::array<uint32_t, 3> grid = {};
  int parent = -1;  // the innermost span of the thread around it; -1: none

  Ns duration() const { return end - start; }
};

/// A call of the driver, as CUPTI saw it.
struct ApiCall {
  std::string name;  // "cuLaunchKernelEx"
  Ns start = 0, end = 0;
  uint32_t thread = 0;
  uint32_t correlation = 0;  // shared with the work that it queued; never 0
  uint32_t result = 0;       // CUresult
  int span = -1;             // the innermost span of the thread around it
};

enum class WorkKind : uint8_t { kKernel, kCopy, kFill };

/// What ran on a device: a kernel, a copy or a fill. On the CPU a kernel's span is also its work, with only name, times
/// and grid known.
struct Work {
  WorkKind kind = WorkKind::kKernel;
  std::string name;              // of a copy: "copy HtoD", "copy DtoH", "copy DtoD"; of a fill: "fill"
  Ns queued = 0, submitted = 0;  // into, and with, the command buffer; 0: not known
  Ns start = 0, end = 0;         // both 0: lost
  uint32_t correlation = 0;      // of the call that queued it; of a graph's node: of the graph's launch
  uint32_t device = 0, context = 0, stream = 0;
  uint32_t graph = 0;  // 0: not of a graph
  uint64_t graph_node = 0;
  int64_t bytes = 0;                                                      // of a copy or a fill
  std::array<uint32_t, 3> grid = {}, block = {}, cluster = {};            // in programs (blocks), threads, blocks
  int registers = -1;                                                     // per thread
  int64_t static_shared = -1, dynamic_shared = -1, executed_shared = -1;  // bytes per block
  int64_t local_bytes = -1;                                               // per thread: spills and stack
  int call = -1;                                                          // into Timeline::calls
  int span = -1;  // the innermost span around that call; on the CPU the kernel's own

  Ns duration() const { return end - start; }
  bool is_lost() const { return start == 0 && end == 0; }
};

/// A wait of the host.
struct Wait {
  std::string kind;  // "stream", "context", "event", "stream on event"
  Ns start = 0, end = 0;
  uint32_t context = 0, stream = 0;
  uint32_t correlation = 0;
  int call = -1, span = -1;
};

/// What the driver or the profiler did on the side, and which explains a spike.
struct Overhead {
  std::string kind;  // "driver compiler", "lazy loading", "activity buffer request", "command buffer full", …
  Ns start = 0, end = 0;
  uint32_t thread = 0;  // 0: not of one thread
  int span = -1;
};

struct MemoryChange {
  Ns at = 0;
  std::string device;
  int64_t bytes = 0;     // of tensors; negative: freed
  int64_t total = 0;     // of tensors of that device since the start of the profile, after it
  bool reserve = false;  // the allocator's own, from the driver, rather than a tensor's
  int span = -1;         // the innermost span in which it happened
};

/// What could not be seen, and why.
struct Unknown {
  std::string what, why;
};

struct Timeline {
  std::string device;    // "cuda:0", "cpu"
  std::string hardware;  // "NVIDIA H200"
  std::string target;    // "sm_90a", "host"
  std::string driver;
  int multiprocessors = 0;  // of a GPU; 0: not known
  Ns start = 0, end = 0;
  std::vector<Span> spans;     // by start; a parent comes before its children
  std::vector<ApiCall> calls;  // by start
  std::vector<Work> work;      // by start
  std::vector<Wait> waits;     // by start
  std::vector<Overhead> overheads;
  std::vector<MemoryChange> memory;  // by time
  int64_t dropped = 0;               // records that CUPTI lost
  double plain_call_us = -1;         // CPU time of a launch with no profiler attached; negative: not measured
  double plain_graph_us = -1;        // the same of a graph's launch
  std::vector<Unknown> unknown;

  bool is_cuda() const { return device.starts_with("cuda"); }
};

/// Spans of host events, with their parents, by start; and the changes of memory among them.
void add_events(Timeline& timeline, std::vector<trace::Event> events);

/// Sorts what was collected and fills in every `call` and `span`: work by its correlation, calls and waits by thread
/// and time. On the CPU, kernels' spans become work.
void join(Timeline& timeline);

}  // namespace kiln::profiler
