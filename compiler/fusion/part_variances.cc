// Variances of few long rows in one pass over memory: each part of a row has its own mean and sum of squares away from
// it, and a second kernel joins them (Chan, Golub and LeVeque 1979). With the mean of all first, two kernels read
// everything, and each wants a second one for its parts.
#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/fusion/row_parts.h"
#include "compiler/fusion/split.h"
#include "compiler/fusion/tile_choice.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

namespace {

class VarianceParter : RowParts {
 public:
  using RowParts::RowParts;

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (const auto total = total_of_mean(i))
        if (const int64_t wanted = wanted_parts(i, *total); wanted > 1)
          if (const auto cut = cut_of(dag_.nodes[i], dag_.nodes[*total].operands[0], wanted)) part(i, *total, *cut);
    tidy(dag_);
  }

 private:
  /// The sum of x of a node that sums (x - mean)² along the same axes.
  std::optional<size_t> total_of_mean(size_t i) const {
    const DagNode& n = dag_.nodes[i];
    if (!is_sum(n)) return std::nullopt;
    const DagNode* squares = pointwise(n.operands[0], ExprOp::kMul);
    if (!squares || !is_same(squares->operands[0], squares->operands[1])) return std::nullopt;
    const DagNode* away = pointwise(squares->operands[0], ExprOp::kSub);
    if (!away || away->operands[0].is_number() || away->operands[1].is_number()) return std::nullopt;
    const DagNode& mean = dag_.nodes[at(away->operands[1].node)];
    if (mean.kind != DagKind::kPointwise || mean.op != ExprOp::kDiv || mean.operands[0].is_number() ||
        !mean.operands[1].is_literal())
      return std::nullopt;
    const int from = mean.operands[0].node;
    const DagNode& total = dag_.nodes[at(from)];
    if (!is_sum(total) || total.axes != n.axes || total.operand_type != n.operand_type ||
        !is_same(total.operands[0], away->operands[0]))
      return std::nullopt;
    return at(from);
  }

  /// Whether rows are so long that those which the multiprocessors work on at a time leave the L2 before they are read
  /// again.
  bool reads_again(int64_t rows, int64_t columns, int bytes) const {
    return columns > kMostColumns &&
           std::min<int64_t>(rows, machine_.multiprocessors) * columns * bytes > machine_.rates().l2_bytes;
  }

  /// The same of rows that lie side by side, of which each multiprocessor works on a few lines at a time (a variance of
  /// the columns of 2639 x 12624 floats, which 198 programs read twice, takes an H200 75 us). Parts short enough to be
  /// kept in registers are read once.
  bool reads_across_again(int64_t rows, int64_t columns, int bytes) const {
    constexpr int64_t kLineBytes = 256, kProgramsAtOnce = 2;
    const int64_t lines = std::min(cdiv(rows * bytes, kLineBytes), kProgramsAtOnce * machine_.multiprocessors);
    return lines * kLineBytes * columns > machine_.rates().l2_bytes;
  }

  /// Whether a processor for each row takes longer to read it two times more than a second kernel takes: very long
  /// rows, and those that lie in runs of odd lengths, whose elements are loaded one by one (batch norm of 70 x 128 x 31
  /// x 31 halves on an H100: 40 us, 30 in parts; of 60 x 96 x 28 x 28 13, and 16 in parts).
  bool is_slow_alone(int64_t rows, int64_t columns, const Operand& x, const std::vector<int>& axes, int bytes) const {
    if (rows > machine_.multiprocessors || columns <= kMostColumns) return false;
    int64_t run = 1;
    for (size_t d = x.shape.size(); d-- > 0;) {
      const bool is_reduced = std::ranges::binary_search(axes, static_cast<int>(d));
      if (!is_reduced || (x.shape[d] != 1 && x.strides[d] != run)) break;
      run *= x.shape[d];
    }
    return columns > 2 * kMostColumns || run * bytes % 16 != 0;
  }

  /// As many as occupy the machine; 1 where a row is better left whole.
  int64_t wanted_parts(size_t i, size_t total) const {
    const DagNode& n = dag_.nodes[i];
    const int64_t rows = numel(n.shape), columns = rows == 0 ? 0 : numel(n.operands[0].shape) / rows;
    if (columns == 0) return 1;
    if (const int64_t wanted = splits_of_reduction(dag_, n, machine_, /*chained=*/false); wanted > 1) return wanted;
    const Operand& x = dag_.nodes[total].operands[0];
    const int bytes = size_of(dag_.nodes[at(x.node)].dtype);
    if (keeps_last(n) && reads_across_again(rows, columns, bytes)) return 2;  // or the longest parts that there are
    if (!reads_again(rows, columns, bytes) && !is_slow_alone(rows, columns, x, n.axes, bytes)) return 1;
    constexpr int64_t kProgramsPerProcessor = 4;
    return std::max<int64_t>(2, cdiv(kProgramsPerProcessor * machine_.multiprocessors, rows));
  }

  /// Of the elements of x, along the axes of `like`: their number, sum, mean and squares away from the mean.
  struct Statistics {
    int64_t count;
    Operand total, mean, squares;
  };
  Statistics statistics(const Operand& x, DagNode like, const DagNode& n) {
    Statistics out;
    like.dtype = like.operand_type;
    like.operands = {x};
    out.count = numel(x.shape) / numel(like.shape);
    like.name = "total_of_part";
    out.total = append(dag_, like);
    out.mean = computed(ExprOp::kDiv, {out.total, number(static_cast<double>(out.count), like.shape)}, n, like.shape,
                        "mean_of_part");
    const Operand away = computed(ExprOp::kSub, {x, with_axes(out.mean, like.axes, x.shape)}, n, x.shape);
    like.operands = {computed(ExprOp::kMul, {away, away}, n, x.shape)};
    like.name = "squares_of_part";
    out.squares = append(dag_, std::move(like));
    return out;
  }

  /// Their squares away from the mean of all, `mean` as an operand of their shape.
  Operand squares_away(const Statistics& part, const Operand& mean, const DagNode& n) {
    const Shape& shape = part.mean.shape;
    const Operand apart = computed(ExprOp::kSub, {part.mean, mean}, n, shape);
    const Operand between = computed(ExprOp::kMul, {apart, apart}, n, shape);
    const Operand weighed = computed(ExprOp::kMul, {between, number(static_cast<double>(part.count), shape)}, n, shape);
    return computed(ExprOp::kAdd, {part.squares, weighed}, n, shape);
  }

  void part(size_t squares, size_t total, const Cut& cut) {
    const DagNode n = dag_.nodes[squares], whole_sum = dag_.nodes[total];
    const Parts parts = take_apart(whole_sum.operands[0], whole_sum, cut);
    const Statistics each = statistics(parts.even, parts.sum, n);
    // The mean of all, which stays as it is.
    const Operand mean = dag_.nodes[at(n.operands[0].node)].operands[0];
    const Operand of_all = without_axes(dag_.nodes[at(mean.node)].operands[1], n.axes);
    std::optional<Operand> last_total, last_squares;
    if (parts.rest) {
      const Statistics last = statistics(*parts.rest, whole_sum, n);
      last_total = last.total, last_squares = squares_away(last, of_all, n);
    }
    join(total, each.total, parts.place, last_total, ExprOp::kAdd);
    join(squares, squares_away(each, repeated(of_all, parts.place, cut.parts), n), parts.place, last_squares,
         ExprOp::kAdd);
  }
};

}  // namespace

void part_variances(Dag& dag, const Machine& machine) {
  if (machine.gpu()) VarianceParter(dag, machine).run();
}

}  // namespace kiln::fusion
