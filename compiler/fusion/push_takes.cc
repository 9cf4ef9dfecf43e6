// Takes of computed tensors: what is taken is computed, instead of all there is.
#include <algorithm>
#include <set>

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
/// What one kernel less saves is more than so many FLOP for each element that is taken from fewer (a graph's edges, of
/// nodes: 1 / sqrt of their degrees).
constexpr double kFlopOfLaunch = 1 << 22;

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

/// Whether it is computed from tensors in memory, element by element: what sums go into is in their kernel anyway.
bool is_of_memory(const Dag& dag, int node) {
  const DagNode& n = dag.nodes[at(node)];
  if (n.kind == DagKind::kLeaf) return true;
  return n.kind == DagKind::kPointwise &&
         std::ranges::all_of(n.operands, [&](const Operand& o) { return o.is_number() || is_of_memory(dag, o.node); });
}

/// Where dimensions of the taken end within dimension `t` of a take, from the innermost: an image of windows, whose
/// rows are eight windows of seven.
std::vector<int64_t> ends_within(const Taken& t, const std::vector<Operand>& operands) {
  std::set<int64_t> strides;
  for (const Operand& o : operands) {
    if (o.is_number()) continue;
    const Shape outer = row_major(o.shape);
    std::optional<int64_t> next;  // the stride with which a dimension runs on into the one inside of it
    for (size_t d = o.shape.size(); d-- > 0;) {
      if (o.shape[d] == 1) continue;
      if (next && o.strides[d] != *next) strides.insert(outer[d]);
      next = o.strides[d] * o.shape[d];
    }
  }
  std::vector<int64_t> ends;
  int64_t inner = t.stride;
  for (int64_t s : strides) {
    if (inner <= 0 || s <= inner || s >= t.stride * t.size || s % inner != 0 || t.stride * t.size % s != 0) continue;
    ends.push_back(s / inner);
    inner = s;
  }
  return ends;
}

/// What `op` makes of places and a number, for each place once.
Operand place_node(Dag& dag, const Operand& places, ExprOp op, int64_t number) {
  DagNode n;
  n.kind = DagKind::kPointwise;
  n.op = op;
  n.dtype = n.operand_type = n.number_type = dag.nodes[at(places.node)].dtype;
  n.origin = dag.nodes[at(places.node)].origin;
  Operand own = places;
  for (size_t d = 0; d < own.shape.size(); ++d)
    if (own.strides[d] == 0) own.shape[d] = 1;
  n.shape = own.shape;
  Operand by;
  by.number = number;
  by.shape = own.shape;
  by.strides.assign(own.shape.size(), 0);
  n.operands = {own, by};
  Operand out = places;
  out.offset = 0;
  out.strides = row_major(own.shape);
  for (size_t d = 0; d < own.shape.size(); ++d)
    if (own.shape[d] == 1) out.strides[d] = 0;
  out.node = static_cast<int>(dag.nodes.size());
  dag.nodes.push_back(std::move(n));
  return out;
}

/// Takes dimensions along which places are looked up apart where they are several of what is taken. False where there
/// are none.
bool split_places(Dag& dag, DagNode& take, const std::vector<Operand>& operands) {
  std::vector<Taken> taken;
  std::vector<Operand> places = {take.operands[0]};
  for (size_t k = 0; k < take.taken.size(); ++k) {
    Taken t = take.taken[k];
    Operand p = take.operands[k + 1];
    if (!p.is_number())
      for (int64_t inner : ends_within(t, operands)) {
        places.push_back(place_node(dag, p, ExprOp::kMod, inner));
        taken.push_back({t.stride, inner, false});
        p = place_node(dag, p, ExprOp::kFloorDiv, inner);
        t = {t.stride * inner, t.size / inner, t.any_outside};
      }
    taken.push_back(t);
    places.push_back(p);
  }
  if (taken.size() == take.taken.size()) return false;
  take.taken = std::move(taken);
  take.operands = std::move(places);
  return true;
}

}  // namespace

void push_takes(Dag& dag) {
  std::vector<bool> of_counts = nodes_of_counts(dag);
  std::vector<int> uses = uses_of_nodes(dag);
  auto is_count = [&](const Operand& o) {
    return o.is_number() || (o.node < static_cast<int>(of_counts.size()) && of_counts[at(o.node)]);
  };
  // What it makes is appended, and visited in its turn.
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    if (dag.nodes[i].op != ExprOp::kTake) continue;
    DagNode take = dag.nodes[i];
    const Operand view = take.operands[0];
    const DagNode from = dag.nodes[at(view.node)];
    if (from.kind != DagKind::kPointwise || from.op == ExprOp::kCall || numel(take.shape) == 0) continue;
    const bool made_here = is_count(view);
    // One look serves both takes, and where it looks follows from where the element is.
    const bool looks_once =
        from.op == ExprOp::kTake && std::all_of(from.operands.begin() + 1, from.operands.end(), is_count);
    const bool is_few = numel(take.shape) * kFewTaken <= numel(from.shape);
    const double growth =
        static_cast<double>(numel(take.shape)) / static_cast<double>(std::max<int64_t>(1, numel(from.shape)));
    const double flop = flop_of(dag, view.node);
    // Where one element lies along the dimension, a stack of many parts would compute each of them for all others.
    const bool is_cheap = uses[at(view.node)] == 1 && take.taken[0].size > 1 &&
                          std::all_of(take.operands.begin() + 1, take.operands.end(), is_count) &&
                          growth * flop <= kMostRepeatedFlop;
    const bool is_brief = flop <= kMostRepeatedFlop &&
                          static_cast<double>(numel(take.shape)) * (1 + flop) <= kFlopOfLaunch &&
                          is_of_memory(dag, view.node);
    const bool grows = !made_here && !looks_once && !is_cheap && !is_brief && growth > 2;
    const bool is_shared = uses[at(view.node)] > 1 && !is_few;
    if (grows || (is_shared && info(from.op).flop > kTakenFlop)) continue;
    if (is_shared && ends_reduction(dag, from)) continue;
    Operand wide;  // with the dimensions along which places are looked up
    auto widen = [&] {
      wide = view;
      for (const Taken& t : take.taken) wide.shape.push_back(t.size), wide.strides.push_back(t.stride);
    };
    widen();
    const auto says = [&](const Operand& o) { return compose(wide, o).has_value(); };
    if (!std::ranges::all_of(from.operands, says) && split_places(dag, take, from.operands)) {
      widen();
      for (size_t n = of_counts.size(); n < dag.nodes.size(); ++n) {
        of_counts.push_back(is_count(dag.nodes[n].operands[0]));
        uses.push_back(0);
        for (const Operand& o : dag.nodes[n].operands)
          if (!o.is_number()) ++uses[at(o.node)];
      }
    }
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
      of_counts.push_back(false);
      uses.push_back(1);
    }
    dag.nodes[i] = std::move(moved);
  }
  tidy(dag);
}

}  // namespace kiln::fusion
