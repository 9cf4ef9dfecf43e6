#include "compiler/fusion/recompute.h"

#include <algorithm>

namespace kiln::fusion {

namespace {

/// FLOP per element that no kernel notices beside its memory.
constexpr int kCheapFlop = 16;

double touched_bytes(const Dag& dag, const Operand& o) {
  double n = size_of(dag.nodes[at(o.node)].dtype);
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (o.strides[d] != 0) n *= static_cast<double>(o.shape[d]);
  return n;
}

/// Whether a node's operands are in memory, and to read them costs no more than to read it. Rows' values count little.
bool is_cheap(const Dag& dag, const Grouping& grouping, int node) {
  const DagNode& n = dag.nodes[at(node)];
  if (n.kind != DagKind::kPointwise || n.op == ExprOp::kCall || info(n.op).flop > kCheapFlop) return false;
  if (n.op == ExprOp::kTake) return false;  // its places are anywhere
  double bytes = 0;
  for (const Operand& o : n.operands) {
    if (o.is_number()) continue;
    const DagNode& from = dag.nodes[at(o.node)];
    if (from.kind != DagKind::kLeaf && !grouping.stored[at(o.node)]) return false;
    if (from.kind != DagKind::kLeaf && grouping.cluster_of[at(o.node)] == grouping.cluster_of[at(node)]) return false;
    bytes += touched_bytes(dag, o);
  }
  return bytes <= 1.05 * static_cast<double>(numel(n.shape)) * size_of(n.dtype);
}

/// Where the copy of `node` runs in the consumer's cluster, if it can join that.
std::optional<std::vector<int>> place(const Dag& dag, const Cluster& cluster, int node, int consumer, size_t operand) {
  const DagNode& n = dag.nodes[at(node)];
  if (dag.nodes[at(consumer)].kind == DagKind::kProduct) return std::nullopt;
  const auto axes = axis_map(dag.nodes[at(consumer)].operands[operand], n.shape);
  if (!axes) return std::nullopt;
  const std::vector<int> loops = operand_map(dag, cluster, consumer, operand);
  std::vector<int> map(n.shape.size(), -1);
  for (size_t d = 0; d < axes->size(); ++d)
    if ((*axes)[d] >= 0) map[at((*axes)[d])] = loops[d];
  return map;
}

}  // namespace

void recompute_cheap(Dag& dag, Grouping& grouping) {
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const int node = static_cast<int>(i);
    const bool output =
        std::any_of(dag.outputs.begin(), dag.outputs.end(), [&](const Operand& o) { return o.node == node; });
    if (!grouping.stored[i] || output || !is_cheap(dag, grouping, node)) continue;
    const int own = grouping.cluster_of[i];
    // All of its readers elsewhere, or none: a value that is stored for one is there for the others.
    struct Reader {
      int cluster, consumer;
      size_t operand;
      std::vector<int> map;
    };
    std::vector<Reader> readers;
    bool all = true, at_home = false;
    for (size_t c = 0; c < dag.nodes.size(); ++c)
      for (size_t k = 0; k < dag.nodes[c].operands.size(); ++k) {
        if (dag.nodes[c].operands[k].node != node || grouping.cluster_of[c] < 0) continue;
        if (grouping.cluster_of[c] == own) {
          at_home = true;
          continue;
        }
        auto map = place(dag, grouping.clusters[at(grouping.cluster_of[c])], node, static_cast<int>(c), k);
        all = all && map.has_value();
        if (map) readers.push_back({grouping.cluster_of[c], static_cast<int>(c), k, std::move(*map)});
      }
    if (!all || (!at_home && grouping.clusters[at(own)].members.size() == 1 && readers.size() > 4)) continue;
    for (size_t r = 0; r < readers.size(); ++r) {
      Cluster& cluster = grouping.clusters[at(readers[r].cluster)];
      // One copy for readers of one cluster that read it along the same loops.
      int copy = -1;
      for (size_t s = 0; s < r; ++s)
        if (readers[s].cluster == readers[r].cluster && readers[s].map == readers[r].map)
          copy = dag.nodes[at(readers[s].consumer)].operands[readers[s].operand].node;
      if (copy < 0) {
        copy = static_cast<int>(dag.nodes.size());
        dag.nodes.push_back(dag.nodes[i]);
        grouping.cluster_of.push_back(readers[r].cluster);
        grouping.stored.push_back(false);
        cluster.members.insert(cluster.members.begin(), copy);
        cluster.maps.insert(cluster.maps.begin(), readers[r].map);
      }
      dag.nodes[at(readers[r].consumer)].operands[readers[r].operand].node = copy;
    }
    grouping.stored[i] = false;
    if (at_home) continue;
    Cluster& home = grouping.clusters[at(own)];
    const auto m = std::find(home.members.begin(), home.members.end(), node);
    home.maps.erase(home.maps.begin() + (m - home.members.begin()));
    home.members.erase(m);
    grouping.cluster_of[i] = -1;
  }
  // Clusters that lost everything go.
  std::vector<int> place_of(grouping.clusters.size(), -1);
  std::vector<Cluster> left;
  for (size_t c = 0; c < grouping.clusters.size(); ++c) {
    if (grouping.clusters[c].members.empty()) continue;
    place_of[c] = static_cast<int>(left.size());
    left.push_back(std::move(grouping.clusters[c]));
  }
  grouping.clusters = std::move(left);
  for (int& c : grouping.cluster_of)
    if (c >= 0) c = place_of[at(c)];
}

}  // namespace kiln::fusion
