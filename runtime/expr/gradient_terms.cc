#include "runtime/expr/gradient_terms.h"

#include <algorithm>
#include <numeric>

#include "support/diag.h"

namespace kiln::runtime {

Term GradientTerms::op(ExprOp which, std::span<const Term> operands, ExprAttributes attributes) {
  // The first problem stays, and terms made after it are empty: rules are formulas without checks in between.
  if (!problem.ok()) return term({});
  std::vector<Expr> exprs;
  exprs.reserve(operands.size());
  for (const Term& t : operands) exprs.push_back(t.expr);
  auto made = apply(which, exprs, std::move(attributes));
  if (made.ok()) return term(*std::move(made));
  problem = std::move(made.error());
  return term({});
}

Term GradientTerms::op(ExprOp which, std::initializer_list<Term> operands, ExprAttributes attributes) {
  return op(which, std::span<const Term>(operands.begin(), operands.size()), std::move(attributes));
}

Term GradientTerms::cast(const Term& x, DType dtype) {
  // A number takes the dtype of the tensor that it meets.
  if (!problem.ok() || x.dtype() == dtype || x.expr.is_scalar()) return x;
  ExprAttributes a;
  a.dtype = dtype;
  return op(ExprOp::kCast, {x}, std::move(a));
}

Term GradientTerms::widened(const Term& x) {
  return problem.ok() && is_float(x.dtype()) && bits(x.dtype()) < 32 ? cast(x, DType::kF32) : x;
}

Term GradientTerms::reshaped(const Term& x, std::span<const int64_t> shape) {
  if (!problem.ok() || std::ranges::equal(x.shape(), shape)) return x;
  ExprAttributes a;
  a.shape.assign(shape.begin(), shape.end());
  return op(ExprOp::kReshape, {x}, std::move(a));
}

Term GradientTerms::expanded(const Term& x, std::span<const int64_t> shape) {
  if (!problem.ok() || std::ranges::equal(x.shape(), shape)) return x;
  ExprAttributes a;
  a.shape.assign(shape.begin(), shape.end());
  return op(ExprOp::kExpand, {x}, std::move(a));
}

Term GradientTerms::permuted(const Term& x, std::vector<int> order) {
  ExprAttributes a;
  a.axes = std::move(order);
  return op(ExprOp::kPermute, {x}, std::move(a));
}

Term GradientTerms::swapped(const Term& x) {
  if (!problem.ok()) return x;
  std::vector<int> order(x.shape().size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permuted(x, std::move(order));
}

Term GradientTerms::sum(const Term& x, std::vector<int> axes) {
  if (axes.empty()) return x;  // which would mean all
  ExprAttributes a;
  a.axes = std::move(axes);
  a.keepdim = true;
  return op(ExprOp::kSum, {x}, std::move(a));
}

Term GradientTerms::mean(const Term& x, std::vector<int> axes) {
  if (axes.empty()) return x;
  ExprAttributes a;
  a.axes = std::move(axes);
  a.keepdim = true;
  return op(ExprOp::kMean, {x}, std::move(a));
}

Term GradientTerms::summed_to(const Term& x, std::span<const int64_t> shape) {
  if (!problem.ok() || std::ranges::equal(x.shape(), shape)) return x;
  const size_t rank = x.shape().size(), lead = rank - std::min(rank, shape.size());
  const size_t skip = shape.size() - (rank - lead);  // leading dimensions that x does not have
  std::vector<int> axes;
  for (size_t d = 0; d < rank; ++d)
    if (x.shape()[d] != 1 && (d < lead || shape[d - lead + skip] == 1)) axes.push_back(static_cast<int>(d));
  const Term total = sum(x, std::move(axes));
  return problem.ok() ? reshaped(total, total.shape().subspan(lead)) : total;
}

Term GradientTerms::zeros(const Device& device, DType dtype, std::span<const int64_t> shape) {
  auto made = Tensor::zeros(device, dtype, shape);
  if (made.ok()) return term(Expr(*std::move(made)));
  if (problem.ok()) problem = std::move(made.error());
  return term({});
}

Term GradientTerms::places(const Device& device, int64_t n, size_t dim, size_t rank) {
  std::vector<int64_t> shape(rank, 1);
  shape[dim] = n;
  return reshaped(term(Expr::iota(device, n, n < (int64_t{1} << 30) ? DType::kI32 : DType::kI64)), shape);
}

void GradientStep::give(size_t i, const Term& gradient) {
  if (!wants(i) || !terms_.problem.ok()) return;
  const Term whole = terms_.summed_to(gradient, shape(i));
  if (!terms_.problem.ok()) return;
  // A term of numbers and operands alone may have less dimensions than the operand.
  given_[i] = terms_.cast(terms_.expanded(whole, shape(i)), node_->operands[i]->node.dtype).expr;
}

}  // namespace kiln::runtime
