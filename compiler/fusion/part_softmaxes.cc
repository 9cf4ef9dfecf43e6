// Sums of exponentials of few long rows in one pass over memory: each part of a row has its own maximum and sum of
// exponentials below it, and a second kernel joins them (Milakov and Gimelshein 2018). With the maximum of all first,
// two kernels read everything, and each wants a second one for its parts.
#include <limits>
#include <optional>
#include <vector>

#include "compiler/fusion/row_parts.h"
#include "compiler/fusion/split.h"

namespace kiln::fusion {

namespace {

class SoftmaxParter : RowParts {
 public:
  using RowParts::RowParts;

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (const auto top = maximum_of(i)) {
        const DagNode& n = dag_.nodes[i];
        if (keeps_last(n)) continue;  // parts of 256 rows: too many to join at once
        // Where parts of both would pay, one after the other; these are as many as of one.
        if (splits_of_reduction(dag_, n, machine_, /*chained=*/true) < 2) continue;
        const int64_t wanted = splits_of_reduction(dag_, n, machine_, /*chained=*/false);
        if (const auto cut = cut_of(n, dag_.nodes[*top].operands[0], wanted)) part(i, *top, *cut);
      }
    tidy(dag_);
  }

 private:
  /// x - away of a node that sums exp(x - away), where away is one number for each row.
  const DagNode* difference_of(const DagNode& sum) const {
    if (!is_sum(sum)) return nullptr;
    const DagNode* e = pointwise(sum.operands[0], ExprOp::kExp);
    const DagNode* below = e ? pointwise(e->operands[0], ExprOp::kSub) : nullptr;
    if (!below || below->operands[0].is_number() || below->operands[1].is_number()) return nullptr;
    for (const int a : sum.axes)
      if (below->operands[1].strides[at(a)] != 0) return nullptr;
    return below;
  }

  /// The maximum of x along the same axes that `away` is, or is computed from, row by row.
  std::optional<size_t> maximum_of(size_t i) const {
    const DagNode& n = dag_.nodes[i];
    const DagNode* below = difference_of(n);
    if (!below || numel(n.operands[0].shape) == 0) return std::nullopt;
    constexpr size_t kMostSeen = 8;
    std::vector<int> work = {below->operands[1].node};
    for (size_t k = 0; k < work.size() && k < kMostSeen; ++k) {
      const DagNode& from = dag_.nodes[at(work[k])];
      if (from.kind == DagKind::kReduce && from.op == ExprOp::kMax && from.splits == 1 && from.axes == n.axes &&
          from.operand_type == n.operand_type && is_same(from.operands[0], below->operands[0]))
        return at(work[k]);
      if (from.kind != DagKind::kPointwise || numel(from.shape) != numel(n.shape)) continue;
      for (const Operand& o : from.operands)
        if (!o.is_number()) work.push_back(o.node);
    }
    return std::nullopt;
  }

  /// Along the axes of `like`: the maximum of x, and the sum of the exponentials below it. Where that is infinite,
  /// below a number that is not: what has no finite element adds 0, or infinity, and no NaN.
  struct Statistics {
    Operand top, finite, sum;
  };
  Statistics statistics(const Operand& x, DagNode like, const DagNode& maximum) {
    Statistics out;
    like.dtype = like.operand_type;
    DagNode top = like;
    top.op = ExprOp::kMax;
    top.plain_max = maximum.plain_max;
    top.operands = {x};
    top.name = "top_of_part";
    const double most = like.operand_type == DType::kF64 ? std::numeric_limits<double>::max()
                                                         : double{std::numeric_limits<float>::max()};
    out.top = append(dag_, std::move(top));
    const Operand above = computed(ExprOp::kMaximum, {out.top, number(-most, like.shape)}, like, like.shape);
    out.finite = computed(ExprOp::kMinimum, {above, number(most, like.shape)}, like, like.shape, "finite_top");
    const Operand below = computed(ExprOp::kSub, {x, with_axes(out.finite, like.axes, x.shape)}, like, x.shape);
    like.operands = {computed(ExprOp::kExp, {below}, like, x.shape)};
    like.name = "sum_of_part";
    out.sum = append(dag_, std::move(like));
    return out;
  }

  /// The sum of exponentials below `away`.
  Operand sum_below(const Statistics& part, const Operand& away, const DagNode& n) {
    const Shape& shape = part.top.shape;
    const Operand apart = computed(ExprOp::kSub, {part.finite, away}, n, shape);
    return computed(ExprOp::kMul, {part.sum, computed(ExprOp::kExp, {apart}, n, shape)}, n, shape);
  }

  void part(size_t sum, size_t top, const Cut& cut) {
    const DagNode n = dag_.nodes[sum], maximum = dag_.nodes[top];
    const Operand away = without_axes(difference_of(n)->operands[1], n.axes);
    const Parts parts = take_apart(maximum.operands[0], n, cut);
    const Statistics each = statistics(parts.even, parts.sum, maximum);
    std::optional<Operand> last_top, last_sum;
    if (parts.rest) {
      const Statistics last = statistics(*parts.rest, n, maximum);
      last_top = last.top, last_sum = sum_below(last, away, n);
    }
    join(top, each.top, parts.place, last_top, ExprOp::kMaximum);
    join(sum, sum_below(each, repeated(away, parts.place, cut.parts), n), parts.place, last_sum, ExprOp::kAdd);
  }
};

}  // namespace

void part_softmaxes(Dag& dag, const Machine& machine) {
  if (machine.gpu()) SoftmaxParter(dag, machine).run();
}

}  // namespace kiln::fusion
