// x^y = 2^(y·log2|x|), with the logarithm as an unevaluated sum hi + lo of about twice the precision.
#include "compiler/lower/shared/math_coefficients.h"
#include "compiler/lower/shared/math_emitter.h"

namespace kiln::lower {

using namespace coefficients;
using V = llvm::Value*;

namespace {

struct Sum {
  V hi, lo;
};

// log2 of a positive finite x.
Sum log2_sum(MathEmitter& m, V x) {
  Split two_thirds = m.pick<Split>({0x1.555556p-1, -0x1.555556p-26}, {0x1.5555555555555p-1, 0x1.5555555555555p-55});
  Split log2e = m.pick<Split>({0x1.715476p+0, 0x1.4ae0cp-26}, {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56});
  auto [e, mantissa] = decompose(m, x);
  // s = f/(2 + f), so that log(1 + f) = 2 atanh s = 2s + ⅔s³ + s⁵·P(s²).
  V f = m.sub(mantissa, m.k(1));
  V t = m.add(f, m.k(2));
  V t_lo = m.sub(f, m.sub(t, m.k(2)));
  V inverse = m.div(m.k(1), t);
  V s = m.mul(f, inverse);
  V s_lo = m.mul(inverse, m.fma(m.neg(s), t_lo, m.fma(m.neg(s), t, f)));
  V z = m.mul(s, s);
  V z_lo = m.fma(m.add(s, s), s_lo, m.fma(s, s, m.neg(z)));
  V cube = m.mul(z, s);
  V cube_lo = m.add(m.fma(z, s, m.neg(cube)), m.fma(z_lo, s, m.mul(z, s_lo)));
  V tail = m.mul(z, m.f32 ? m.poly(kPow32, z) : m.poly(kPow64, z));
  V u = m.add(tail, m.k(two_thirds.hi));
  V u_lo = m.add(m.sub(tail, m.sub(u, m.k(two_thirds.hi))), m.k(two_thirds.lo));
  V w = m.mul(cube, u);
  V w_lo = m.add(m.fma(cube, u, m.neg(w)), m.fma(cube, u_lo, m.mul(cube_lo, u)));
  V two_s = m.add(s, s);
  V log_hi = m.add(two_s, w);
  V log_lo = m.add(m.sub(w, m.sub(log_hi, two_s)), m.fma(m.k(2), s_lo, w_lo));
  // times log2(e), plus the exponent
  V p = m.mul(log_hi, m.k(log2e.hi));
  V p_lo = m.fma(log_hi, m.k(log2e.hi), m.neg(p));
  p_lo = m.fma(log_hi, m.k(log2e.lo), m.fma(log_lo, m.k(log2e.hi), p_lo));
  V hi = m.add(e, p);
  return {hi, m.add(m.add(m.sub(e, hi), p), p_lo)};
}

// 2^(hi + lo).
V exp2_sum(MathEmitter& m, Sum x) {
  double limit = m.pick(160.0, 1100.0);
  V hi = m.at_least(m.at_most(x.hi, limit), -limit);
  V lo = m.select(m.lt(m.abs(x.hi), m.k(limit)), x.lo, m.k(0));
  V shifted = m.add(hi, m.scale_magic());
  V fraction = m.add(m.sub(hi, m.sub(shifted, m.scale_magic())), lo);
  return m.scale(exp_reduced(m, m.mul(fraction, m.k(m.pick(0x1.62e43p-1, 0x1.62e42fefa39efp-1)))), shifted);
}

}  // namespace

V emit_pow(MathEmitter& m, V x, V y) {
  llvm::IRBuilderBase& b = m.b;
  auto floor = [&](V v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, v); };
  V magnitude = m.abs(x), zero = m.k(0), one = m.k(1);
  auto [log_hi, log_lo] = log2_sum(m, magnitude);
  V product = m.mul(y, log_hi);
  V product_lo = m.fma(y, log_lo, m.fma(y, log_hi, m.neg(product)));
  V result = exp2_sum(m, {product, product_lo});

  V y_negative = m.lt(y, zero);
  result = m.select(m.eq(magnitude, zero), m.select(y_negative, m.inf(), zero), result);
  result = m.select(m.eq(magnitude, m.inf()), m.select(y_negative, zero, m.inf()), result);
  result = m.select(m.eq(magnitude, one), one, result);
  V y_integer = m.eq(floor(y), y);
  V y_half = m.mul(y, m.k(0.5));
  V y_odd = b.CreateAnd(y_integer, b.CreateFCmpONE(floor(y_half), y_half));
  V x_negative = b.CreateICmpSLT(m.bits(x), m.ki(0));
  result = m.select(b.CreateAnd(x_negative, y_odd), m.neg(result), result);
  V finite_negative = b.CreateAnd(m.lt(x, zero), m.lt(magnitude, m.inf()));
  V undefined = b.CreateAnd(finite_negative, b.CreateFCmpUNE(floor(y), y));
  undefined = b.CreateOr(undefined, b.CreateFCmpUNO(x, y));
  result = m.select(undefined, m.nan(), result);
  V always_one = b.CreateOr(m.eq(x, one), m.eq(y, zero));
  return m.select(always_one, one, result);
}

}  // namespace kiln::lower
