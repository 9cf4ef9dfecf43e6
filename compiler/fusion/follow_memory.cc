// What reductions are computed from counts along dimensions in the order of memory, whatever order their views have:
// the columns of a transposed matrix are its rows. Which reductions run along memory and which across it, and in how
// many parts, follows from the order of dimensions, and so does how temporaries lie.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

/// Dimensions in their new order: which of the old ones each is.
using Order = std::vector<int>;

class MemoryFollower {
 public:
  explicit MemoryFollower(Dag& dag) : dag_(dag), users_(dag.nodes.size()), follows_(dag.nodes.size()) {
    for (size_t n = 0; n < dag.nodes.size(); ++n)
      for (size_t i = 0; i < dag.nodes[n].operands.size(); ++i)
        if (const Operand& o = dag.nodes[n].operands[i]; !o.is_number())
          users_[at(o.node)].emplace_back(static_cast<int>(n), i);
    for (const Operand& o : dag.outputs) follows_[at(o.node)] = true;
    std::vector<bool> reduced(dag.nodes.size());
    for (size_t n = dag.nodes.size(); n-- > 0;)
      if (dag.nodes[n].kind == DagKind::kReduce || (dag.nodes[n].kind == DagKind::kPointwise && reduced[n]))
        for (const Operand& o : dag.nodes[n].operands)
          if (!o.is_number()) reduced[at(o.node)] = follows_[at(o.node)] = true;
  }

  void run() {
    for (size_t i = 0; i < dag_.nodes.size(); ++i) {
      const DagNode& n = dag_.nodes[i];
      if (n.kind == DagKind::kPointwise && follows_[i]) {
        if (const auto order = order_of_operands(n)) reorder_elements(i, *order);
      } else if (n.kind == DagKind::kReduce && n.splits == 1 && !n.operands[0].is_number()) {
        if (const auto order = order_of(n.operands[0])) reorder_rows(i, *order);
      }
    }
  }

 private:
  /// The order of an operand's dimensions in memory, where it reads each element of a box once.
  static std::optional<Order> order_of(const Operand& o) {
    std::vector<int> dims;
    for (size_t d = 0; d < o.shape.size(); ++d)
      if (o.shape[d] != 1) dims.push_back(static_cast<int>(d));
    std::vector<int> sorted = dims;
    std::ranges::stable_sort(sorted, [&](int a, int b) { return o.strides[at(a)] > o.strides[at(b)]; });
    int64_t next = 1;  // beyond the elements of the dimensions inside
    for (auto d = sorted.rbegin(); d != sorted.rend(); ++d) {
      if (o.strides[at(*d)] < next) return std::nullopt;
      next = o.strides[at(*d)] * o.shape[at(*d)];
    }
    Order order(o.shape.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = 0; i < dims.size(); ++i) order[at(dims[i])] = sorted[i];
    return order;
  }

  /// That of all tensors that a node reads in full, if it is one.
  std::optional<Order> order_of_operands(const DagNode& n) const {
    std::optional<Order> out;
    for (const Operand& o : n.operands) {
      if (o.is_number() || dag_.nodes[at(o.node)].counts || touched(o) != numel(o.shape)) continue;
      const auto order = order_of(o);
      if (!order || (out && *out != *order)) return std::nullopt;
      out = order;
    }
    return out;
  }

  static bool is_identity(const Order& order) { return std::ranges::is_sorted(order); }

  static Shape reordered(const Shape& shape, const Order& order) {
    Shape out;
    for (int d : order) out.push_back(shape[at(d)]);
    return out;
  }
  static void reorder(Operand& o, const Order& order) {
    o.shape = reordered(o.shape, order);
    if (!o.is_number()) o.strides = reordered(o.strides, order);
  }

  /// Has all readers of a node whose dimensions take that order read the same elements; false, and nothing changed,
  /// where one of them cannot, or wants the node as it lies. A result is one that is row-major for the user then, or
  /// that the user sees in another order only.
  bool reorder_result(size_t node, const Order& order) {
    const Shape& shape = dag_.nodes[node].shape;
    Operand old;  // its elements as they were, of what it will be
    old.node = static_cast<int>(node);
    old.shape = shape;
    old.strides.resize(shape.size());
    const Shape strides = row_major(reordered(shape, order));
    for (size_t d = 0; d < order.size(); ++d) old.strides[at(order[d])] = strides[d];
    std::vector<Operand> moved, results;
    for (const Operand& output : dag_.outputs) {
      results.push_back(output);
      if (at(output.node) != node) continue;
      auto o = compose(output, old);
      if (!o || !(dag_.any_order[results.size() - 1] || is_whole(*o, o->shape))) return false;
      results.back() = std::move(*o);
    }
    for (const auto& [user, i] : users_[node]) {
      const DagNode& reader = dag_.nodes[at(user)];
      const bool is_table = reader.op == ExprOp::kTake && i == 0;
      if (is_table || (reader.kind != DagKind::kPointwise && reader.kind != DagKind::kReduce)) return false;
      auto o = compose(reader.operands[i], old);
      if (!o) return false;
      moved.push_back(std::move(*o));
    }
    for (size_t k = 0; k < moved.size(); ++k) {
      const auto& [user, i] = users_[node][k];
      dag_.nodes[at(user)].operands[i] = std::move(moved[k]);
      follows_[at(user)] = true;
    }
    dag_.outputs = std::move(results);
    dag_.nodes[node].shape = reordered(shape, order);
    return true;
  }

  void reorder_elements(size_t i, const Order& order) {
    if (is_identity(order) || dag_.nodes[i].op == ExprOp::kPut || !reorder_result(i, order)) return;
    for (Operand& o : dag_.nodes[i].operands) reorder(o, order);
  }

  void reorder_rows(size_t i, Order order) {
    auto is_reduced = [&](int d) { return std::ranges::binary_search(dag_.nodes[i].axes, d); };
    Order kept, of_result;
    for (int d : order)
      if (!is_reduced(d)) kept.push_back(d);
    Order sorted = kept;
    std::ranges::sort(sorted);
    for (int d : kept) of_result.push_back(static_cast<int>(std::ranges::find(sorted, d) - sorted.begin()));
    if (!is_identity(of_result) && !reorder_result(i, of_result)) {
      auto next = sorted.begin();  // they keep the places of kept dimensions, in the order of the result
      for (int& d : order)
        if (!is_reduced(d)) d = *next++;
    }
    DagNode& n = dag_.nodes[i];
    std::vector<int> axes;
    for (size_t d = 0; d < order.size(); ++d)
      if (is_reduced(order[d])) axes.push_back(static_cast<int>(d));
    n.axes = std::move(axes);
    reorder(n.operands[0], order);
  }

  Dag& dag_;
  std::vector<std::vector<std::pair<int, size_t>>> users_;  // readers of each node, and which of their operands it is
  std::vector<bool> follows_;  // a reduction is computed from it, it is a result, or it reads what was reordered
};

}  // namespace

void follow_memory(Dag& dag) { MemoryFollower(dag).run(); }

}  // namespace kiln::fusion
