// Takes of computed tensors: what is taken is computed, instead of all there is.
#include <algorithm>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

/// FLOP per element of an operation that is computed for each of its takes rather than stored.
constexpr int kTakenFlop = 24;
/// A take of one element in so many (a row's own class) has its element computed, whatever that takes and whoever else
/// reads what it is of.
constexpr int64_t kFewTaken = 16;
/// What is put beside others (the half of a head that turns beside the half that does not), or repeated in windows, is
/// computed for all that take it where that is no more FLOP for each of its own elements. Places outside are not
/// loaded.
constexpr double kMostRepeatedFlop = 32;

bool is_same_take(const DagNode& a, const DagNode& b) {
  return std::ranges::equal(a.operands, b.operands, is_same) && a.taken == b.taken;
}

/// Whether it is computed from sums that have as many elements: what a convolution's sums are divided by. Behind the
/// take, both would be stored.
bool ends_reduction(const Dag& dag, const DagNode& from) {
  return std::ranges::any_of(from.operands, [&](const Operand& o) {
    if (o.is_number()) return false;
    const DagNode& n = dag.nodes[at(o.node)];
    return (n.kind == DagKind::kReduce || n.kind == DagKind::kProduct) && numel(n.shape) == numel(from.shape);
  });
}

/// FLOP of an element from what is in memory, or looked up, on.
double flop_of(const Dag& dag, int node) {
  const DagNode& n = dag.nodes[at(node)];
  if (n.kind != DagKind::kPointwise || n.op == ExprOp::kTake) return 0;
  double flop = info(n.op).flop;
  for (const Operand& o : n.operands)
    if (!o.is_number() && flop <= kMostRepeatedFlop) flop += flop_of(dag, o.node);
  return flop;
}

}  // namespace

void push_takes(Dag& dag) {
  const std::vector<bool> of_counts = nodes_of_counts(dag);
  std::vector<int> uses = uses_of_nodes(dag);
  auto is_count = [&](const Operand& o) {
    return o.is_number() || (o.node < static_cast<int>(of_counts.size()) && of_counts[at(o.node)]);
  };
  // What it makes is appended, and visited in its turn.
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    if (dag.nodes[i].op != ExprOp::kTake) continue;
    const DagNode take = dag.nodes[i];
    const Operand& view = take.operands[0];
    const DagNode from = dag.nodes[at(view.node)];
    if (from.kind != DagKind::kPointwise || from.op == ExprOp::kCall || numel(take.shape) == 0) continue;
    const bool made_here = is_count(view);
    // One look serves both takes, and where it looks follows from where the element is.
    const bool looks_once =
        from.op == ExprOp::kTake && std::all_of(from.operands.begin() + 1, from.operands.end(), is_count);
    const bool is_few = numel(take.shape) * kFewTaken <= numel(from.shape);
    const double growth =
        static_cast<double>(numel(take.shape)) / static_cast<double>(std::max<int64_t>(1, numel(from.shape)));
    // Where one element lies along the dimension, a stack of many parts would compute each of them for all others.
    const bool is_cheap = uses[at(view.node)] == 1 && take.taken[0].size > 1 &&
                          std::all_of(take.operands.begin() + 1, take.operands.end(), is_count) &&
                          growth * flop_of(dag, view.node) <= kMostRepeatedFlop;
    const bool grows = !made_here && !looks_once && !is_cheap && growth > 2;
    const bool is_shared = uses[at(view.node)] > 1 && !is_few;
    if (grows || (is_shared && info(from.op).flop > kTakenFlop)) continue;
    if (is_shared && ends_reduction(dag, from)) continue;
    Operand wide = view;  // with the dimensions along which places are looked up
    for (const Taken& t : take.taken) wide.shape.push_back(t.size), wide.strides.push_back(t.stride);
    const size_t rank = take.shape.size();
    std::vector<DagNode> takes;
    std::vector<Operand> more;
    DagNode moved = from;
    moved.shape = take.shape;
    bool all = true;
    size_t from_memory = 0;
    for (Operand& o : moved.operands) {
      auto c = compose(wide, o);
      all = all && c.has_value();
      if (!c || c->is_number()) {
        if (c) c->shape = take.shape, c->strides.resize(rank), o = std::move(*c);
        continue;
      }
      std::vector<Taken> taken;
      std::vector<Operand> places;
      for (size_t k = 0; k < take.taken.size(); ++k) {
        Taken t = take.taken[k];
        t.stride = c->strides[rank + k];
        if (t.stride != 0) taken.push_back(t), places.push_back(take.operands[k + 1]);
      }
      c->shape.resize(rank), c->strides.resize(rank);
      o = std::move(*c);
      if (taken.empty()) continue;
      if (from.op == ExprOp::kTake && &o == &moved.operands[0]) {  // one look for both
        moved.taken.insert(moved.taken.end(), taken.begin(), taken.end());
        more = std::move(places);
        continue;
      }
      const DagNode& source = dag.nodes[at(o.node)];
      DagNode t = take;
      t.dtype = source.dtype;
      t.operand_type = register_type(t.dtype);
      t.name = source.name;
      t.taken = std::move(taken);
      t.operands = {o};
      t.operands.insert(t.operands.end(), places.begin(), places.end());
      o.shape = take.shape;
      o.strides = row_major(take.shape);
      o.offset = 0;
      const auto known = std::ranges::find_if(takes, [&](const DagNode& other) { return is_same_take(other, t); });
      o.node = -2 - static_cast<int>(known - takes.begin());
      if (known != takes.end()) continue;
      from_memory += source.kind != DagKind::kReduce;
      takes.push_back(std::move(t));
    }
    moved.operands.insert(moved.operands.end(), more.begin(), more.end());
    if (!all || (from_memory > 2 && is_shared)) continue;
    if (--uses[at(view.node)] == 0)  // and reads nothing any more
      for (const Operand& o : from.operands)
        if (!o.is_number()) --uses[at(o.node)];
    for (Operand& o : moved.operands) {
      if (o.node <= -2) o.node = static_cast<int>(dag.nodes.size()) - 2 - o.node;
      if (!o.is_number() && o.node < static_cast<int>(uses.size())) ++uses[at(o.node)];
    }
    for (DagNode& t : takes) {
      for (const Operand& o : t.operands)
        if (!o.is_number()) ++uses[at(o.node)];
      dag.nodes.push_back(std::move(t));
      uses.push_back(1);
    }
    dag.nodes[i] = std::move(moved);
  }
  tidy(dag);
}

}  // namespace kiln::fusion
