// Reductions of a few elements, such as the squared distance of two points: written out element by element, they join
// the kernel of what reads them and are computed again where that is cheaper than to store them.
#include <algorithm>

#include "compiler/fusion/dag.h"
#include "compiler/fusion/split.h"

namespace kiln::fusion {

namespace {

constexpr int64_t kMostTerms = 8;
constexpr int64_t kMostTermsOfPairs = 16;
constexpr int64_t kMostCoordinates = 4;  // of a point that is looked up: they lie in a sector or two
constexpr int64_t kTiny = 512;  // elements that are computed again wherever they are read, such as statistics of groups

/// How two terms of a reduction are combined; kInput: not element by element.
ExprOp combines(ExprOp reduction) {
  switch (reduction) {
    case ExprOp::kSum:
      return ExprOp::kAdd;
    case ExprOp::kMax:
      return ExprOp::kMaximum;
    case ExprOp::kMin:
      return ExprOp::kMinimum;
    case ExprOp::kCumProd:
      return ExprOp::kMul;
    default:
      return ExprOp::kInput;
  }
}

/// Whether the elements are read again for each of several others, as a norm's rows read their sum.
bool repeats(const Operand& o) {
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (o.strides[d] == 0 && o.shape[d] > 1) return true;
  return false;
}

class Unroller {
 public:
  explicit Unroller(Dag& dag)
      : dag_(dag), of_counts_(nodes_of_counts(dag)), users_(dag.nodes.size()), kept_(dag.nodes.size()) {
    for (size_t n = 0; n < dag.nodes.size(); ++n)
      for (const Operand& o : dag.nodes[n].operands)
        if (!o.is_number()) {
          users_[at(o.node)].push_back(static_cast<int>(n));
          kept_[at(o.node)] = kept_[at(o.node)] || (dag.nodes[n].kind != DagKind::kReduce && repeats(o));
        }
    for (const Operand& o : dag.outputs) users_[at(o.node)].push_back(-1);
  }

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (is_short(i) && (is_tiny(dag_.nodes[i]) || all_of_inputs(static_cast<int>(i), adds_looked_up(dag_.nodes[i]))))
        write_out(i);
    tidy(dag_);
  }

 private:
  static int64_t terms(const DagNode& n) {
    int64_t count = 1;
    for (int a : n.axes) count *= n.operands[0].shape[at(a)];
    return count;
  }

  /// Whether what is looked up may be added up element by element: whole rows, or the coordinates of points.
  static bool adds_looked_up(const DagNode& n) { return keeps_last(n) || terms(n) <= kMostCoordinates; }

  bool is_short(size_t i) const {
    const DagNode& n = dag_.nodes[i];
    return n.kind == DagKind::kReduce && combines(n.op) != ExprOp::kInput && n.splits == 1 &&
           (!kept_[i] || is_tiny(n)) && !n.operands[0].is_number() && n.operand_type != DType::kI1 &&
           numel(n.operands[0].shape) > 0 && terms(n) <= (is_of_pairs(n.operands[0]) ? kMostTermsOfPairs : kMostTerms);
  }

  static bool is_tiny(const DagNode& n) { return numel(n.operands[0].shape) <= kTiny; }

  /// Whether no tensor is read in full, as where the distances of points are computed: few loads serve many elements.
  bool is_of_pairs(const Operand& o) const {
    if (o.is_number() || repeats(o)) return true;
    const DagNode& n = dag_.nodes[at(o.node)];
    return n.kind == DagKind::kPointwise && o.shape == n.shape &&
           std::ranges::all_of(n.operands, [&](const Operand& operand) { return is_of_pairs(operand); });
  }

  /// Whether what it reduces is computed from inputs for it alone: its parts then are computed apart. Of what is looked
  /// up, whole rows are (`adds_rows`), those of a bag of embeddings, and a few coordinates.
  bool all_of_inputs(int reader, bool adds_rows) const {
    for (const Operand& o : dag_.nodes[at(reader)].operands) {
      if (o.is_number()) continue;
      if (at(o.node) >= users_.size()) return false;  // of a reduction that is written out already
      const DagNode& from = dag_.nodes[at(o.node)];
      if (from.kind == DagKind::kLeaf) continue;
      const bool plain = from.kind == DagKind::kPointwise && from.op != ExprOp::kCall &&
                         (from.op != ExprOp::kTake || (adds_rows && !is_at_counts(from)));
      const std::vector<int>& users = users_[at(o.node)];
      if (!plain || !std::ranges::all_of(users, [&](int u) { return u == reader; }) ||
          !all_of_inputs(o.node, adds_rows))
        return false;
    }
    return true;
  }

  /// Whether a take's places are known without a tensor, as those of windows are, which have loops of their own.
  bool is_at_counts(const DagNode& take) const {
    return std::all_of(take.operands.begin() + 1, take.operands.end(),
                       [&](const Operand& o) { return o.is_number() || of_counts_[at(o.node)]; });
  }

  void write_out(size_t i) {
    const DagNode n = dag_.nodes[i];
    const Operand& all = n.operands[0];
    DagNode step;
    step.kind = DagKind::kPointwise;
    step.op = combines(n.op);
    step.dtype = step.operand_type = step.number_type = n.operand_type;
    step.shape = n.shape;
    step.origin = n.origin;
    Operand sum;
    for (int64_t t = 0; t < terms(n); ++t) {
      Operand part;
      part.node = all.node;
      part.offset = all.offset;
      int64_t rest = t;
      for (size_t d = all.shape.size(); d-- > 0;) {
        if (!std::binary_search(n.axes.begin(), n.axes.end(), static_cast<int>(d))) {
          part.shape.insert(part.shape.begin(), all.shape[d]);
          part.strides.insert(part.strides.begin(), all.strides[d]);
          continue;
        }
        part.offset += rest % all.shape[d] * all.strides[d];
        rest /= all.shape[d];
      }
      if (t == 0) {
        sum = std::move(part);
        continue;
      }
      step.operands = {std::move(sum), std::move(part)};
      sum = {};
      sum.node = static_cast<int>(dag_.nodes.size());
      sum.shape = n.shape;
      sum.strides = row_major(n.shape);
      dag_.nodes.push_back(step);
    }
    // The last addition takes the place of the reduction, with its name and dtype.
    DagNode last = step;
    last.dtype = n.dtype;
    last.name = n.name;
    if (terms(n) == 1)
      last.op = ExprOp::kCast, last.operands = {std::move(sum)};
    else
      last.operands = dag_.nodes.back().operands, dag_.nodes.pop_back();
    dag_.nodes[i] = std::move(last);
  }

  Dag& dag_;
  std::vector<bool> of_counts_;
  std::vector<std::vector<int>> users_;  // -1: it is a result
  std::vector<bool> kept_;               // read again by what goes on from it
};

}  // namespace

void unroll_reductions(Dag& dag) { Unroller(dag).run(); }

}  // namespace kiln::fusion
