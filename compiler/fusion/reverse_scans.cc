// Running sums from the end, such as discounted returns and the gradient of a running sum: between two flips of the
// same dimension one kernel goes backwards, and nothing is stored between them.
#include <algorithm>
#include <optional>

#include "compiler/fusion/dag.h"
#include "compiler/fusion/split.h"

namespace kiln::fusion {

namespace {

class Reverser {
 public:
  Reverser(Dag& dag, const Machine& machine) : dag_(dag), machine_(machine), uses_(uses_of_nodes(dag)) {}

  void run() {
    for (DagNode& n : dag_.nodes)
      if (auto scan = reversed(n)) n = std::move(*scan);
    tidy(dag_);
  }

 private:
  /// The scan that does all of a flip of a scan of a flip.
  std::optional<DagNode> reversed(const DagNode& flip) const {
    if (flip.op != ExprOp::kTake || uses_[at(flip.operands[0].node)] != 1) return std::nullopt;
    const DagNode& scan = dag_.nodes[at(flip.operands[0].node)];
    // The parts of a long row add up those before them.
    if (scan.kind != DagKind::kScan || scan.reverse || is_split_scan(dag_, scan, machine_)) return std::nullopt;
    if (!flips(flip, scan.axes[0]) || !is_whole(flipped(flip, scan.axes[0]), scan.shape)) return std::nullopt;
    const DagNode& inner = dag_.nodes[at(scan.operands[0].node)];
    if (inner.op != ExprOp::kTake || !flips(inner, scan.axes[0]) || !is_whole(scan.operands[0], inner.shape))
      return std::nullopt;
    DagNode out = scan;
    out.reverse = true;
    out.operands[0] = flipped(inner, scan.axes[0]);
    return out;
  }

  /// What a flip reads, in its own order.
  static Operand flipped(const DagNode& flip, int axis) {
    Operand o = flip.operands[0];
    o.strides[at(axis)] = flip.taken[0].stride;
    return o;
  }

  /// Whether a take has the elements of all places along the axis, the last first.
  bool flips(const DagNode& take, int axis) const {
    const size_t d = at(axis);
    if (take.taken.size() != 1 || take.taken[0].size != take.shape[d]) return false;
    const Operand& places = take.operands[1];
    for (size_t i = 0; i < places.shape.size(); ++i)
      if ((places.strides[i] != 0 && places.shape[i] > 1) != (i == d)) return false;
    if (places.is_number() || places.offset != 0) return false;
    const DagNode& minus = dag_.nodes[at(places.node)];
    if (minus.op != ExprOp::kSub || numel(minus.shape) != take.shape[d] || !minus.operands[0].is_literal() ||
        minus.operands[1].is_number() || minus.operands[1].offset != 0)
      return false;
    const auto* last = std::get_if<int64_t>(&minus.operands[0].number);
    return last && *last == take.shape[d] - 1 && counts(minus.operands[1]);
  }

  /// Whether it is 0, 1, 2, …, converted or not.
  bool counts(const Operand& o) const {
    const DagNode& n = dag_.nodes[at(o.node)];
    if (o.offset != 0 || touched(o) != numel(n.shape)) return false;
    return n.counts || (n.op == ExprOp::kCast && is_int(n.dtype) && size_of(n.dtype) >= 4 &&
                        !n.operands[0].is_number() && counts(n.operands[0]));
  }

  Dag& dag_;
  const Machine& machine_;
  std::vector<int> uses_;
};

}  // namespace

void reverse_scans(Dag& dag, const Machine& machine) { Reverser(dag, machine).run(); }

}  // namespace kiln::fusion
