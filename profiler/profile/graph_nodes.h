// The time of each node of a CUDA graph. One call launches the whole graph, so its nodes have no launches of their own.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

/// Over the launches of its graph. Microseconds, medians.
struct GraphNode {
  uint32_t graph = 0;
  uint64_t node = 0;  // as the driver numbers it
  std::string name;   // of its kernel; "copy DtoD", "fill"
  int64_t launches = 0;
  double start = 0;  // after the first node's start
  double execution = 0;
  double gap = 0;         // its start - the end of all that began before it; negative: they overlapped
  bool is_first = false;  // nothing of the graph began before it, in any launch: it has no gap
};
/// By graph, in the order in which they run.
std::vector<GraphNode> graph_nodes(const Timeline& timeline);

/// At most `rows` of them; 0: all.
report::Table graph_nodes_table(const std::vector<GraphNode>& nodes, int64_t rows);

}  // namespace kiln::profiler
