#include "compiler/fusion/writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::fusion {

int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

std::string cluster_name(const WriteRequest& r) {
  std::vector<int> origins;
  for (int m : r.cluster.members) {
    if (r.dag.nodes[at(m)].row_stride > 0 && r.cluster.members.size() == 1) return "copy_rows";
    const int o = r.dag.nodes[at(m)].origin;
    if (std::find(origins.begin(), origins.end(), o) == origins.end()) origins.push_back(o);
  }
  std::sort(origins.begin(), origins.end());
  constexpr size_t kMostWords = 4;
  std::string out;
  for (size_t i = 0; i < origins.size(); ++i) {
    if (i == kMostWords) {
      out += "_and_more";
      break;
    }
    const Node& n = r.graph.nodes[at(origins[i])];
    out += (out.empty() ? "" : "_") + std::string(n.op == ExprOp::kCall ? n.attributes.function->name : name(n.op));
  }
  return out;
}

std::string cluster_comment(const WriteRequest& r) {
  std::string reads, writes;
  std::vector<int> seen;
  for (int m : r.cluster.members) {
    const DagNode& n = r.dag.nodes[at(m)];
    for (const Operand& o : n.operands) {
      if (o.is_number() || r.dag.nodes[at(o.node)].counts || r.cluster.contains(o.node) ||
          std::find(seen.begin(), seen.end(), o.node) != seen.end())
        continue;
      seen.push_back(o.node);
      const DagNode& from = r.dag.nodes[at(o.node)];
      reads += fmt::format("{}{}{}{}", reads.empty() ? "" : ", ", from.name.empty() ? "" : from.name + " ",
                           name(from.dtype), to_string(from.shape));
    }
    if (r.grouping.stored[at(m)])
      writes += fmt::format("{}{}{}", writes.empty() ? "" : ", ", name(n.dtype), to_string(n.shape));
  }
  return fmt::format("# {}: {} -> {}\n", cluster_name(r), reads, writes);
}

}  // namespace kiln::fusion
