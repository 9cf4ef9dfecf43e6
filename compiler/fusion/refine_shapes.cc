// Dimensions taken apart where one operation reads another's result through a reshape, so that both count along the
// same dimensions and can share a kernel: a group norm's rows of [13, 32, 7840] and the image [13, 320, 28, 28] that it
// reads and makes are both [13, 32, 10, 28, 28]. The loops of a kernel are joined again where all that it reads runs
// on.
#include <algorithm>
#include <set>
#include <utility>

#include "compiler/fusion/dag.h"
#include "compiler/fusion/grouping.h"

namespace kiln::fusion {

namespace {

struct Edge {
  int reader;
  size_t operand;
};

bool can_split(const DagNode& n) {
  return (n.kind == DagKind::kPointwise && n.row_stride == 0) || (n.kind == DagKind::kReduce && n.splits == 1);
}

void split_shape(Shape& shape, size_t d, int64_t inner) {
  shape.insert(shape.begin() + static_cast<int64_t>(d) + 1, inner);
  shape[d] /= inner;
}

/// Dimension `d` of what the node's operands count along becomes two, the inner one of so many elements.
void split_loop(DagNode& n, size_t d, int64_t inner) {
  for (Operand& o : n.operands)
    if (o.shape.size() > d && o.strides.size() == o.shape.size()) split_dimension(o, d, inner);
  if (n.kind == DagKind::kPointwise) return split_shape(n.shape, d, inner);
  const int axis = static_cast<int>(d);
  const bool reduced = std::binary_search(n.axes.begin(), n.axes.end(), axis);
  const auto before = std::lower_bound(n.axes.begin(), n.axes.end(), axis) - n.axes.begin();
  if (!reduced) split_shape(n.shape, d - static_cast<size_t>(before), inner);
  for (int& a : n.axes) a += a > axis;
  if (reduced) n.axes.insert(n.axes.begin() + before + 1, axis + 1);
}

/// The dimension of the loops that dimension `d` of the result is.
size_t loop_of_result(const DagNode& n, size_t d) {
  if (n.kind == DagKind::kPointwise) return d;
  for (int a : n.axes) d += static_cast<size_t>(a) <= d;
  return d;
}

/// The strides at which dimensions of the view begin, if these are all of a tensor that lies row-major, each element
/// once or repeated; empty otherwise.
std::set<int64_t> steps(const Shape& shape, const Shape& strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && strides[d] != 0) dims.emplace_back(strides[d], shape[d]);
  std::sort(dims.begin(), dims.end());
  std::set<int64_t> out;
  int64_t next = 1;
  for (auto [stride, size] : dims) {
    if (stride != next) return {};
    out.insert(stride);
    next = stride * size;
  }
  return out;
}

int64_t last_step(const Shape& shape, const Shape& strides) {
  int64_t n = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    if (strides[d] != 0) n *= shape[d];
  return n;
}

/// Splits what spans several of `at`. False when nothing does.
template <class Split>
bool split_at(const std::set<int64_t>& at, const Shape& shape, const Shape& strides, Split&& split) {
  bool any = false;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1 || strides[d] == 0) continue;
    // From the innermost: each split leaves the outer part at `d`.
    int64_t inner = strides[d];
    size_t made = 0;
    for (auto it = at.upper_bound(strides[d]); it != at.end() && *it < strides[d] * shape[d]; ++it) {
      split(d, *it / inner);
      inner = *it;
      ++made;
    }
    any = any || made > 0;
  }
  return any;
}

bool reads_whole(const Dag& dag, const Edge& e) {
  const Operand& o = dag.nodes[at(e.reader)].operands[e.operand];
  return axis_map(o, dag.nodes[at(o.node)].shape).has_value();
}

/// Whether a product counts along several dimensions of the node as along one, as it can also where it computes them.
bool joins_dims(const Dag& dag, const Edge& e) {
  const DagNode& reader = dag.nodes[at(e.reader)];
  return reader.kind == DagKind::kProduct && e.operand < 2 &&
         operand_dims(reader, e.operand, dag.nodes[at(reader.operands[e.operand].node)].shape).has_value();
}

/// Takes the dimensions of both ends of the edge apart where either begins one.
bool split_edge(Dag& dag, const Edge& e) {
  DagNode& reader = dag.nodes[at(e.reader)];
  const Operand o = reader.operands[e.operand];
  DagNode& made = dag.nodes[at(o.node)];
  const Shape own = row_major(made.shape);
  if (o.offset != 0 || !can_split(reader) || numel(made.shape) < 2 ||
      last_step(o.shape, o.strides) != numel(made.shape))
    return false;
  std::set<int64_t> all = steps(o.shape, o.strides), theirs = steps(made.shape, own);
  if (all.empty() || theirs.empty()) return false;
  all.insert(theirs.begin(), theirs.end());
  for (auto a = all.begin(), b = std::next(a); b != all.end(); ++a, ++b)
    if (*b % *a != 0) return false;
  if (numel(made.shape) % *all.rbegin() != 0 || (all != theirs && !can_split(made))) return false;
  const Shape shape = made.shape;
  bool changed = split_at(all, o.shape, o.strides, [&](size_t d, int64_t inner) { split_loop(reader, d, inner); });
  changed =
      split_at(all, shape, own, [&](size_t d, int64_t inner) { split_loop(made, loop_of_result(made, d), inner); }) ||
      changed;
  return changed;
}

std::vector<Edge> edges_of(const Dag& dag) {
  std::vector<Edge> out;
  for (size_t n = 0; n < dag.nodes.size(); ++n)
    for (size_t i = 0; i < dag.nodes[n].operands.size(); ++i) {
      const Operand& o = dag.nodes[n].operands[i];
      const bool is_table = i == 0 && dag.nodes[n].op == ExprOp::kTake;
      if (!o.is_number() && !is_table && dag.nodes[at(o.node)].kind != DagKind::kLeaf)
        out.push_back({static_cast<int>(n), i});
    }
  return out;
}

/// A product's dimensions stay as they are. What goes on element by element behind a reshape of it counts along them,
/// where all its operands can, and so becomes part of the product's kernel.
void count_as_products(Dag& dag) {
  std::vector<bool> follows(dag.nodes.size());
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    DagNode& n = dag.nodes[i];
    follows[i] = n.kind == DagKind::kProduct;
    if (n.kind != DagKind::kPointwise || n.op == ExprOp::kTake || n.row_stride > 0) continue;
    for (const Operand& o : n.operands) {
      if (o.is_number() || !follows[at(o.node)]) continue;
      const Shape shape = dag.nodes[at(o.node)].shape;
      if (o.offset != 0 || o.strides != row_major(o.shape) || numel(o.shape) != numel(shape)) continue;
      std::vector<Operand> operands = n.operands;
      follows[i] = std::ranges::all_of(operands, [&](Operand& x) {
        if (x.is_number()) {
          if (!x.shape.empty()) x.shape = shape, x.strides.assign(shape.size(), 0);
          return true;
        }
        auto as = reshape(x, shape);
        if (as) x = std::move(*as);
        return as.has_value();
      });
      if (!follows[i]) continue;
      n.operands = std::move(operands);
      n.shape = shape;
      break;
    }
  }
}

}  // namespace

void refine_shapes(Dag& dag) {
  count_as_products(dag);
  const std::vector<Edge> edges = edges_of(dag);
  for (const Edge& seed : edges) {
    if (reads_whole(dag, seed)) continue;
    std::vector<Edge> kept = {seed};  // that should read whole nodes in the end
    for (const Edge& e : edges)
      if (reads_whole(dag, e)) kept.push_back(e);
    Dag tried = dag;
    bool changed = split_edge(tried, seed);
    if (!changed) continue;
    while (std::exchange(changed, false))
      for (const Edge& e : kept)
        if (!reads_whole(tried, e)) changed = split_edge(tried, e) || changed;
    if (std::all_of(kept.begin(), kept.end(),
                    [&](const Edge& e) { return reads_whole(tried, e) || joins_dims(tried, e); }))
      dag = std::move(tried);
  }
}

}  // namespace kiln::fusion
