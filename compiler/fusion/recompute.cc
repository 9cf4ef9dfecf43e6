#include "compiler/fusion/recompute.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "compiler/fusion/split.h"

namespace kiln::fusion {

namespace {

/// FLOP per element that no kernel notices beside its memory.
constexpr int kCheapFlop = 16;

/// Nodes that compute one element of the last of them from what is in memory, operands first.
using Chain = std::vector<int>;

/// The chain of a node: it, and what is computed for it in its kernel and stored nowhere. Empty where that is dear, or
/// reading its inputs costs more than reading its value. What rows share is stored and counts little, and what its
/// readers read anyway counts nothing. What a product's epilogue only widens (float32 of its halves, a square) is
/// computed from the product, which is stored instead.
class ChainOf {
 public:
  /// `readers`: the clusters that read the node.
  ChainOf(const Dag& dag, const Grouping& grouping, const std::set<int>& readers)
      : dag_(dag), grouping_(grouping), readers_(readers) {}

  /// Products, and values that rows share, that the chain needs stored.
  const std::vector<int>& to_store() const { return to_store_; }

  Chain operator()(int node) {
    const DagNode& n = dag_.nodes[at(node)];
    elements_ = numel(n.shape);
    if (!add(node)) return {};
    const double value = static_cast<double>(numel(n.shape)) * size_of(n.dtype);
    double most = stores_product_ ? 0.95 : 1.05;
    // What the L2 does not hold until it is read is written to memory, once for all readers.
    if (!stores_product_ && value > kL2Bytes) most += 1 / static_cast<double>(std::max<size_t>(1, readers_.size()));
    return bytes_ <= most * value ? chain_ : Chain{};
  }

 private:
  bool add(int node) {
    if (std::ranges::find(chain_, node) != chain_.end()) return true;
    const DagNode& n = dag_.nodes[at(node)];
    if (n.kind != DagKind::kPointwise || n.op == ExprOp::kCall) return false;
    if (n.op == ExprOp::kTake) return false;  // its places are anywhere
    flop_ += info(n.op).flop;
    if (flop_ > kCheapFlop) return false;
    for (const Operand& o : n.operands) {
      if (o.is_number()) continue;
      const DagNode& from = dag_.nodes[at(o.node)];
      const bool here =
          from.kind != DagKind::kLeaf && grouping_.cluster_of[at(o.node)] == grouping_.cluster_of[at(node)];
      const bool stored = from.kind == DagKind::kLeaf || grouping_.stored[at(o.node)];
      constexpr int64_t kRow = 64;  // elements of the value for each of what its rows share
      // Of a kernel of rows, which stays; one of elements would be left with this value alone.
      const bool is_of_rows = numel(from.shape) * kRow <= elements_ && here &&
                              grouping_.clusters[at(grouping_.cluster_of[at(node)])].reduces();
      if (here && !stored && (from.kind == DagKind::kProduct || is_of_rows)) {
        to_store_.push_back(o.node);
        stores_product_ = stores_product_ || !is_of_rows;
      } else if (here && !stored) {
        if (!axis_map(o, from.shape) || !add(o.node)) return false;
        continue;
      } else if (!stored) {
        return false;
      }
      if (!is_read_anyway(o) && reads_.emplace(o.node, o.offset, o.strides).second)
        bytes_ += static_cast<double>(touched(o)) * size_of(from.dtype);
    }
    chain_.push_back(node);
    return true;
  }

  /// Whether each reader has the same elements in the same order among its operands.
  bool is_read_anyway(const Operand& o) const {
    auto same = [&](const Operand& other) {
      return other.node == o.node && other.shape == o.shape && other.strides == o.strides && other.offset == o.offset;
    };
    return !readers_.empty() && std::ranges::all_of(readers_, [&](int cluster) {
      return std::ranges::any_of(grouping_.clusters[at(cluster)].members, [&](int m) {
        const DagNode& n = dag_.nodes[at(m)];
        return n.kind != DagKind::kProduct && n.op != ExprOp::kTake && std::ranges::any_of(n.operands, same);
      });
    });
  }

  const Dag& dag_;
  const Grouping& grouping_;
  const std::set<int>& readers_;
  Chain chain_;
  std::vector<int> to_store_;
  std::set<std::tuple<int, int64_t, Shape>> reads_;
  int64_t elements_ = 0;
  bool stores_product_ = false;
  int flop_ = 0;
  double bytes_ = 0;
};

/// The loops of what an operand reads, from those of the operand.
std::vector<int> loops_of(const Operand& o, const DagNode& from, const std::vector<int>& loops) {
  const auto axes = axis_map(o, from.shape);
  std::vector<int> map(from.shape.size(), -1);
  for (size_t d = 0; d < axes->size(); ++d)
    if ((*axes)[d] >= 0) map[at((*axes)[d])] = loops[d];
  return map;
}

/// Where the copy of `node` runs in the consumer's cluster, if it can join that.
std::optional<std::vector<int>> place(const Dag& dag, const Cluster& cluster, int node, int consumer, size_t operand) {
  const DagNode& n = dag.nodes[at(node)];
  if (dag.nodes[at(consumer)].kind == DagKind::kProduct) return std::nullopt;
  const Operand& o = dag.nodes[at(consumer)].operands[operand];
  if (!axis_map(o, n.shape)) return std::nullopt;
  return loops_of(o, n, operand_map(dag, cluster, consumer, operand));
}

/// The chain once more, its last node along these loops of the cluster. Gives that node.
int copied(Dag& dag, Grouping& grouping, const Chain& chain, int to, const std::vector<int>& loops) {
  std::vector<int> copies;
  std::vector<std::vector<int>> maps(chain.size());
  maps.back() = loops;
  const auto place_in_chain = [&](int node) { return std::ranges::find(chain, node) - chain.begin(); };
  for (size_t i = chain.size(); i-- > 0;)
    for (const Operand& o : dag.nodes[at(chain[i])].operands)
      if (const auto p = static_cast<size_t>(place_in_chain(o.node)); !o.is_number() && p < i)
        maps[p] = loops_of(o, dag.nodes[at(o.node)], maps[i]);
  for (int node : chain) {
    DagNode n = dag.nodes[at(node)];
    for (Operand& o : n.operands)
      if (const auto p = static_cast<size_t>(place_in_chain(o.node)); !o.is_number() && p < copies.size())
        o.node = copies[p];
    copies.push_back(static_cast<int>(dag.nodes.size()));
    dag.nodes.push_back(std::move(n));
    grouping.cluster_of.push_back(to);
    grouping.stored.push_back(false);
  }
  Cluster& cluster = grouping.clusters[at(to)];
  cluster.members.insert(cluster.members.begin(), copies.begin(), copies.end());
  cluster.maps.insert(cluster.maps.begin(), maps.begin(), maps.end());
  return copies.back();
}

/// Takes a node that nothing reads any more out of its kernel.
void drop(Grouping& grouping, int node) {
  Cluster& home = grouping.clusters[at(grouping.cluster_of[at(node)])];
  const auto m = std::ranges::find(home.members, node);
  home.maps.erase(home.maps.begin() + (m - home.members.begin()));
  home.members.erase(m);
  grouping.cluster_of[at(node)] = -1;
}

bool is_read(const Dag& dag, const Grouping& grouping, int node) {
  for (size_t c = 0; c < dag.nodes.size(); ++c)
    if (grouping.cluster_of[c] >= 0)
      for (const Operand& o : dag.nodes[c].operands)
        if (o.node == node) return true;
  return std::ranges::any_of(dag.outputs, [&](const Operand& o) { return o.node == node; });
}

}  // namespace

void recompute_cheap(Dag& dag, Grouping& grouping) {
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const int node = static_cast<int>(i);
    const bool output =
        std::any_of(dag.outputs.begin(), dag.outputs.end(), [&](const Operand& o) { return o.node == node; });
    if (!grouping.stored[i] || output) continue;
    const int own = grouping.cluster_of[i];
    struct Reader {
      int cluster, consumer;
      size_t operand;
      std::vector<int> map;
    };
    std::vector<Reader> readers;  // elsewhere
    bool at_home = false;
    for (size_t c = 0; c < dag.nodes.size(); ++c)
      for (size_t k = 0; k < dag.nodes[c].operands.size(); ++k) {
        if (dag.nodes[c].operands[k].node != node || grouping.cluster_of[c] < 0) continue;
        if (grouping.cluster_of[c] == own)
          at_home = true;
        else
          readers.push_back({grouping.cluster_of[c], static_cast<int>(c), k, {}});
      }
    std::set<int> clusters;
    for (const Reader& r : readers) clusters.insert(r.cluster);
    ChainOf chain_of(dag, grouping, clusters);
    const Chain chain = chain_of(node);
    if (chain.empty()) continue;
    // All of them, or none: a value that is stored for one is there for the others.
    const bool all = std::ranges::all_of(readers, [&](Reader& r) {
      auto map = place(dag, grouping.clusters[at(r.cluster)], node, r.consumer, r.operand);
      if (map) r.map = std::move(*map);
      return map.has_value();
    });
    if (!all || (!at_home && grouping.clusters[at(own)].members.size() == chain.size() && readers.size() > 4)) continue;
    for (size_t r = 0; r < readers.size(); ++r) {
      // One copy for readers of one cluster that read it along the same loops.
      int copy = -1;
      for (size_t s = 0; s < r; ++s)
        if (readers[s].cluster == readers[r].cluster && readers[s].map == readers[r].map)
          copy = dag.nodes[at(readers[s].consumer)].operands[readers[s].operand].node;
      if (copy < 0) copy = copied(dag, grouping, chain, readers[r].cluster, readers[r].map);
      dag.nodes[at(readers[r].consumer)].operands[readers[r].operand].node = copy;
    }
    grouping.stored[i] = false;
    for (int needed : chain_of.to_store()) grouping.stored[at(needed)] = true;
    for (size_t k = chain.size(); k-- > 0;)
      if (!is_read(dag, grouping, chain[k])) drop(grouping, chain[k]);
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
