// Takes at places that follow evenly from where an element is, inside of what is in memory: strides say the same, and a
// kernel knows what its rows have in common (windows, as of an unfold that is written with places).
#include <algorithm>
#include <limits>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

class ViewTaker {
 public:
  explicit ViewTaker(Dag& dag) : dag_(dag), numbers_(dag.nodes.size()), views_(dag.nodes.size()) {
    for (size_t i = 0; i < dag.nodes.size(); ++i) numbers_[i] = numbers_of(dag.nodes[i]);
  }

  void run() {
    std::vector<bool> of_product(dag_.nodes.size());  // which computes windows from what it has read
    for (const DagNode& n : dag_.nodes)
      for (const Operand& o : n.operands)
        if (!o.is_number() && n.kind == DagKind::kProduct) of_product[at(o.node)] = true;
    bool any = false;
    for (size_t i = 0; i < dag_.nodes.size(); ++i) {
      DagNode& n = dag_.nodes[i];
      for (Operand& o : n.operands) see_through(o, n);
      if (n.op == ExprOp::kTake && !of_product[i]) views_[i] = make_view(n);
      any = any || views_[i];
    }
    if (any) tidy(dag_);
  }

 private:
  using Numbers = std::optional<Operand>;  // a tensor of integers as offset + the sum of strides times indices
  static constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // far from where either width ends
  static constexpr int kNoTensor = 0;  // of such an operand: its node is not looked at, but it is more than a number

  /// Of all elements of a node.
  Numbers numbers_of(const DagNode& n) const {
    Operand out;
    out.node = kNoTensor;
    out.shape = n.shape;
    // Narrow integers wrap around, and floats round.
    if (!is_int(n.dtype) || n.dtype == DType::kI1 || size_of(n.dtype) < 4) return std::nullopt;
    if (n.counts) {
      out.strides = row_major(n.shape);
      return range(out).second > kMost ? std::nullopt : Numbers(out);
    }
    if (n.kind != DagKind::kPointwise) return std::nullopt;
    const bool adds = n.op == ExprOp::kAdd || n.op == ExprOp::kSub;
    if (!adds && n.op != ExprOp::kMul && n.op != ExprOp::kCast) return std::nullopt;
    Numbers a = numbers(n.operands[0]);
    if (n.op == ExprOp::kCast) return a;
    Numbers b = numbers(n.operands[1]);
    if (!a || !b) return std::nullopt;
    auto is_number = [](const Operand& o) { return std::ranges::all_of(o.strides, [](int64_t s) { return s == 0; }); };
    if (n.op == ExprOp::kMul) {
      if (!is_number(*b)) std::swap(a, b);
      if (!is_number(*b)) return std::nullopt;
      for (int64_t& s : a->strides) s *= b->offset;
      a->offset *= b->offset;
    } else {
      const int64_t sign = n.op == ExprOp::kSub ? -1 : 1;
      for (size_t d = 0; d < a->strides.size(); ++d) a->strides[d] += sign * b->strides[d];
      a->offset += sign * b->offset;
    }
    const auto [least, most] = range(*a);
    if (least < -kMost || most > kMost) return std::nullopt;
    return a;
  }

  Numbers numbers(const Operand& o) const {
    if (!o.is_number()) {
      const Numbers& all = numbers_[at(o.node)];
      return all ? compose(o, *all) : std::nullopt;
    }
    const int64_t* n = std::get_if<int64_t>(&o.number);
    if (!o.is_literal() || !n || *n < -kMost || *n > kMost) return std::nullopt;
    Operand out;
    out.node = kNoTensor;
    out.shape = o.shape;
    out.strides.assign(o.shape.size(), 0);
    out.offset = *n;
    return out;
  }

  static std::pair<int64_t, int64_t> range(const Operand& o) {
    int64_t least = o.offset, most = o.offset;
    for (size_t d = 0; d < o.shape.size(); ++d)
      (o.strides[d] < 0 ? least : most) += o.strides[d] * std::max<int64_t>(0, o.shape[d] - 1);
    return {least, most};
  }

  /// Whether the take is a view now: a copy of one, which those that read it need not make.
  bool make_view(DagNode& n) const {
    const DagNode& from = dag_.nodes[at(n.operands[0].node)];
    if (from.kind != DagKind::kLeaf || from.counts || numel(n.shape) == 0) return false;
    Operand view = n.operands[0];
    for (size_t k = 0; k < n.taken.size(); ++k) {
      const Numbers places = numbers(n.operands[k + 1]);
      if (!places) return false;
      const auto [least, most] = range(*places);
      if (least < 0 || most >= n.taken[k].size) return false;
      for (size_t d = 0; d < view.strides.size(); ++d) {
        if (places->strides[d] < 0 || (places->strides[d] > 0 && view.strides[d] > 0)) return false;
        view.strides[d] += places->strides[d] * n.taken[k].stride;
      }
      view.offset += places->offset * n.taken[k].stride;
    }
    n.op = ExprOp::kCast;
    n.operand_type = n.number_type = register_type(n.dtype);
    n.taken.clear();
    n.operands = {view};
    return true;
  }

  /// Reads what a copy of a view copies, where strides can say it.
  void see_through(Operand& o, const DagNode& reader) const {
    if (o.is_number() || !views_[at(o.node)] || reader.op == ExprOp::kTake) return;
    if (const auto view = compose(o, dag_.nodes[at(o.node)].operands[0])) o = *view;
  }

  Dag& dag_;
  std::vector<Numbers> numbers_;
  std::vector<bool> views_;  // takes that are copies of a view now
};

}  // namespace

void view_takes(Dag& dag) { ViewTaker(dag).run(); }

}  // namespace kiln::fusion
