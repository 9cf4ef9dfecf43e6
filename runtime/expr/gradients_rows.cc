// Gradients along axes: reductions, running sums, softmax and norms; and of matrix products.
#include <algorithm>
#include <numeric>

#include "runtime/expr/gradient_terms.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

double elements_along(std::span<const int64_t> shape, const std::vector<int>& axes) {
  double n = 1;
  for (int d : axes) n *= static_cast<double>(shape[static_cast<size_t>(d)]);
  return n;
}

/// A reduction's result with dimensions of one element where its axes were.
Term with_axes(GradientStep& s, const Term& reduced) {
  fusion::Shape shape(s.shape(0).begin(), s.shape(0).end());
  for (int d : s.attributes().axes) shape[static_cast<size_t>(d)] = 1;
  return s.terms().reshaped(reduced, shape);
}

/// Sums from each element of a line to its end, or from its start.
Term running_sum(GradientTerms& t, const Term& x, int axis) {
  ExprAttributes a;
  a.axes = {axis};
  return t.op(ExprOp::kCumSum, {x}, std::move(a));
}
Term reversed(GradientTerms& t, const Device& device, const Term& x, int axis) {
  if (!t.problem.ok()) return x;
  const auto d = static_cast<size_t>(axis);
  const int64_t n = x.shape()[d];
  ExprAttributes a;
  a.axes = {axis};
  const Term place = t.term(Expr::scalar(n - 1)) - t.places(device, n, d, x.shape().size());
  return t.op(ExprOp::kTake, {x, place}, std::move(a));
}
Term sum_to_end(GradientTerms& t, const Device& device, const Term& x, int axis) {
  return reversed(t, device, running_sum(t, reversed(t, device, x, axis), axis), axis);
}

/// Behind the first zero of a line nothing counts, and up to it an element's part is the sum over itself; that of the
/// zero has all products but for it.
void running_product_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const int axis = s.attributes().axes[0];
  const Device& device = s.node().device;
  const Term x = s.x(), g = s.g(), zero = t.number(0), one = t.number(1);
  const Term is_zero = x == zero;
  const Term zeros = running_sum(t, t.cast(is_zero, DType::kI32), axis);
  const Term none = t.term(Expr::scalar(int64_t{0})), single = t.term(Expr::scalar(int64_t{1}));
  const Term first = is_zero & (zeros == single);
  const Term before = sum_to_end(t, device, g * s.y(), axis) / t.where(is_zero, one, x);
  ExprAttributes along;
  along.axes = {axis};
  const Term others = t.op(ExprOp::kCumProd, {t.where(first, one, x)}, std::move(along));
  const Term at_zero = sum_to_end(t, device, g * others, axis);
  s.give(0, t.where(zeros == none, before, t.or_zero(first, at_zero)));
}

/// With n = the normalised row, from which the weight and the bias come after: the gradient to a row is
/// (h - mean(h) - n · mean(h · n)) / σ, where h is that to n; an RMS norm has no mean to take off.
void norm_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const std::vector<int>& axes = s.attributes().axes;
  const bool centred = s.node().node.op == ExprOp::kLayerNorm;
  const Term x = s.x(0), g = s.g();
  const Term away = centred ? x - t.mean(x, axes) : x;
  const Term scale = t.op(ExprOp::kRsqrt, {t.mean(away * away, axes) + s.attributes().eps});
  const Term normal = away * scale;
  if (s.wants(0)) {
    const Term h = s.operands() > 1 ? g * s.x(1) : g;
    Term inner = h - normal * t.mean(h * normal, axes);
    if (centred) inner = inner - t.mean(h, axes);
    s.give(0, inner * scale);
  }
  if (s.wants(1)) s.give(1, g * normal);
  s.give(2, g);
}

void softmax_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const std::vector<int>& axes = s.attributes().axes;
  const Term g = s.g(), y = s.y();
  if (s.node().node.op == ExprOp::kLogSoftmax) return s.give(0, g - t.exp(y) * t.sum(g, axes));
  s.give(0, y * (g - t.sum(g * y, axes)));
}

/// What a product's operands are multiplied by on the way back: halves as they are, as torch does.
Term factor(GradientStep& s, const Term& x) { return s.terms().cast(x, s.node().operands[0]->node.dtype); }

Term multiplied(GradientStep& s, const Term& a, const Term& b) {
  ExprAttributes attributes;
  attributes.tf32 = s.attributes().tf32;
  return s.terms().op(ExprOp::kMatMul, {a, b}, std::move(attributes));
}

}  // namespace

void reduce_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const std::vector<int>& axes = s.attributes().axes;
  const Term g = with_axes(s, s.g());
  const double n = elements_along(s.shape(0), axes);
  switch (s.node().node.op) {
    case ExprOp::kSum:
      return s.give(0, g);
    case ExprOp::kMean:
      return s.give(0, g / n);
    case ExprOp::kVar: {
      const Term x = s.x();
      return s.give(0, g * (2 / std::max(0.0, n - s.attributes().correction)) * (x - t.mean(x, axes)));
    }
    default: {  // equal extremes share it
      const Term equal = s.operand(0) == with_axes(s, s.result());
      const Term count = t.sum(t.cast(equal, g.dtype()), axes);
      return s.give(0, t.or_zero(equal, g) / count);
    }
  }
}

void row_gradient(GradientStep& s) {
  switch (s.node().node.op) {
    case ExprOp::kCumSum:
      if (s.attributes().axes.empty()) return s.give(0, s.g());  // of one element
      return s.give(0, sum_to_end(s.terms(), s.node().device, s.g(), s.attributes().axes[0]));
    case ExprOp::kCumProd:
      if (s.attributes().axes.empty()) return s.give(0, s.g());
      return running_product_gradient(s);
    case ExprOp::kSoftmax:
    case ExprOp::kLogSoftmax:
      return softmax_gradient(s);
    default:
      return norm_gradient(s);
  }
}

void product_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const fusion::Shape a(s.shape(0).begin(), s.shape(0).end()), b(s.shape(1).begin(), s.shape(1).end());
  // Vectors as one row or column.
  fusion::Shape a_rows = a, b_rows = b, g_rows = s.node().node.shape;
  if (a.size() == 1) a_rows.insert(a_rows.begin(), 1);
  if (b.size() == 1) b_rows.push_back(1);
  if (b.size() == 1) g_rows.push_back(1);
  if (a.size() == 1) g_rows.insert(g_rows.end() - 1, 1);
  const Term g = t.reshaped(factor(s, s.narrow_g()), g_rows);
  const Term x = t.reshaped(s.operand(0), a_rows), y = t.reshaped(s.operand(1), b_rows);
  if (s.wants(0)) s.give(0, t.reshaped(t.summed_to(multiplied(s, g, t.swapped(y)), a_rows), a));
  if (!s.wants(1)) return;
  Term left = x, right = g;
  if (b_rows.size() == 2 && a_rows.size() > 2) {  // one matrix for all rows of the batch: one product over all of them
    const fusion::Shape flat_a = {-1, a_rows.back()}, flat_g = {-1, g_rows.back()};
    if (fusion::numel(a) > 0 && fusion::numel(g_rows) > 0) left = t.reshaped(x, flat_a), right = t.reshaped(g, flat_g);
  }
  s.give(1, t.reshaped(t.summed_to(multiplied(s, t.swapped(left), right), b_rows), b));
}

}  // namespace kiln::runtime
