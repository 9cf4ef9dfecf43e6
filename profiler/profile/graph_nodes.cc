#include "profiler/profile/graph_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/measure/stats.h"
#include "profiler/profile/intervals.h"

namespace kiln::profiler {

std::vector<GraphNode> graph_nodes(const Timeline& t) {
  struct Launch {
    Ns first = 0, end = 0;
  };
  struct Samples {
    std::string name;
    std::vector<double> start, execution, gap;
  };
  std::map<std::pair<uint32_t, uint32_t>, Launch> launches;  // by graph and correlation
  std::map<std::pair<uint32_t, uint64_t>, Samples> samples;  // by graph and node
  for (const Work& w : t.work) {                             // in the order in which they began
    if (!w.graph || w.is_lost()) continue;
    const auto [launch, is_first] = launches.try_emplace({w.graph, w.correlation}, Launch{w.start, w.end});
    Samples& s = samples[{w.graph, w.graph_node}];
    s.name = w.name;
    s.start.push_back(us(w.start - launch->second.first));
    s.execution.push_back(us(w.duration()));
    if (!is_first) s.gap.push_back(us(w.start - launch->second.end));
    launch->second.end = std::max(launch->second.end, w.end);
  }
  std::vector<GraphNode> nodes;
  for (const auto& [key, s] : samples)
    nodes.push_back({key.first, key.second, s.name, static_cast<int64_t>(s.start.size()), median(s.start),
                     median(s.execution), s.gap.empty() ? 0 : median(s.gap), s.gap.empty()});
  std::stable_sort(nodes.begin(), nodes.end(), [](const GraphNode& a, const GraphNode& b) {
    return a.graph != b.graph ? a.graph < b.graph : a.start < b.start;
  });
  return nodes;
}

report::Table graph_nodes_table(const std::vector<GraphNode>& nodes, int64_t rows) {
  using report::Align;
  using report::Cell;
  report::Table table({{"graph", "", Align::kLeft},
                       {"node", ""},
                       {"what it runs", "", Align::kLeft, "name"},
                       {"launches", ""},
                       {"start", "us"},
                       {"execution", "us"},
                       {"gap", "us"}});
  table.set_title("nodes of graphs");
  const size_t shown = rows > 0 ? std::min(nodes.size(), static_cast<size_t>(rows)) : nodes.size();
  int64_t place = 0;
  bool beside = false;
  for (size_t i = 0; i < shown; ++i) {
    const GraphNode& n = nodes[i];
    place = i && nodes[i - 1].graph == n.graph ? place + 1 : 1;
    table.add_row({fmt::format("{}", n.graph), Cell::of(place), n.name, Cell::of(n.launches), Cell::of(n.start, 2),
                   Cell::of(n.execution, 2), n.is_first ? Cell("") : Cell::of(n.gap, 2)});
    beside = beside || n.gap < 0;
  }
  if (shown < nodes.size())
    table.add_note(
        fmt::format("{} more node{}: rows=0 shows all", nodes.size() - shown, nodes.size() - shown == 1 ? "" : "s"));
  table.add_note(
      "medians over the graph's launches; start: after its first node's, and nodes are numbered in that order");
  if (beside) table.add_note("a negative gap: it began before the previous work had ended");
  return table;
}

}  // namespace kiln::profiler
