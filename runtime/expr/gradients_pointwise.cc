// Gradients element by element. Ties are torch's: a maximum of equal elements gives each a half, relu and abs at 0 and
// clamp at its bounds give nothing.
#include <cmath>

#include "runtime/expr/gradient_terms.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

/// x ** e, by torch's rules for zeros.
void power_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const Term zero = t.number(0);
  if (s.wants(0) && s.is_number(1)) {
    const double e =
        std::visit([](auto v) { return static_cast<double>(v); }, s.node().operands[1]->node.attributes.value);
    // x ** (e - 1) is x itself here.
    if (e == 2)
      s.give(0, s.g() * (s.x(0) * 2));
    else if (e != 0)
      s.give(0, s.g() * (t.op(ExprOp::kPow, {s.x(0), t.number(e - 1)}) * e));
    else
      s.give(0, t.zeros(s.node().device, s.node().node.dtype, s.shape(0)));
  } else if (s.wants(0)) {
    const Term e = s.x(1);
    s.give(0, t.where(e == zero, zero, s.g() * (e * t.op(ExprOp::kPow, {s.x(0), e - 1}))));
  }
  if (!s.wants(1)) return;
  const Term e = s.x(1);
  if (s.is_number(0)) {
    const double base =
        std::visit([](auto v) { return static_cast<double>(v); }, s.node().operands[0]->node.attributes.value);
    const Term g = s.g() * (s.y() * std::log(base));
    return s.give(1, base == 0 ? t.where(e >= zero, zero, g) : g);
  }
  const Term x = s.x(0);
  s.give(1, t.where((x == zero) & (e >= zero), zero, s.g() * (s.y() * t.op(ExprOp::kLog, {x}))));
}

/// The greater or the less of two, of which a number is the bound of a clamp.
void extreme_gradient(GradientStep& s, bool greatest) {
  GradientTerms& t = s.terms();
  for (size_t i : {0, 1}) {
    if (!s.wants(i)) continue;
    const Term own = s.x(i), other = s.operand(1 - i);
    if (s.is_number(1 - i)) {
      s.give(i, t.or_zero(greatest ? own > other : own < other, s.g()));
      continue;
    }
    const Term half = t.where(own == other, s.g() * 0.5, s.g());
    s.give(i, t.where(greatest ? own < other : own > other, t.number(0), half));
  }
}

void clamp_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const Term x = s.x(0), low = s.operand(1), high = s.operand(2);
  if (s.wants(0)) s.give(0, t.or_zero((x > low) & (x < high), s.g()));
  if (s.wants(1)) s.give(1, t.or_zero((x < low) & (s.x(1) < high), s.g()));
  if (s.wants(2)) s.give(2, t.or_zero((x > high) | (s.x(2) < low), s.g()));
}

/// x · Φ(x), and the form with tanh.
Term gelu_slope(GradientTerms& t, const Term& x) {
  const Term part = (t.op(ExprOp::kErf, {x * M_SQRT1_2}) + 1) * 0.5;
  return part + x * (t.exp(x * x * -0.5) * (M_2_SQRTPI * M_SQRT1_2 / 2));
}
Term gelu_tanh_slope(GradientTerms& t, const Term& x) {
  constexpr double kScale = M_2_SQRTPI * M_SQRT1_2, kCubic = 0.044715;
  const Term tanh = t.op(ExprOp::kTanh, {(x + x * x * x * kCubic) * kScale});
  const Term inner = (x * x * (3 * kCubic) + 1) * kScale;
  return (tanh + 1) * 0.5 + x * 0.5 * (1 - tanh * tanh) * inner;
}

}  // namespace

void pointwise_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const Term g = s.g();
  const ExprOp op = s.node().node.op;
  switch (op) {
    case ExprOp::kAdd:
      s.give(0, g);
      return s.give(1, g);
    case ExprOp::kSub:
      s.give(0, g);
      if (s.wants(1)) s.give(1, -g);
      return;
    case ExprOp::kMul:
      if (s.wants(0)) s.give(0, g * s.x(1));
      if (s.wants(1)) s.give(1, g * s.x(0));
      return;
    case ExprOp::kDiv:
      if (s.wants(0)) s.give(0, g / s.x(1));
      if (s.wants(1)) s.give(1, -g * ((s.x(0) / s.x(1)) / s.x(1)));
      return;
    case ExprOp::kMod:
      s.give(0, g);
      // x % y is x - floor(x / y) * y, of which the floor has no slope.
      if (s.wants(1)) s.give(1, -g * t.op(ExprOp::kFloor, {s.x(0) / s.x(1)}));
      return;
    case ExprOp::kPow:
      return power_gradient(s);
    case ExprOp::kNeg:
      return s.give(0, -g);
    case ExprOp::kAbs: {
      const Term x = s.x(), zero = t.number(0);
      return s.give(0, t.where(x > zero, g, t.where(x < zero, -g, zero)));
    }
    case ExprOp::kReciprocal:
      return s.give(0, -g * (s.y() * s.y()));
    case ExprOp::kMaximum:
    case ExprOp::kMinimum:
      return extreme_gradient(s, op == ExprOp::kMaximum);
    case ExprOp::kClamp:
      return clamp_gradient(s);
    case ExprOp::kWhere:
      if (s.wants(1)) s.give(1, t.or_zero(s.operand(0), s.narrow_g()));
      if (s.wants(2)) s.give(2, t.where(s.operand(0), t.number(0), s.narrow_g()));
      return;
    case ExprOp::kExp:
      return s.give(0, g * s.y());
    case ExprOp::kExp2:
      return s.give(0, g * s.y() * M_LN2);
    case ExprOp::kExpm1:
      return s.give(0, g * (s.y() + 1));
    case ExprOp::kLog:
      return s.give(0, g / s.x());
    case ExprOp::kLog2:
      return s.give(0, g / (s.x() * M_LN2));
    case ExprOp::kLog1p:
      return s.give(0, g / (s.x() + 1));
    case ExprOp::kSqrt:
      return s.give(0, g / (s.y() * 2));
    case ExprOp::kRsqrt:
      return s.give(0, g * -0.5 * (s.y() * s.y() * s.y()));
    case ExprOp::kSin:
      return s.give(0, g * t.op(ExprOp::kCos, {s.x()}));
    case ExprOp::kCos:
      return s.give(0, -g * t.op(ExprOp::kSin, {s.x()}));
    case ExprOp::kTanh:
      return s.give(0, g * (1 - s.y() * s.y()));
    case ExprOp::kErf:
      return s.give(0, g * (t.exp(-(s.x() * s.x())) * M_2_SQRTPI));
    case ExprOp::kSigmoid:
      return s.give(0, g * ((1 - s.y()) * s.y()));
    case ExprOp::kRelu:
      return s.give(0, t.where(s.y() <= t.number(0), t.number(0), g));
    case ExprOp::kSilu: {
      const Term part = t.sigmoid(s.x());
      return s.give(0, g * (part * (s.x() * (1 - part) + 1)));
    }
    case ExprOp::kGelu:
      return s.give(0, g * gelu_slope(t, s.x()));
    case ExprOp::kGeluTanh:
      return s.give(0, g * gelu_tanh_slope(t, s.x()));
    case ExprOp::kCast:
      return s.give(0, s.narrow_g());
    default:  // rule_of() has the list of all operations
      KILN_UNREACHABLE("{} has no rule here", name(op));
  }
}

}  // namespace kiln::runtime
