// What is stored beside results, since it would be computed once more by what comes later.
#include "runtime/expr/kept.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "runtime/expr/gradient_terms.h"
#include "runtime/expr/plan.h"

namespace kiln {

using namespace runtime;

namespace {

/// What is pending in some roots, with its readers there. Only until the next walk: it numbers nodes by their
/// positions.
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
      n->position = static_cast<int>(nodes_.size());
      for (const auto& operand : n->operands)
        if (operand->is_pending() && operand->visit != visit) work.push_back(operand);
      nodes_.push_back(std::move(n));
    }
    uses_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (const auto& operand : nodes_[i]->operands)
        if (operand->is_pending() && uses_of(*operand).readers++ == 0) uses_of(*operand).reader = i;
    for (const auto& n : roots)
      if (n->is_pending()) uses_of(*n).is_root = true;
  }

  const Nodes& nodes() const { return nodes_; }

  /// Somebody holds it who is not computed now: a variable of a program, or what is pending beside the roots or was
  /// computed and has a gradient.
  bool is_read_elsewhere(const std::shared_ptr<ExprNode>& n) const {
    return !uses_of(*n).is_root && n.use_count() > 1 + uses_of(*n).readers;
  }
  /// It is a product, or made of one by operations on elements and no larger: its slices, as the gates of an LSTM, are
  /// read again as the whole is.
  bool is_of_product(const ExprNode& n) {
    if (n.node.op == ExprOp::kMatMul) return true;
    const ExprKind kind = info(n.node.op).kind;
    if (kind != ExprKind::kPointwise && kind != ExprKind::kView) return false;
    Uses& own = uses_of(n);
    if (!own.of_product)
      own.of_product = std::ranges::any_of(n.operands, [&](const auto& operand) {
        return operand->is_pending() && fusion::numel(operand->node.shape) >= fusion::numel(n.node.shape) &&
               is_of_product(*operand);
      });
    return *own.of_product;
  }

  /// What a product's gradients, or those of what is made of it alone, read of its elements: the last of the operations
  /// behind it through which gradients pass unseen. Null where nothing of it is read.
  std::shared_ptr<ExprNode> read_by_gradients(const std::shared_ptr<ExprNode>& product) const {
    const std::shared_ptr<ExprNode>* at = &product;  // of the graph: one more owner would count as a reader
    while (!uses_of(**at).is_root) {
      const Uses& uses = uses_of(**at);
      if (uses.readers > 1 || is_read_elsewhere(*at)) break;
      const std::shared_ptr<ExprNode>& reader = nodes_[uses.reader];
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
  struct Uses {
    long readers = 0;
    size_t reader = 0;  // the first
    bool is_root = false;
    std::optional<bool> of_product;  // once it is known
  };
  Uses& uses_of(const ExprNode& n) { return uses_[static_cast<size_t>(n.position)]; }
  const Uses& uses_of(const ExprNode& n) const { return uses_[static_cast<size_t>(n.position)]; }

  Nodes nodes_;
  std::vector<Uses> uses_;  // of each
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

namespace {

/// What is stored beside the roots. Nothing of the graph is held afterwards: how many hold what a root is a view of
/// says in which order its elements may lie (runtime::sees_alone).
std::vector<Expr> with_kept(std::span<const Expr> exprs, bool for_gradients) {
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
  return wanted;
}

}  // namespace

Status run_and_keep(std::span<const Expr> exprs, bool for_gradients) {
  if (exprs.size() == 1 && is_first_operation(*exprs[0].node())) {  // there is nothing that could be kept
    auto result = run(exprs[0]);
    return result.ok() ? Status() : Status(std::move(result.error()));
  }
  return run_together(with_kept(exprs, for_gradients));
}

}  // namespace kiln
