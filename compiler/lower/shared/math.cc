#include "compiler/lower/shared/math.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <numbers>

#include "compiler/lower/shared/llvm_version.h"
#include "compiler/lower/shared/math_coefficients.h"
#include "compiler/lower/shared/math_emitter.h"
#include "support/diag.h"

namespace kiln::lower {

using namespace coefficients;
using ir::OpKind;
using V = llvm::Value*;
using llvm::Intrinsic::ID;

V MathEmitter::nvvm(ID id, std::span<V const> args) {
  llvm::Type* scalar = float_type->getScalarType();
  auto one = [&](llvm::ArrayRef<V> a) {
    return llvm::Intrinsic::isOverloaded(id) ? b.CreateIntrinsic(id, {scalar}, a) : b.CreateIntrinsic(id, {}, a);
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(float_type);
  if (!vector) return one({args.data(), args.size()});
  V result = llvm::PoisonValue::get(float_type);
  for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
    llvm::SmallVector<V, 2> lanes;
    for (V a : args) lanes.push_back(b.CreateExtractElement(a, lane));
    result = b.CreateInsertElement(result, one(lanes), lane);
  }
  return result;
}

V MathEmitter::div(V x, V y) {
  if (!target.is_cuda() || !f32) return b.CreateFDiv(x, y);
  V args[] = {x, y};
  return nvvm(llvm::Intrinsic::nvvm_div_full, args);
}

V MathEmitter::div_normal(V x, V y) {
  if (!target.is_cuda() || !f32) return b.CreateFDiv(x, y);
  V args[] = {y};
  return mul(x, nvvm(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, args));
}

V MathEmitter::at_most(V x, double limit) {
  if (target.is_cuda() && f32) return b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, k(limit));
  return select(lt(k(limit), x), k(limit), x);
}

V MathEmitter::at_least(V x, double limit) {
  if (target.is_cuda() && f32) return b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, k(limit));
  return select(lt(x, k(limit)), k(limit), x);
}

V MathEmitter::within(V x, double limit) {
  if (!f32 || !target.has(target::kXorSign)) return at_least(at_most(x, limit), -limit);
  V args[] = {x, k(limit)};
  return nvvm(llvm::Intrinsic::nvvm_fmin_nan_xorsign_abs_f, args);
}

V MathEmitter::poly(std::span<const double> c, V x) {
  V sum = k(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, k(c[i]));
  return sum;
}

// Adding 1.5·2^mantissa leaves the integer in the low bits: no conversion instruction, and no poison for NaN.
MathEmitter::Rounded MathEmitter::round(V x) {
  V shifted = add(x, magic());
  return {sub(shifted, magic()), b.CreateSub(bits(shifted), bits(magic()))};
}

V MathEmitter::to_float(V integer) { return sub(from_bits(b.CreateAdd(integer, bits(magic()))), magic()); }

// The exponent comes with twice the bias in the low bits of `shifted`: two halves of it are the exponent fields of two
// powers of two, both normal, and what stands above is shifted out.
V MathEmitter::scale(V x, V shifted) {
  V all = bits(shifted), half = b.CreateLShr(all, ki(1)), rest = b.CreateSub(all, half);
  auto power = [&](V exponent) { return from_bits(b.CreateShl(exponent, ki(mantissa_bits()))); };
  return mul(mul(x, power(half)), power(rest));
}

V exp_reduced(MathEmitter& m, V r) {
  V q = m.f32 ? m.poly(kExp32, r) : m.poly(kExp64, r);
  return m.fma(m.fma(q, r, m.k(1)), r, m.k(1));
}

V expm1_reduced(MathEmitter& m, V r) {
  V q = m.f32 ? m.poly(kExp32, r) : m.poly(kExp64, r);
  return m.fma(m.mul(r, r), q, r);
}

namespace {

/// The bits of a number less those of √½: its exponent, for a mantissa in [√½, √2), is what stands in its field then.
V above_sqrt_half(MathEmitter& m, V bits) {
  return m.b.CreateSub(bits, m.ki(m.pick<int64_t>(0x3f3504f3, 0x3fe6a09e667f3bcd)));
}

/// x = 2^exponent·mantissa of a normal x: the exponent as an integer.
Decomposed with_integer(MathEmitter& m, V x) {
  llvm::IRBuilderBase& b = m.b;
  V e = b.CreateAShr(above_sqrt_half(m, m.bits(x)), m.ki(m.mantissa_bits()));
  return {e, m.from_bits(b.CreateSub(m.bits(x), b.CreateShl(e, m.ki(m.mantissa_bits()))))};
}

/// x = 2^e·mantissa of any x > 0 in f32: e as an integer times 2^23, where it stands among the bits of x. Denormals are
/// scaled, and the exponent of the scale is taken off again as it stands among the bits of that.
Decomposed with_field(MathEmitter& m, V x) {
  llvm::IRBuilderBase& b = m.b;
  constexpr int64_t kExponents = ~int64_t{0x7fffff}, kOne = 0x3f800000;
  V scale = m.select(m.lt(x, m.k(m.min_normal())), m.k(0x1p25), m.k(1));
  V all = m.bits(m.mul(x, scale));
  V field = b.CreateAnd(above_sqrt_half(m, all), m.ki(kExponents));
  V mantissa = m.from_bits(b.CreateSub(all, field));
  return {b.CreateAdd(b.CreateSub(field, m.bits(scale)), m.ki(kOne)), mantissa};
}

}  // namespace

Decomposed decompose_normal(MathEmitter& m, V x) {
  auto [e, mantissa] = with_integer(m, x);
  return {m.to_float(e), mantissa};
}

Decomposed decompose(MathEmitter& m, V x) {
  V denormal = m.lt(x, m.k(m.min_normal()));
  auto [e, mantissa] = with_integer(m, m.select(denormal, m.mul(x, m.k(m.pick(0x1p25, 0x1p54))), x));
  V bias = m.select(denormal, m.ki(m.pick(25, 54)), m.ki(0));
  return {m.to_float(m.b.CreateSub(e, bias)), mantissa};
}

namespace {

constexpr Split kLn2_32 = {0x1.62e43p-1, -0x1.05c61p-29}, kLn2_64 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Split kLog2e_32 = {0x1.715476p+0, 0x1.4ae0cp-26}, kLog2e_64 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};

// x = n·ln2 + r with |r| ≤ ln2/2.
struct ExpReduced {
  V n, r;
};
ExpReduced reduce_exp(MathEmitter& m, V x) {
  Split ln2 = m.pick(kLn2_32, kLn2_64);
  auto [value, n] = m.round(m.mul(x, m.k(m.pick(kLog2e_32, kLog2e_64).hi)));
  V r = m.fma(value, m.k(-ln2.hi), x);
  return {n, m.fma(value, m.k(-ln2.lo), r)};
}

V emit_exp(MathEmitter& m, V x) {
  if (m.target.is_cuda() && m.f32) {
    V args[] = {m.mul(x, m.k(kLog2e_32.hi))};
    return m.nvvm(kEx2Approx, args);
  }
  Split ln2 = m.pick(kLn2_32, kLn2_64);
  x = m.at_least(m.at_most(x, m.pick(89.0, 710.0)), m.pick(-104.0, -746.0));
  V shifted = m.fma(x, m.k(m.pick(kLog2e_32, kLog2e_64).hi), m.scale_magic());
  V n = m.sub(shifted, m.scale_magic());
  V r = m.fma(n, m.k(-ln2.lo), m.fma(n, m.k(-ln2.hi), x));
  return m.scale(exp_reduced(m, r), shifted);
}

V emit_exp2(MathEmitter& m, V x) {
  if (m.target.is_cuda() && m.f32) {
    // One instruction; keeping denormal results takes three more. Triton flushes them here too, and not in exp.
    V args[] = {x};
    return m.nvvm(kEx2ApproxFtz, args);
  }
  x = m.at_least(m.at_most(x, m.pick(128.0, 1024.0)), m.pick(-151.0, -1076.0));
  V shifted = m.add(x, m.scale_magic());
  V r = m.mul(m.sub(x, m.sub(shifted, m.scale_magic())), m.k(m.pick(kLn2_32, kLn2_64).hi));
  return m.scale(exp_reduced(m, r), shifted);
}

// 2^n·(e^r - 1) + (2^n - 1), all halved so that 2^n stays finite at the top of the range.
V emit_expm1(MathEmitter& m, V x) {
  V clamped = m.at_least(m.at_most(x, m.pick(89.0, 710.0)), m.pick(-20.0, -40.0));
  auto [n, r] = reduce_exp(m, clamped);
  V half = m.pow2(m.b.CreateSub(n, m.ki(1)));
  V result = m.fma(half, expm1_reduced(m, r), m.sub(half, m.k(0.5)));
  V tiny = m.lt(m.abs(x), m.k(m.pick(0x1p-25, 0x1p-54)));
  return m.select(tiny, x, m.add(result, result));
}

// log(1 + f) - f for √½ ≤ 1 + f ≤ √2.
V log1p_minus(MathEmitter& m, V f) {
  V square = m.mul(f, f);
  if (m.f32) return m.mul(square, m.fma(m.poly(kLog32, f), f, m.k(-0.5)));
  // With s = f/(2+f): log(1+f) = 2 atanh s = f - f²/2 + s·(f²/2 + s²·P(s²)).
  V s = m.b.CreateFDiv(f, m.add(f, m.k(2)));
  V z = m.mul(s, s);
  V half = m.mul(square, m.k(0.5));
  return m.fma(s, m.fma(z, m.poly(kAtanh64, z), half), m.neg(half));
}

// Replaces `result`, the logarithm of x, where x is not in (0, inf): by inf of inf, -inf of zeros and else by NaN.
V log_specials(MathEmitter& m, V x, V result) {
  // As unsigned numbers the bits of infinity are below those of NaN and of all that is negative.
  V beyond = m.b.CreateICmpUGE(m.bits(x), m.bits(m.inf()));
  result = m.select(beyond, m.fma(x, m.inf(), m.inf()), result);
  return m.select(m.eq(x, m.k(0)), m.neg(m.inf()), result);
}

// In f32 exponents stay in their field until they are floats, 2^23 times too large.
constexpr double kField = 0x1p23;

// x = 2^e·mantissa of x > 0, with e as log_sum takes it: in f32 an integer times 2^23.
Decomposed decompose_for_log(MathEmitter& m, V x) { return m.f32 ? with_field(m, x) : decompose(m, x); }

// e·ln2 + log(1 + f). In f32 one part of ln2 is enough: where the sum cancels, e is -1, and the error of ln2 a
// twentieth of an ulp.
V log_sum(MathEmitter& m, V e, V f) {
  if (m.f32) {
    V log = m.fma(m.mul(m.fma(m.poly(kLog32, f), f, m.k(-0.5)), f), f, f);
    return m.fma(m.b.CreateSIToFP(e, m.float_type), m.k(std::numbers::ln2 / kField), log);
  }
  V low = m.fma(e, m.k(kLn2_64.lo), log1p_minus(m, f));
  return m.fma(e, m.k(kLn2_64.hi), m.add(f, low));
}

V emit_log(MathEmitter& m, V x) {
  auto [e, mantissa] = decompose_for_log(m, x);
  return log_specials(m, x, log_sum(m, e, m.sub(mantissa, m.k(1))));
}

V emit_log2(MathEmitter& m, V x) {
  Split log2e = m.pick(kLog2e_32, kLog2e_64);
  auto [e, mantissa] = decompose_for_log(m, x);
  V f = m.sub(mantissa, m.k(1));
  V high = m.mul(f, m.k(log2e.hi));
  V low = m.fma(f, m.k(log2e.hi), m.neg(high));
  low = m.fma(f, m.k(log2e.lo), low);
  low = m.fma(log1p_minus(m, f), m.k(log2e.hi), low);
  V sum = m.add(high, low);
  return log_specials(m, x, m.f32 ? m.fma(m.b.CreateSIToFP(e, m.float_type), m.k(1 / kField), sum) : m.add(e, sum));
}

// The exponent comes from 1 + x rounded, the mantissa from x and 1 scaled apart, so that no bit of x is lost.
V emit_log1p(MathEmitter& m, V x) {
  llvm::IRBuilderBase& b = m.b;
  const auto field_of = [&](int64_t exponent) { return m.ki(exponent << m.mantissa_bits()); };
  V sum = m.add(x, m.k(1));
  V field = b.CreateAnd(above_sqrt_half(m, m.bits(sum)), field_of(-1));
  V one = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(field_of(m.bias()), field), m.ki(0));
  V scaled = m.from_bits(b.CreateSub(m.bits(x), field));
  V f = m.add(scaled, m.sub(m.from_bits(one), m.k(1)));
  V e = m.f32 ? field : m.to_float(b.CreateAShr(field, m.ki(m.mantissa_bits())));
  V result = log_specials(m, sum, log_sum(m, e, f));
  return m.select(m.lt(m.abs(x), m.k(m.pick(0x1p-25, 0x1p-54))), x, result);
}

// f(x) for odd f that tends to 1: `value` up to `limit`, 1 from there on, never above 1. A NaN of `value` stays.
V saturate_odd(MathEmitter& m, V x, V magnitude, double limit, V value) {
  V saturated = m.b.CreateFCmpOGE(magnitude, m.k(limit));
  return m.copysign(m.select(saturated, m.k(1), m.at_most(value, 1)), x);
}

// x·P(x²)/Q(x²), which passes 1 between the end of its fit and `limit` by more than its rounding error: cut at ±1, it
// is exactly ±1 from `limit` on.
V rational_odd(MathEmitter& m, V x, double limit, std::span<const double> p, std::span<const double> q) {
  V a = m.within(x, limit);
  V z = m.mul(a, a);
  return m.within(m.mul(a, m.div_normal(m.poly(p, z), m.poly(q, z))), 1);
}

V emit_tanh(MathEmitter& m, V x) {
  if (m.f32) return rational_odd(m, x, 9.8, kTanhP32, kTanhQ32);
  V magnitude = m.abs(x);
  V t = emit_expm1(m, m.at_most(m.add(magnitude, magnitude), 44));
  return saturate_odd(m, x, magnitude, 22, m.div(t, m.add(t, m.k(2))));
}

V emit_erf(MathEmitter& m, V x) {
  if (m.f32) return rational_odd(m, x, 4.15, kErfP32, kErfQ32);
  V magnitude = m.abs(x);
  V a = m.at_most(magnitude, 5.93);
  V small = m.fma(a, m.poly(kErfSmall64, m.mul(a, a)), a);
  V big = m.sub(m.k(1), emit_exp2(m, m.neg(m.poly(kErfBig64, a))));
  return saturate_odd(m, x, magnitude, 5.93, m.select(m.lt(a, m.k(1)), small, big));
}

V emit_sqrt(MathEmitter& m, V x, bool exact) {
  V args[] = {x};
  if (!exact && m.target.is_cuda() && m.f32) return m.nvvm(llvm::Intrinsic::nvvm_sqrt_approx_f, args);
  return m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
}

V emit_rsqrt(MathEmitter& m, V x) {
  V args[] = {x};
  if (m.target.is_cuda() && m.f32) return m.nvvm(llvm::Intrinsic::nvvm_rsqrt_approx_f, args);
  return m.b.CreateFDiv(m.k(1), emit_sqrt(m, x, true));
}

}  // namespace

bool is_math_op(OpKind kind) { return ir::op_class(kind) == ir::OpClass::kMath; }

V emit_math(llvm::IRBuilderBase& b, OpKind kind, DType dtype, std::span<V const> operands,
            const target::Target& target) {
  KILN_ASSERT(dtype == DType::kF32 || dtype == DType::kF64, "math on {}", name(dtype));
  V x = operands[0];
  MathEmitter m(b, x->getType(), target);
  switch (kind) {
    case OpKind::kExp:
      return emit_exp(m, x);
    case OpKind::kExp2:
      return emit_exp2(m, x);
    case OpKind::kExpm1:
      return emit_expm1(m, x);
    case OpKind::kLog:
      return emit_log(m, x);
    case OpKind::kLog2:
      return emit_log2(m, x);
    case OpKind::kLog1p:
      return emit_log1p(m, x);
    case OpKind::kSin:
      return emit_sin_cos(b, x, {.sine = true, .cosine = false}, target).sine;
    case OpKind::kCos:
      return emit_sin_cos(b, x, {.sine = false, .cosine = true}, target).cosine;
    case OpKind::kTanh:
      return emit_tanh(m, x);
    case OpKind::kErf:
      return emit_erf(m, x);
    case OpKind::kPow:
      return emit_pow(m, x, operands[1]);
    case OpKind::kSqrt:
      return emit_sqrt(m, x, false);
    case OpKind::kSqrtRn:
      return emit_sqrt(m, x, true);
    case OpKind::kRsqrt:
      return emit_rsqrt(m, x);
    case OpKind::kFloor:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case OpKind::kCeil:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    case OpKind::kTrunc:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
    case OpKind::kRint:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
#define KILN_MATH_OP(...)
#define KILN_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
      break;
  }
  KILN_UNREACHABLE("{} is not a math op", ir::info(kind).mnemonic);
}

}  // namespace kiln::lower
