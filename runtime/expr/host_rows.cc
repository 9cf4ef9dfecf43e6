// Some rows of an expression, for a check that has no time for all of them.
#include <algorithm>
#include <unordered_map>

#include "runtime/expr/host.h"

namespace kiln::runtime {

using fusion::Node;
using fusion::Shape;

namespace {

class RowSlicer {
 public:
  RowSlicer(int64_t start, int64_t rows) : start_(start), rows_(rows) {}

  Result<Expr> sliced(const std::shared_ptr<ExprNode>& n) {
    if (auto found = made_.find(n.get()); found != made_.end()) return found->second;
    KILN_TRY(Expr e, make(n));
    made_.emplace(n.get(), e);
    return e;
  }

 private:
  Result<Expr> cut(const std::shared_ptr<ExprNode>& n) {
    ExprAttributes a;
    a.shape = n->node.shape;
    a.starts.assign(a.shape.size(), 0);
    a.steps.assign(a.shape.size(), 1);
    a.shape[0] = rows_;
    a.starts[0] = start_;
    if (!n->value) return apply(ExprOp::kSlice, {Expr(n)}, std::move(a));
    Tensor t = n->value;
    KILN_TRY(t, n->value.as_strided(a.shape, t.strides(), t.offset() + start_ * t.strides()[0]));
    return Expr(std::move(t));
  }
  Result<Expr> make(const std::shared_ptr<ExprNode>& n) {
    const Node& node = n->node;
    // Where rows mix (a reduction along them, a product's right operand) all is computed, then cut.
    if (n->value || !follows(*n)) return cut(n);
    std::vector<Expr> operands;
    for (size_t i = 0; i < n->operands.size(); ++i) {
      const auto& operand = n->operands[i];
      if (!has_rows(*n, i)) {
        operands.push_back(Expr(operand));
        continue;
      }
      KILN_TRY(Expr e, sliced(operand));
      operands.push_back(std::move(e));
    }
    ExprAttributes a = node.attributes;
    if (node.op == ExprOp::kExpand) a.shape[0] = rows_;
    return apply(node.op, operands, std::move(a));
  }
  /// Each row of the result comes from the same row of the operands that have rows.
  static bool follows(const ExprNode& n) {
    const std::vector<int>& axes = n.node.attributes.axes;
    const bool along_rows = std::find(axes.begin(), axes.end(), 0) != axes.end();
    switch (info(n.node.op).kind) {
      case ExprKind::kPointwise:
      case ExprKind::kCall:
        return true;
      case ExprKind::kReduce:
      case ExprKind::kRow:
        return !along_rows;
      case ExprKind::kMatmul:
        return n.operands[0]->node.shape.size() > 1;
      case ExprKind::kView:
        return (n.node.op == ExprOp::kPermute && axes[0] == 0) || n.node.op == ExprOp::kExpand;
      case ExprKind::kPlace:
      case ExprKind::kInput:
      case ExprKind::kScalar:
        break;
    }
    return false;
  }
  static bool has_rows(const ExprNode& n, size_t i) {
    const Shape &own = n.operands[i]->node.shape, &whole = n.node.shape;
    switch (info(n.node.op).kind) {
      case ExprKind::kReduce:
        return true;
      case ExprKind::kRow:
        return i == 0;
      case ExprKind::kMatmul:
        // With batches the rows are batches, of each operand that has as many dimensions and is not one for all.
        if (whole.size() <= 2) return i == 0;
        return own.size() == whole.size() && own[0] == whole[0];
      default:
        return own.size() == whole.size() && own[0] == whole[0];
    }
  }

  int64_t start_, rows_;
  std::unordered_map<const ExprNode*, Expr> made_;
};

}  // namespace

Result<Expr> rows_of(const Expr& expr, int64_t start, int64_t count) {
  return RowSlicer(start, count).sliced(expr.shared());
}

}  // namespace kiln::runtime
