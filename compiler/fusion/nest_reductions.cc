// Reductions of everything that was computed with rows' own reductions, as a loss from a softmax: along the rows first,
// in the kernel that has them, and then over the rows. Else all elements would be stored for a second kernel. So are
// reductions of everything in looked-up rows of which others reduce each, as a penalty of embeddings beside their
// products: else the rows would be looked up again, or stored.
#include <algorithm>
#include <set>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

class Nester {
 public:
  explicit Nester(Dag& dag) : dag_(dag) {}

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i) {
      const DagNode& n = dag_.nodes[i];
      if (n.kind != DagKind::kReduce || n.splits > 1 || n.axes.size() < 2 || n.operands[0].is_number()) continue;
      std::set<int> seen;
      rows_ = {};
      look(n.operands[0], n.operands[0].shape, seen);
      if (rows_.empty()) rows_ = rows_of_shared_takes(n);
      const bool within = !rows_.empty() && std::ranges::includes(n.axes, rows_);
      if (within && terms(n, n.axes) > terms(n, rows_)) nest(i);
    }
    tidy(dag_);
  }

 private:
  static int64_t terms(const DagNode& n, const std::vector<int>& axes) {
    int64_t count = 1;
    for (int a : axes) count *= n.operands[0].shape[at(a)];
    return count;
  }

  /// Finds the dimensions along which reductions of rows are repeated.
  void look(const Operand& o, const Shape& shape, std::set<int>& seen) {
    if (o.is_number() || o.shape != shape || !rows_.empty()) return;
    const DagNode& n = dag_.nodes[at(o.node)];
    if (n.kind == DagKind::kPointwise && n.shape == shape) {
      if (seen.insert(o.node).second)
        for (const Operand& operand : n.operands) look(operand, shape, seen);
      return;
    }
    // What was computed from a row's reduction alone, as its logarithm, counts like it.
    if (!reduces_rows(o.node, numel(shape))) return;
    for (size_t d = 0; d < shape.size(); ++d)
      if (o.strides[d] == 0 && shape[d] > 1) rows_.push_back(static_cast<int>(d));
  }

  /// The nodes of so many elements that look them up in memory, and of which the operand is computed. They may have
  /// dimensions of one element more.
  void takes_of(const Operand& o, int64_t elements, std::set<int>& seen, std::set<int>& takes) const {
    if (o.is_number()) return;
    const DagNode& n = dag_.nodes[at(o.node)];
    if (n.kind != DagKind::kPointwise || numel(n.shape) != elements || !seen.insert(o.node).second) return;
    if (n.op == ExprOp::kTake) {
      if (dag_.nodes[at(n.operands[0].node)].kind == DagKind::kLeaf) takes.insert(o.node);
      return;
    }
    for (const Operand& operand : n.operands) takes_of(operand, elements, seen, takes);
  }

  std::set<int> takes_of(const DagNode& reduction) const {
    std::set<int> seen, takes;
    takes_of(reduction.operands[0], numel(reduction.operands[0].shape), seen, takes);
    return takes;
  }

  /// The dimensions along which another reduction reduces rows that this one looks up as well.
  std::vector<int> rows_of_shared_takes(const DagNode& n) const {
    const std::set<int> takes = takes_of(n);
    if (takes.empty()) return {};
    for (const DagNode& other : dag_.nodes) {
      if (other.kind != DagKind::kReduce || other.splits > 1 || other.operands[0].is_number() ||
          other.operands[0].shape != n.operands[0].shape || other.axes.size() >= n.axes.size())
        continue;
      const std::set<int> theirs = takes_of(other);
      if (std::ranges::any_of(takes, [&](int t) { return theirs.contains(t); })) return other.axes;
    }
    return {};
  }

  /// Whether the node's elements are reductions of `elements` in all, or follow from such.
  bool reduces_rows(int node, int64_t elements) const {
    const DagNode& n = dag_.nodes[at(node)];
    if (n.kind == DagKind::kReduce && n.splits == 1) return numel(n.operands[0].shape) == elements;
    return n.kind == DagKind::kPointwise && numel(n.shape) < elements &&
           std::ranges::any_of(n.operands, [&](const Operand& o) {
             return !o.is_number() && o.shape == n.shape && reduces_rows(o.node, elements);
           });
  }

  void nest(size_t i) {
    DagNode rows = dag_.nodes[i];
    rows.axes = rows_;
    rows.dtype = rows.operand_type;
    rows.shape.clear();
    std::vector<int> left;
    const Shape& all = rows.operands[0].shape;
    for (size_t d = 0; d < all.size(); ++d) {
      const int dim = static_cast<int>(d);
      if (std::ranges::binary_search(rows_, dim)) continue;
      if (std::ranges::binary_search(dag_.nodes[i].axes, dim)) left.push_back(static_cast<int>(rows.shape.size()));
      rows.shape.push_back(all[d]);
    }
    const Operand of_rows = append(dag_, std::move(rows));
    dag_.nodes[i].axes = std::move(left);
    dag_.nodes[i].operands = {of_rows};
  }

  Dag& dag_;
  std::vector<int> rows_;  // dimensions
};

}  // namespace

void nest_reductions(Dag& dag) { Nester(dag).run(); }

}  // namespace kiln::fusion
