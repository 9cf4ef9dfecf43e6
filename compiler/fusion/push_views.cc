// Views of computed tensors: what a view shows is computed, instead of all there is, so that it joins the kernel of
// what reads the view.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

constexpr int kRepeatedFlop = 24;      // per element, for what several views of it share
constexpr int64_t kMostReadings = 10;  // of an element of what takes less than that in all

using View = std::tuple<Shape, Shape, int64_t>;

View view_of(const Operand& o) { return {o.shape, o.strides, o.offset}; }

/// The view without repeating anything: a slice that is read along more dimensions, as of a grid's coordinates.
Operand each_once(Operand view) {
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.strides[d] == 0 && view.shape[d] > 1) view.shape[d] = 1;
    if (view.shape[d] == 1) view.strides[d] = 0;
  }
  return view;
}

/// What computes each_once(view), read as the view is.
Operand in_place_of(const Operand& view, int node) {
  Operand o;
  o.node = node;
  o.shape = view.shape;
  o.strides = row_major(each_once(view).shape);
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (view.strides[d] == 0) o.strides[d] = 0;
  return o;
}

class ViewPusher {
 public:
  explicit ViewPusher(Dag& dag) : dag_(dag) {
    for (const DagNode& n : dag.nodes) facts_.push_back(facts_of(n));
    for (const DagNode& n : dag.nodes)
      for (const Operand& o : n.operands)
        if (!o.is_number()) ++facts_[at(o.node)].uses, count_view(o, 1);
    for (const Operand& o : dag.outputs) facts_[at(o.node)].uses += 2;
  }

  void run() {
    // Once more when anything has moved: a half that was asked first may have waited for the other one.
    while (push_all()) {
    }
    tidy(dag_);
  }

 private:
  struct Facts {
    int uses = 0;
    std::map<View, int> views;  // of the uses, those of a part, or in another order
    bool of_inputs = false;     // computed from inputs, or what joins the parts of rows, element by element
    bool of_reductions = false;
    bool of_joined_parts = false;  // of reductions of reductions: a kernel of their own stores them, a few for each row
    bool of_counts = false;        // from counts alone
    int flop = 0;                  // from inputs on; looking up where none counts is dear
  };

  /// All but its uses, from the facts of its operands.
  Facts facts_of(const DagNode& n) const {
    Facts f;
    f.of_inputs = n.kind == DagKind::kLeaf || n.kind == DagKind::kPointwise;
    f.of_counts = n.counts || (n.kind == DagKind::kPointwise && n.op != ExprOp::kTake);
    f.flop = info(n.op).flop;
    const bool computes = n.kind == DagKind::kReduce || (n.kind == DagKind::kPointwise && n.taken.empty());
    f.of_reductions = f.of_joined_parts =
        computes && std::ranges::any_of(n.operands, [](const Operand& o) { return !o.is_number(); });
    for (size_t k = 0; k < n.operands.size(); ++k) {
      if (n.operands[k].is_number()) continue;
      const Facts& from = facts_[at(n.operands[k].node)];
      f.of_inputs = f.of_inputs && from.of_inputs;
      f.of_counts = f.of_counts && from.of_counts;
      f.flop = std::min(f.flop + from.flop, kRepeatedFlop + 1);
      if (n.op == ExprOp::kTake && k > 0 && !from.of_counts) f.flop = kRepeatedFlop + 1;
      f.of_reductions = f.of_reductions && from.of_reductions;
      f.of_joined_parts = f.of_joined_parts && (n.kind == DagKind::kReduce ? from.of_reductions : from.of_joined_parts);
    }
    if (f.of_joined_parts) f.of_inputs = true, f.flop = 0;
    if (n.kind == DagKind::kReduce) f.of_reductions = true;
    return f;
  }

  void count_view(const Operand& o, int by) {
    if (!axis_map(o, dag_.nodes[at(o.node)].shape)) facts_[at(o.node)].views[view_of(each_once(o))] += by;
  }

  /// The halves of a tensor that are read apart are computed apart: that is no more work, and nothing is stored. What
  /// is cheap (the padding of an image) is computed again in each window that reads it.
  bool is_read_in_parts(int node) const {
    const DagNode& n = dag_.nodes[at(node)];
    const Facts& f = facts_[at(node)];
    const bool cheap = f.flop <= kRepeatedFlop;
    if (!f.of_inputs || n.op == ExprOp::kCall || info(n.op).flop > kRepeatedFlop) return false;
    int64_t viewed = 0;
    int readers = 0;
    for (const auto& [view, count] : f.views)
      if (count > 0) viewed += numel(std::get<0>(view)), readers += count;
    if (n.op == ExprOp::kTake && !cheap && viewed > numel(n.shape)) return false;
    return readers == f.uses && (cheap ? viewed <= kMostReadings * numel(n.shape) : 4 * viewed <= 5 * numel(n.shape));
  }

  bool may_push(const Operand& view) const {
    const DagNode& from = dag_.nodes[at(view.node)];
    const Facts& f = facts_[at(view.node)];
    if (from.kind != DagKind::kPointwise || numel(view.shape) == 0 || axis_map(view, from.shape)) return false;
    if (f.of_counts && f.flop <= kRepeatedFlop) return true;  // reads nothing, however often
    return numel(view.shape) <= numel(from.shape) && (f.uses == 1 || is_read_in_parts(view.node));
  }

  /// The node that computes what the view shows, or -1 where the operands cannot be read so.
  int pushed(const Operand& view) {
    const auto node = at(view.node);
    if (const auto known = made_.find({view.node, view_of(view)}); known != made_.end()) {
      --facts_[node].views[view_of(view)];
      ++facts_[at(known->second)].uses;
      unuse(view.node);
      return known->second;
    }
    const DagNode from = dag_.nodes[node];
    DagNode moved = from;
    moved.shape = view.shape;
    for (Operand& o : moved.operands) {
      auto c = compose(view, o);
      if (!c) return -1;
      o = std::move(*c);
    }
    --facts_[node].uses, --facts_[node].views[view_of(view)];
    for (size_t k = 0; k < moved.operands.size(); ++k) {
      if (moved.operands[k].is_number()) continue;
      if (facts_[node].uses > 0)
        ++facts_[at(moved.operands[k].node)].uses;  // the node is there still, and reads it too
      else
        count_view(from.operands[k], -1);
      count_view(moved.operands[k], 1);
    }
    Facts copied = facts_[node];
    copied.uses = 1;
    copied.views.clear();
    facts_.push_back(std::move(copied));
    const int copy = static_cast<int>(dag_.nodes.size());
    made_[{view.node, view_of(view)}] = copy;
    dag_.nodes.push_back(std::move(moved));
    return copy;
  }

  /// One reader less. What nothing reads any more reads nothing itself.
  void unuse(int node) {
    if (--facts_[at(node)].uses > 0) return;
    for (const Operand& o : dag_.nodes[at(node)].operands)
      if (!o.is_number()) count_view(o, -1), unuse(o.node);
  }

  /// Whether anything was made. Users come after their operands, so that a view walks all the way in one pass from the
  /// back; what is made is appended and visited in turn.
  bool push_all() {
    const size_t before = dag_.nodes.size();
    std::vector<int> work;
    for (size_t i = 0; i < before; ++i)
      if (facts_[i].uses > 0) work.push_back(static_cast<int>(i));
    while (!work.empty()) {
      const auto reader = at(work.back());
      work.pop_back();
      if (facts_[reader].uses == 0) continue;  // what it showed is computed by others meanwhile
      for (size_t i = 0; i < dag_.nodes[reader].operands.size(); ++i) {
        const Operand view = dag_.nodes[reader].operands[i];
        const bool is_table = i == 0 && dag_.nodes[reader].op == ExprOp::kTake;  // push_takes
        if (view.is_number() || is_table || !may_push(each_once(view))) continue;
        const size_t count = dag_.nodes.size();
        const int node = pushed(each_once(view));
        if (node < 0) continue;
        dag_.nodes[reader].operands[i] = in_place_of(view, node);
        if (dag_.nodes.size() > count) work.push_back(node);
      }
    }
    return dag_.nodes.size() > before;
  }

  Dag& dag_;
  std::vector<Facts> facts_;
  std::map<std::pair<int, View>, int> made_;
};

}  // namespace

void push_views(Dag& dag) { ViewPusher(dag).run(); }

}  // namespace kiln::fusion
