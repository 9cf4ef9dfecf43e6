// What is stored beside results, since it would be computed once more by what comes later.
#include "runtime/expr/kept.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/expr/plan.h"

namespace kiln {

using namespace runtime;

namespace {

/// Which of its elements the gradient of an operation to one operand reads.
enum class Reads : uint8_t { kNothing, kResult, kOperand };

Reads gradient_reads(const ExprNode& n, const ExprNode& operand) {
  switch (n.node.op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kNeg:
    case ExprOp::kCast:
    case ExprOp::kExpand:
    case ExprOp::kPermute:
    case ExprOp::kReshape:
    case ExprOp::kSlice:
    case ExprOp::kTake:
    case ExprOp::kWhere:
    case ExprOp::kSum:
    case ExprOp::kMean:
      return Reads::kNothing;
    // A product by a constant.
    case ExprOp::kMul:
    case ExprOp::kDiv: {
      const bool is_alone = n.operands[0] != n.operands[1];
      const ExprNode& other = *n.operands[n.operands[0].get() == &operand ? 1 : 0];
      return is_alone && !other.records() ? Reads::kNothing : Reads::kOperand;
    }
    case ExprOp::kReciprocal:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kSqrt:
    case ExprOp::kRsqrt:
    case ExprOp::kTanh:
    case ExprOp::kSigmoid:
    case ExprOp::kRelu:
    case ExprOp::kSoftmax:
    case ExprOp::kLogSoftmax:
      return Reads::kResult;
    default:
      return Reads::kOperand;
  }
}

/// What is pending in some roots, with its readers there.
class PendingGraph {
 public:
  explicit PendingGraph(const Nodes& roots) {
    Nodes work = roots;
    const uint64_t visit = next_visit();
    while (!work.empty()) {
      std::shared_ptr<ExprNode> n = std::move(work.back());
      work.pop_back();
      if (!n->is_pending() || n->visit == visit) continue;
      n->visit = visit;
      for (const auto& operand : n->operands) {
        if (!operand->is_pending()) continue;
        readers_[operand.get()].push_back(nodes_.size());
        work.push_back(operand);
      }
      nodes_.push_back(std::move(n));
    }
    for (const auto& n : roots) roots_.insert(n.get());
  }

  const Nodes& nodes() const { return nodes_; }

  /// Somebody holds it who is not computed now: a variable of a program, or what is pending beside the roots or was
  /// computed and has a gradient.
  bool is_read_elsewhere(const std::shared_ptr<ExprNode>& n) const {
    return !is_root(*n) && n.use_count() > 1 + static_cast<long>(readers_.at(n.get()).size());
  }
  /// It is a product, or as large as one that it is made of by operations on elements.
  bool is_of_product(const ExprNode& n) {
    if (n.node.op == ExprOp::kMatMul) return true;
    const ExprKind kind = info(n.node.op).kind;
    if (kind != ExprKind::kPointwise && kind != ExprKind::kView) return false;
    const auto [known, is_new] = of_product_.try_emplace(&n, false);
    if (!is_new) return known->second;
    const bool found = std::ranges::any_of(n.operands, [&](const auto& operand) {
      return operand->is_pending() && fusion::numel(operand->node.shape) == fusion::numel(n.node.shape) &&
             is_of_product(*operand);
    });
    return of_product_[&n] = found;
  }

  /// What a product's gradients, or those of what is made of it alone, read of its elements: the last of the operations
  /// behind it through which gradients pass unseen. Null where nothing of it is read.
  std::shared_ptr<ExprNode> read_by_gradients(const std::shared_ptr<ExprNode>& product) const {
    const std::shared_ptr<ExprNode>* at = &product;  // of the graph: one more owner would count as a reader
    while (!is_root(**at)) {
      const std::vector<size_t>& readers = readers_.at(at->get());
      if (readers.size() > 1 || is_read_elsewhere(*at)) break;
      const std::shared_ptr<ExprNode>& reader = nodes_[readers[0]];
      const Reads reads = gradient_reads(*reader, **at);
      if (reads == Reads::kOperand) break;
      const int64_t size = fusion::numel(reader->node.shape), own = fusion::numel((*at)->node.shape);
      if (reads == Reads::kNothing && size < own) return nullptr;
      if (size != own) break;
      at = &reader;
    }
    return *at;
  }

 private:
  bool is_root(const ExprNode& n) const { return roots_.contains(&n); }

  Nodes nodes_;
  std::unordered_map<const ExprNode*, std::vector<size_t>> readers_;  // positions in nodes_; of all but roots
  std::unordered_set<const ExprNode*> roots_;
  std::unordered_map<const ExprNode*, bool> of_product_;
};

/// Behind views, which share its memory.
std::shared_ptr<ExprNode> stored_for(std::shared_ptr<ExprNode> n) {
  while (n->is_pending() && info(n->node.op).kind == ExprKind::kView) n = n->operands[0];
  return n;
}

}  // namespace

void runtime::append_costly(const Nodes& nodes, std::vector<Expr>& to) {
  std::unordered_set<const ExprNode*> seen;
  for (const Expr& e : to) seen.insert(e.node());
  for (const auto& n : nodes)
    if (const Expr e(n); seen.insert(n.get()).second && !e.is_cheap_again()) to.push_back(e);
}

void runtime::append_read_elsewhere(const Nodes& roots, std::vector<Expr>& to) {
  const PendingGraph graph(roots);
  Nodes kept;
  for (const auto& n : graph.nodes())
    if (graph.is_read_elsewhere(n)) kept.push_back(stored_for(n));
  append_costly(kept, to);
}

Status run_and_keep(std::span<const Expr> exprs, bool for_gradients) {
  Nodes roots, kept;
  for (const Expr& e : exprs) roots.push_back(e.shared());
  PendingGraph graph(roots);
  for (const auto& n : graph.nodes()) {
    const bool records = for_gradients && n->records();
    if (graph.is_read_elsewhere(n) && (records || graph.is_of_product(*n))) kept.push_back(stored_for(n));
    if (n->node.op != ExprOp::kMatMul || !records) continue;
    if (auto read = graph.read_by_gradients(n)) kept.push_back(stored_for(std::move(read)));
    for (const auto& operand : n->operands)
      if (auto factor = stored_for(operand); factor->is_pending() && factor->records()) kept.push_back(factor);
  }
  std::vector<Expr> wanted(exprs.begin(), exprs.end());
  append_costly(kept, wanted);
  return run_together(wanted);
}

}  // namespace kiln
