#include "compiler/fusion/recompute.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace kiln::fusion {

namespace {

/// FLOP per element that no kernel notices beside its memory.
constexpr int kCheapFlop = 16;
/// Instructions per element for which a kernel that computes what earlier ones did takes longer than to read it, though
/// each step is cheap: rows and columns that take turns to be normalised (Sinkhorn's steps) would begin anew each time.
constexpr int kMostInstructions = 48;

/// Of a kernel that takes another one's operations in: see grouping.cc.
constexpr size_t kMostMembers = 192, kMostTensors = 24;

/// Nodes that compute one element of the last of them from what is in memory, operands first.
using Chain = std::vector<int>;

/// Who reads a stored value elsewhere, and the loops there along which it would be computed.
struct Reader {
  int cluster, consumer;
  size_t operand;
  std::vector<int> loops;
};

/// The nodes that compute, in a cluster and along some of its loops, what another node does.
using Copies = std::map<std::tuple<int, int, std::vector<int>>, int>;

/// The loops of what an operand reads, from those of the operand.
std::vector<int> loops_of(const Operand& o, const DagNode& from, const std::vector<int>& loops) {
  const auto axes = axis_map(o, from.shape);
  std::vector<int> map(from.shape.size(), -1);
  for (size_t d = 0; d < axes->size(); ++d)
    if ((*axes)[d] >= 0) map[at((*axes)[d])] = loops[d];
  return map;
}

/// The chain of a node: it, and what is computed for it in its kernel and stored nowhere. Empty where that is dear, or
/// reading its inputs costs more than reading its value. What rows share is stored and counts little, and what its
/// readers read or compute anyway counts nothing. What a product's epilogue only widens (float32 of its halves, a
/// square) is computed from the product, which is stored instead.
class ChainOf {
 public:
  ChainOf(const Dag& dag, const Grouping& grouping, const std::vector<Reader>& readers, const Copies& copies,
          double l2_bytes)
      : dag_(dag), grouping_(grouping), readers_(readers), copies_(copies), l2_bytes_(l2_bytes) {
    for (const Reader& r : readers) clusters_.insert(r.cluster);
  }

  /// Of each node of the chain, the loops of a reader along which it computes it.
  std::vector<std::vector<int>> loops_in(size_t reader) const {
    std::vector<std::vector<int>> out;
    for (const auto& loops : loops_) out.push_back(loops[reader]);
    return out;
  }

  /// Products, and values that rows share, that the chain needs stored.
  const std::vector<int>& to_store() const { return to_store_; }

  Chain operator()(int node) {
    const DagNode& n = dag_.nodes[at(node)];
    elements_ = numel(n.shape);
    std::vector<std::vector<int>> loops;
    for (const Reader& r : readers_) loops.push_back(r.loops);
    if (!add(node, loops)) return {};
    const double value = static_cast<double>(numel(n.shape)) * size_of(n.dtype);
    double most = stores_product_ ? 0.95 : 1.05;
    // What the L2 does not hold until it is read is written to memory, once for all readers.
    if (!stores_product_ && value > l2_bytes_) most += 1 / static_cast<double>(std::max<size_t>(1, clusters_.size()));
    return bytes_ <= most * value ? chain_ : Chain{};
  }

 private:
  /// `loops`: those of each reader along which it would compute the node.
  bool add(int node, const std::vector<std::vector<int>>& loops) {
    if (std::ranges::find(chain_, node) != chain_.end()) return true;
    const DagNode& n = dag_.nodes[at(node)];
    if (n.kind != DagKind::kPointwise || n.op == ExprOp::kCall) return false;
    if (n.op == ExprOp::kTake) return false;  // its places are anywhere
    const bool there = is_computed_anyway(node, loops);
    if (!there) flop_ += info(n.op).flop;
    instructions_ += instructions_of(n);
    if (flop_ > kCheapFlop || instructions_ > kMostInstructions) return false;
    for (const Operand& o : n.operands) {
      if (o.is_number()) continue;
      const DagNode& from = dag_.nodes[at(o.node)];
      const bool here =
          from.kind != DagKind::kLeaf && grouping_.cluster_of[at(o.node)] == grouping_.cluster_of[at(node)];
      const bool stored = from.kind == DagKind::kLeaf || grouping_.stored[at(o.node)];
      constexpr int64_t kRow = 64;  // elements of the value for each of what its rows share
      const bool is_of_rows = numel(from.shape) * kRow <= elements_ && here && is_of_each_row(o.node);
      if (here && !stored && (from.kind == DagKind::kProduct || is_of_rows)) {
        to_store_.push_back(o.node);
        stores_product_ = stores_product_ || !is_of_rows;
      } else if (here && !stored) {
        if (!axis_map(o, from.shape)) return false;
        std::vector<std::vector<int>> inner;
        for (const std::vector<int>& l : loops) inner.push_back(loops_of(o, from, l));
        if (!add(o.node, inner)) return false;
        continue;
      } else if (!stored) {
        return false;
      }
      if (!there && !from.counts && !is_read_anyway(o) && reads_.emplace(o.node, o.offset, o.strides).second)
        bytes_ += static_cast<double>(touched(o)) * size_of(from.dtype);
    }
    chain_.push_back(node);
    loops_.push_back(loops);
    return true;
  }

  /// Whether a kernel of rows computes the node for each of them, and none twice. Such a kernel stays; one of elements
  /// would be left with this value alone. What all rows share (a root for each column) all its programs would store.
  bool is_of_each_row(int node) const {
    const Cluster& c = grouping_.clusters[at(grouping_.cluster_of[at(node)])];
    if (!c.reduces()) return false;
    const std::vector<int>& map = c.map_of(node);
    for (int d = 0; d < c.kept; ++d)
      if (std::ranges::find(map, d) == map.end()) return false;
    return true;
  }

  /// Whether each reader has a copy of the node already.
  bool is_computed_anyway(int node, const std::vector<std::vector<int>>& loops) const {
    for (size_t r = 0; r < readers_.size(); ++r)
      if (!copies_.contains({node, readers_[r].cluster, loops[r]})) return false;
    return !readers_.empty();
  }

  /// Whether each reader has the same elements in the same order among its operands.
  bool is_read_anyway(const Operand& o) const {
    auto same = [&](const Operand& other) { return is_same(o, other); };
    return !clusters_.empty() && std::ranges::all_of(clusters_, [&](int cluster) {
      return std::ranges::any_of(grouping_.clusters[at(cluster)].members, [&](int m) {
        const DagNode& n = dag_.nodes[at(m)];
        return n.kind != DagKind::kProduct && n.op != ExprOp::kTake && std::ranges::any_of(n.operands, same);
      });
    });
  }

  const Dag& dag_;
  const Grouping& grouping_;
  const std::vector<Reader>& readers_;
  const Copies& copies_;
  double l2_bytes_;
  std::set<int> clusters_;  // of the readers
  Chain chain_;
  std::vector<std::vector<std::vector<int>>> loops_;  // of each of its nodes, in each reader
  std::vector<int> to_store_;
  std::set<std::tuple<int, int64_t, Shape>> reads_;
  int64_t elements_ = 0;
  bool stores_product_ = false;
  int flop_ = 0, instructions_ = 0;  // of the former those of nodes that no reader computes already
  double bytes_ = 0;
};

/// Where the copy of `node` runs in the consumer's cluster, if it can join that.
std::optional<std::vector<int>> place(const Dag& dag, const Cluster& cluster, int node, int consumer, size_t operand) {
  const DagNode& n = dag.nodes[at(node)];
  if (dag.nodes[at(consumer)].kind == DagKind::kProduct) return std::nullopt;
  const Operand& o = dag.nodes[at(consumer)].operands[operand];
  if (!axis_map(o, n.shape)) return std::nullopt;
  return loops_of(o, n, operand_map(dag, cluster, consumer, operand));
}

/// The chain once more, its nodes along these loops of the cluster, but for what that computes already. Gives the last
/// node.
int copied(Dag& dag, Grouping& grouping, Copies& made, const Chain& chain, int to,
           const std::vector<std::vector<int>>& maps) {
  std::vector<int> copies, added;
  std::vector<std::vector<int>> added_maps;
  const auto place_in_chain = [&](int node) { return std::ranges::find(chain, node) - chain.begin(); };
  for (size_t i = 0; i < chain.size(); ++i) {
    const auto [known, is_new] = made.emplace(std::tuple(chain[i], to, maps[i]), static_cast<int>(dag.nodes.size()));
    copies.push_back(known->second);
    if (!is_new) continue;
    DagNode n = dag.nodes[at(chain[i])];
    for (Operand& o : n.operands)
      if (const auto p = static_cast<size_t>(place_in_chain(o.node)); !o.is_number() && p < i) o.node = copies[p];
    added.push_back(copies.back());
    added_maps.push_back(maps[i]);
    dag.nodes.push_back(std::move(n));
    grouping.cluster_of.push_back(to);
    grouping.stored.push_back(false);
  }
  Cluster& cluster = grouping.clusters[at(to)];
  cluster.members.insert(cluster.members.begin(), added.begin(), added.end());
  cluster.maps.insert(cluster.maps.begin(), added_maps.begin(), added_maps.end());
  return copies.back();
}

bool is_read(const Dag& dag, const Grouping& grouping, int node) {
  for (size_t c = 0; c < dag.nodes.size(); ++c)
    if (grouping.cluster_of[c] >= 0)
      for (const Operand& o : dag.nodes[c].operands)
        if (o.node == node) return true;
  return std::ranges::any_of(dag.outputs, [&](const Operand& o) { return o.node == node; });
}

class Recomputer {
 public:
  Recomputer(Dag& dag, Grouping& grouping, const Machine& machine)
      : dag_(dag),
        grouping_(grouping),
        machine_(machine),
        l2_bytes_(static_cast<double>(machine.rates().l2_bytes)),
        most_for_launch_(machine.gpu() ? machine.rates().kernel_us / 2 * machine.rates().pointwise_flop_per_us : 0) {}

  void run() {
    const auto count = static_cast<int>(dag_.nodes.size());
    // Once more when anything has moved: what readers compute since then makes others cheap.
    for (bool moved = true; moved;) {
      moved = false;
      for (int node = 0; node < count; ++node) moved = recompute(node) || moved;
    }
    for (size_t c = 0; c < grouping_.clusters.size(); ++c) spare_launch(static_cast<int>(c));
    std::set<int> changed;
    for (const auto& [made, copy] : copies_) changed.insert(std::get<1>(made));
    for (int c : changed) order(grouping_.clusters[at(c)]);
    remove_empty();
  }

 private:
  /// Operands first again: a copy may need one that was made before it, and stands behind it.
  void order(Cluster& cluster) const {
    std::map<int, size_t> place;
    for (size_t m = 0; m < cluster.members.size(); ++m) place[cluster.members[m]] = m;
    std::vector<int> members;
    std::vector<std::vector<int>> maps;
    std::set<int> seen;
    std::function<void(int)> visit = [&](int node) {
      const auto at_place = place.find(node);
      if (at_place == place.end() || !seen.insert(node).second) return;
      for (const Operand& o : dag_.nodes[at(node)].operands)
        if (!o.is_number()) visit(o.node);
      members.push_back(node);
      maps.push_back(cluster.maps[at_place->second]);
    };
    for (int m : cluster.members) visit(m);
    cluster.members = std::move(members);
    cluster.maps = std::move(maps);
  }

  /// Whether the value of a node is now computed wherever it is read, and stored no longer.
  bool recompute(int node) {
    const int own = grouping_.cluster_of[at(node)];
    if (!grouping_.stored[at(node)] || own < 0 ||
        std::ranges::any_of(dag_.outputs, [&](const Operand& o) { return o.node == node; }))
      return false;
    bool at_home = false;
    const auto found = readers_elsewhere(node, at_home);
    if (!found) return false;
    const std::vector<Reader>& readers = *found;
    ChainOf chain_of(dag_, grouping_, readers, copies_, l2_bytes_);
    const Chain chain = chain_of(node);
    constexpr size_t kMostReaders = 4;  // that compute all of a kernel instead
    const bool whole = !at_home && grouping_.clusters[at(own)].members.size() == chain.size();
    if (chain.empty() || readers.empty() || (whole && readers.size() > kMostReaders)) return false;
    if (machine_.gpu() && is_dear_repeated(node, chain, readers, whole)) return false;
    for (size_t i = 0; i < readers.size(); ++i) {
      const Reader& r = readers[i];
      dag_.nodes[at(r.consumer)].operands[r.operand].node =
          copied(dag_, grouping_, copies_, chain, r.cluster, chain_of.loops_in(i));
    }
    grouping_.stored[at(node)] = false;
    for (int needed : chain_of.to_store()) grouping_.stored[at(needed)] = true;
    for (size_t k = chain.size(); k-- > 0;)
      if (!is_read(dag_, grouping_, chain[k])) drop(chain[k]);
    return true;
  }

  /// Who reads a node in other kernels; `at_home` whether its own does. Nullopt where one of them cannot compute it:
  /// all of them do, or none, since a value that is stored for one is there for the others.
  std::optional<std::vector<Reader>> readers_elsewhere(int node, bool& at_home) const {
    std::vector<Reader> readers;
    for (size_t c = 0; c < dag_.nodes.size(); ++c)
      for (size_t k = 0; k < dag_.nodes[c].operands.size(); ++k) {
        const int cluster = grouping_.cluster_of[c], consumer = static_cast<int>(c);
        if (dag_.nodes[c].operands[k].node != node || cluster < 0) continue;
        if (cluster == grouping_.cluster_of[at(node)]) {
          at_home = true;
          continue;
        }
        auto loops = place(dag_, grouping_.clusters[at(cluster)], node, consumer, k);
        if (!loops) return std::nullopt;
        readers.push_back({cluster, consumer, k, std::move(*loops)});
      }
    return readers;
  }

  /// All that a node is computed from in its kernel, operands first, and along which loops of a reader. False where a
  /// reader cannot compute that.
  bool add_all(int node, const std::vector<int>& loops, Chain& chain, std::vector<std::vector<int>>& maps) const {
    if (const auto known = std::ranges::find(chain, node); known != chain.end())
      return maps[static_cast<size_t>(known - chain.begin())] == loops;  // else it would be computed twice
    const DagNode& n = dag_.nodes[at(node)];
    if (n.kind != DagKind::kPointwise || n.op == ExprOp::kCall || n.op == ExprOp::kPut) return false;
    for (const Operand& o : n.operands) {
      if (o.is_number() || grouping_.cluster_of[at(o.node)] != grouping_.cluster_of[at(node)]) continue;
      const DagNode& from = dag_.nodes[at(o.node)];
      if (!axis_map(o, from.shape) || !add_all(o.node, loops_of(o, from, loops), chain, maps)) return false;
    }
    chain.push_back(node);
    maps.push_back(loops);
    return true;
  }

  /// A kernel of few elements goes where those that read its values compute them in less time than its launch takes:
  /// the corners of a box for each image, which all pixels of the image compare with.
  void spare_launch(int c) {
    const Cluster home = grouping_.clusters[at(c)];
    if (home.form != Form::kPointwise || home.members.empty()) return;
    struct Copy {
      Reader reader;
      Chain chain;
      std::vector<std::vector<int>> maps;
    };
    std::vector<Copy> copies;
    std::map<int, std::set<int>> added;  // nodes by reader
    for (int m : home.members) {
      if (!grouping_.stored[at(m)]) continue;
      if (std::ranges::any_of(dag_.outputs, [&](const Operand& o) { return o.node == m; })) return;
      bool at_home = false;
      auto readers = readers_elsewhere(m, at_home);
      if (!readers) return;
      for (Reader& r : *readers) {
        Copy copy{std::move(r), {}, {}};
        if (grouping_.clusters[at(copy.reader.cluster)].form == Form::kProduct ||
            !add_all(m, copy.reader.loops, copy.chain, copy.maps))
          return;
        added[copy.reader.cluster].insert(copy.chain.begin(), copy.chain.end());
        copies.push_back(std::move(copy));
      }
    }
    double instructions = 0;
    for (const auto& [reader, nodes] : added) {
      const Cluster& to = grouping_.clusters[at(reader)];
      int of_element = 0;
      for (int n : nodes) of_element += instructions_of(dag_.nodes[at(n)]) + loads_of(n);
      instructions += of_element * static_cast<double>(to.rows()) * static_cast<double>(to.columns());
      if (to.members.size() + nodes.size() > kMostMembers || tensors_of(to, nodes) > kMostTensors) return;
    }
    if (copies.empty() || instructions >= most_for_launch_) return;
    for (const Copy& copy : copies)
      dag_.nodes[at(copy.reader.consumer)].operands[copy.reader.operand].node =
          copied(dag_, grouping_, copies_, copy.chain, copy.reader.cluster, copy.maps);
    for (size_t k = home.members.size(); k-- > 0;) {
      grouping_.stored[at(home.members[k])] = false;
      drop(home.members[k]);
    }
  }

  /// Instructions for what a node reads from the caches.
  int loads_of(int node) const {
    constexpr int kOfLoad = 4;
    return kOfLoad * static_cast<int>(std::ranges::count_if(dag_.nodes[at(node)].operands, [&](const Operand& o) {
             return !o.is_number() && !dag_.nodes[at(o.node)].counts &&
                    grouping_.cluster_of[at(o.node)] != grouping_.cluster_of[at(node)];
           }));
  }

  /// Tensors that a kernel reads and writes which computes these nodes of another one too.
  size_t tensors_of(const Cluster& c, const std::set<int>& nodes) const {
    std::set<int> seen;
    auto read_by = [&](int m) {
      for (const Operand& o : dag_.nodes[at(m)].operands)
        if (!o.is_number() && !c.contains(o.node) && !nodes.contains(o.node)) seen.insert(o.node);
    };
    for (int m : c.members) {
      read_by(m);
      if (grouping_.stored[at(m)]) seen.insert(m);
    }
    for (int m : nodes) read_by(m);
    return seen.size();
  }

  /// Whether readers that compute a value for each element that it is repeated for (the cutoff of an edge, for each of
  /// its Gaussians) take longer for that than to store it and to read it, and, if it has one of its own, for its
  /// kernel. What memory hides takes nothing.
  bool is_dear_repeated(int node, const Chain& chain, const std::vector<Reader>& readers, bool whole) const {
    const target::Rates& rates = machine_.rates();
    const DagNode& n = dag_.nodes[at(node)];
    double instructions = 0, us = 0;
    for (const int m : chain) instructions += instructions_of(dag_.nodes[at(m)]);
    std::set<int> seen;
    for (const Reader& r : readers) {
      const Cluster& c = grouping_.clusters[at(r.cluster)];
      const auto loops = static_cast<double>(numel(c.dims));
      const bool of_rows =
          c.form != Form::kPointwise && std::ranges::all_of(r.loops, [&](int d) { return d < c.kept; });
      if (of_rows || numel(c.dims) <= numel(n.shape) || !seen.insert(r.cluster).second) continue;
      constexpr int64_t kLongRow = 64, kOfThread = 8;  // elements side by side for which a thread computes it once
      const bool along_rows =
          c.dims.back() >= kLongRow && std::ranges::find(r.loops, std::ssize(c.dims) - 1) == r.loops.end();
      const auto [memory, own] = times_of(c);
      us += std::max(0.0, own + loops * instructions / (along_rows ? kOfThread : 1) / rates.pointwise_flop_per_us -
                              std::max(memory, own));
    }
    const double moved =
        static_cast<double>(numel(n.shape)) * size_of(n.dtype) * static_cast<double>(1 + readers.size());
    return us > moved / rates.pointwise_bytes_per_us + (whole ? rates.kernel_us : 0);
  }

  /// Microseconds in which a kernel's memory and its instructions take, each alone.
  std::pair<double, double> times_of(const Cluster& c) const {
    double bytes = 0, instructions = 0;
    std::map<int, int64_t> reads;
    for (const int m : c.members) {
      const DagNode& n = dag_.nodes[at(m)];
      instructions += static_cast<double>(n.kind == DagKind::kReduce ? numel(n.operands[0].shape) : numel(n.shape)) *
                      instructions_of(n);
      if (grouping_.stored[at(m)]) bytes += static_cast<double>(numel(n.shape)) * size_of(n.dtype);
      for (const Operand& o : n.operands)
        if (!o.is_number() && !c.contains(o.node) && !dag_.nodes[at(o.node)].counts)
          reads[o.node] = std::max(reads[o.node], touched(o));
    }
    for (const auto& [node, elements] : reads)
      bytes += static_cast<double>(elements) * size_of(dag_.nodes[at(node)].dtype);
    const target::Rates& rates = machine_.rates();
    return {bytes / rates.pointwise_bytes_per_us, instructions / rates.pointwise_flop_per_us};
  }

  /// Takes a node that nothing reads any more out of its kernel.
  void drop(int node) {
    Cluster& home = grouping_.clusters[at(grouping_.cluster_of[at(node)])];
    const auto m = std::ranges::find(home.members, node);
    home.maps.erase(home.maps.begin() + (m - home.members.begin()));
    home.members.erase(m);
    grouping_.cluster_of[at(node)] = -1;
    std::erase_if(copies_, [&](const auto& entry) { return entry.second == node; });
  }

  /// Clusters that lost everything go.
  void remove_empty() {
    std::vector<int> place_of(grouping_.clusters.size(), -1);
    std::vector<Cluster> left;
    for (size_t c = 0; c < grouping_.clusters.size(); ++c) {
      if (grouping_.clusters[c].members.empty()) continue;
      place_of[c] = static_cast<int>(left.size());
      left.push_back(std::move(grouping_.clusters[c]));
    }
    grouping_.clusters = std::move(left);
    for (int& c : grouping_.cluster_of)
      if (c >= 0) c = place_of[at(c)];
  }

  Dag& dag_;
  Grouping& grouping_;
  const Machine& machine_;
  double l2_bytes_, most_for_launch_;  // instructions that take less than a kernel's launch
  Copies copies_;
};

}  // namespace

void recompute_cheap(Dag& dag, Grouping& grouping, const Machine& machine) { Recomputer(dag, grouping, machine).run(); }

}  // namespace kiln::fusion
