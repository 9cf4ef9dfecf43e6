// Variances of few long rows in one pass over memory: each part of a row has its own mean and sum of squares away from
// it, and a second kernel joins them (Chan, Golub and LeVeque 1979). With the mean of all first, two kernels read
// everything, and each wants a second one for its parts.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/fusion/split.h"
#include "compiler/fusion/tile_choice.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

namespace {

class Parter {
 public:
  Parter(Dag& dag, const Machine& machine) : dag_(dag), machine_(machine) {}

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (const auto total = total_of_mean(i))
        if (const auto cut = cut_of(i, *total)) take_apart(i, *total, *cut);
    tidy(dag_);
  }

 private:
  /// Axis `axis` as `parts` parts of equal length; what they do not divide is left behind them.
  struct Cut {
    int axis;
    int64_t parts;
  };

  const DagNode* pointwise(const Operand& o, ExprOp op) const {
    if (o.is_number()) return nullptr;
    const DagNode& n = dag_.nodes[at(o.node)];
    return n.kind == DagKind::kPointwise && n.op == op && is_whole(o, n.shape) ? &n : nullptr;
  }

  static bool is_sum(const DagNode& n) {
    return n.kind == DagKind::kReduce && n.op == ExprOp::kSum && n.splits == 1 && is_float(n.operand_type);
  }

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
    return columns > kMostColumns && std::min<int64_t>(rows, machine_.multiprocessors) * columns * bytes > kL2Bytes;
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

  /// Parts that a program holds, as many as occupy the machine; of equal length, so that one axis is cut evenly where
  /// that gives about as many. Else what is left of it is a small part of its own.
  std::optional<Cut> cut_of(size_t i, size_t total) const {
    const DagNode& n = dag_.nodes[i];
    if (numel(n.operands[0].shape) == 0) return std::nullopt;
    const Shape& all = n.operands[0].shape;
    const int64_t rows = numel(n.shape), columns = numel(all) / rows;
    int64_t wanted = splits_of_reduction(dag_, n, machine_, /*chained=*/false);
    const Operand& x = dag_.nodes[total].operands[0];
    if (wanted < 2) {
      const int bytes = size_of(dag_.nodes[at(x.node)].dtype);
      if (!reads_again(rows, columns, bytes) && !is_slow_alone(rows, columns, x, n.axes, bytes)) return std::nullopt;
      constexpr int64_t kProgramsPerProcessor = 4;
      wanted = cdiv(kProgramsPerProcessor * machine_.multiprocessors, rows);
    }
    const bool across = n.axes.back() != static_cast<int>(all.size()) - 1;
    const int64_t most = across ? 256 : 8192, least = across ? 32 : 1024;
    const int64_t first = std::max<int64_t>(2, cdiv(columns, most)), last = columns / least;
    // Elements of a part that lie side by side, where rows do.
    auto run = [&](int axis, int64_t parts) {
      int64_t elements = all[at(axis)] / parts;
      for (size_t d = at(axis) + 1; d < all.size(); ++d) elements *= all[d];
      return elements;
    };
    constexpr int64_t kLeastRun = 64;
    std::optional<Cut> best;
    for (int axis : n.axes)
      for (int64_t parts = first; parts <= std::min(last, all[at(axis)]); ++parts) {
        if (all[at(axis)] % parts != 0 || (!across && run(axis, parts) < kLeastRun)) continue;
        const auto off = [&](int64_t p) { return std::abs(p - std::max(wanted, first)); };
        if (!best || off(parts) < off(best->parts)) best = Cut{axis, parts};
      }
    const int64_t few = std::max(wanted, first) / 2;
    int64_t parts = std::min(std::max(wanted, first), last);
    if ((best && best->parts >= few) || parts < first) return best;
    const int longest = *std::ranges::max_element(n.axes, {}, [&](int a) { return all[at(a)]; });
    // Not so many that what is left is longer than a part.
    while (parts >= first && all[at(longest)] % parts > all[at(longest)] / parts) --parts;
    if (parts < std::max(first, best ? best->parts + 1 : 0) || (!across && run(longest, parts) < kLeastRun))
      return best;
    return is_sliced(x, at(longest)) ? Cut{longest, parts} : best;
  }

  /// Whether slices of it along dimension `d` can be computed for themselves, from slices of what it is computed from.
  bool is_sliced(const Operand& x, size_t d) const {
    int nodes = 0;
    return is_sliced(x, d, nodes);
  }
  bool is_sliced(const Operand& x, size_t d, int& nodes) const {
    constexpr int kMostOfCopy = 16;  // nodes, each counted as often as it is read
    if (x.is_number() || x.strides[d] == 0) return true;
    const DagNode& n = dag_.nodes[at(x.node)];
    if (n.kind == DagKind::kLeaf) return true;
    nodes += 1;
    return nodes <= kMostOfCopy && n.kind == DagKind::kPointwise && n.taken.empty() && n.op != ExprOp::kPut &&
           n.row_stride == 0 && is_whole(x, n.shape) &&
           std::ranges::all_of(n.operands, [&](const Operand& o) { return is_sliced(o, d, nodes); });
  }

  /// Its elements from `begin` on along dimension `d`. What is computed is computed anew, for these alone: a slice of
  /// a tensor that others read as well would have to be stored.
  Operand slice(Operand x, size_t d, int64_t begin, int64_t count) {
    if (!x.is_number() && x.strides[d] != 0 && dag_.nodes[at(x.node)].kind != DagKind::kLeaf) {
      DagNode n = dag_.nodes[at(x.node)];
      n.shape[d] = count;
      for (Operand& o : n.operands) o = slice(std::move(o), d, begin, count);
      return append(dag_, std::move(n));
    }
    if (!x.shape.empty()) x.shape[d] = count;
    if (!x.is_number()) x.offset += begin * x.strides[d];
    return x;
  }

  Operand computed(ExprOp op, std::vector<Operand> operands, const DagNode& like, const Shape& shape,
                   std::string name = {}) {
    DagNode n;
    n.kind = DagKind::kPointwise;
    n.op = op;
    n.dtype = n.operand_type = n.number_type = like.operand_type;
    n.shape = shape;
    n.origin = like.origin;
    n.name = std::move(name);
    n.operands = std::move(operands);
    return append(dag_, std::move(n));
  }

  static Operand number(int64_t value, const Shape& shape) {
    Operand o;
    o.number = static_cast<double>(value);
    o.shape = shape;
    o.strides.assign(shape.size(), 0);
    return o;
  }

  /// A tensor with a dimension more, along which it repeats.
  static Operand repeated(Operand o, size_t d, int64_t size) {
    o.shape.insert(o.shape.begin() + static_cast<std::ptrdiff_t>(d), size);
    o.strides.insert(o.strides.begin() + static_cast<std::ptrdiff_t>(d), 0);
    return o;
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
    out.mean = computed(ExprOp::kDiv, {out.total, number(out.count, like.shape)}, n, like.shape, "mean_of_part");
    Operand mean_of_each = out.mean;
    for (int a : like.axes) mean_of_each = repeated(std::move(mean_of_each), at(a), x.shape[at(a)]);
    const Operand away = computed(ExprOp::kSub, {x, mean_of_each}, n, x.shape);
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
    const Operand weighed = computed(ExprOp::kMul, {between, number(part.count, shape)}, n, shape);
    return computed(ExprOp::kAdd, {part.squares, weighed}, n, shape);
  }

  void take_apart(size_t squares, size_t total, const Cut& cut) {
    const DagNode n = dag_.nodes[squares], whole_sum = dag_.nodes[total];
    Operand x = whole_sum.operands[0], rest;
    const int64_t left = x.shape[at(cut.axis)] % cut.parts, even = x.shape[at(cut.axis)] - left;
    if (left > 0) {
      rest = slice(x, at(cut.axis), even, left);
      x = slice(x, at(cut.axis), 0, even);
    }
    split_dimension(x, at(cut.axis), even / cut.parts);

    DagNode sum = whole_sum;  // of a part
    for (int& a : sum.axes) a += a >= cut.axis;
    const auto place = static_cast<size_t>(cut.axis - (std::ranges::lower_bound(n.axes, cut.axis) - n.axes.begin()));
    sum.shape.insert(sum.shape.begin() + static_cast<std::ptrdiff_t>(place), cut.parts);
    const Statistics parts = statistics(x, std::move(sum), n);

    const Operand mean = dag_.nodes[at(dag_.nodes[squares].operands[0].node)].operands[0];
    Operand whole = dag_.nodes[at(mean.node)].operands[1];  // the mean of all, which stays as it is
    Operand of_all;
    of_all.node = whole.node;
    of_all.offset = whole.offset;
    for (size_t d = 0; d < whole.shape.size(); ++d)
      if (!std::ranges::binary_search(n.axes, static_cast<int>(d)))
        of_all.shape.push_back(whole.shape[d]), of_all.strides.push_back(whole.strides[d]);
    const Operand joined = squares_away(parts, repeated(of_all, place, cut.parts), n);
    std::array<std::pair<size_t, Operand>, 2> sums = {{{total, parts.total}, {squares, joined}}};
    if (left == 0) {
      for (const auto& [node, operand] : sums) sum_over_parts(dag_.nodes[node], operand, place);
      return;
    }
    const Statistics last = statistics(rest, whole_sum, n);
    const Operand of_rest[] = {last.total, squares_away(last, of_all, n)};
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto& [node, operand] = sums[i];
      DagNode of_parts = dag_.nodes[node];
      of_parts.dtype = of_parts.operand_type;
      sum_over_parts(of_parts, operand, place);
      const Operand added = append(dag_, std::move(of_parts));
      DagNode& all = dag_.nodes[node];
      all.kind = DagKind::kPointwise;
      all.op = ExprOp::kAdd;
      all.axes.clear();
      all.operands = {added, of_rest[i]};
    }
  }

  static void sum_over_parts(DagNode& n, const Operand& parts, size_t place) {
    n.operands = {parts};
    n.axes = {static_cast<int>(place)};
  }

  Dag& dag_;
  const Machine& machine_;
};

}  // namespace

void part_variances(Dag& dag, const Machine& machine) {
  if (machine.gpu()) Parter(dag, machine).run();
}

}  // namespace kiln::fusion
