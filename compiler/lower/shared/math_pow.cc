// x^y = 2^(y·log2|x|), with the logarithm as an unevaluated sum hi + lo of about twice the precision.
#include <llvm/IR/Module.h>

#include "compiler/lower/shared/math_coefficients.h"
#include "compiler/lower/shared/math_emitter.h"

namespace kiln::lower {

using namespace coefficients;
using V = llvm::Value*;

namespace {

struct Sum {
  V hi, lo;
};

// log2 of e and a mantissa as decompose() gives them.
Sum log2_sum(MathEmitter& m, Decomposed x) {
  Split two_thirds = m.pick<Split>({0x1.555556p-1, -0x1.555556p-26}, {0x1.5555555555555p-1, 0x1.5555555555555p-55});
  Split log2e = m.pick<Split>({0x1.715476p+0, 0x1.4ae0cp-26}, {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56});
  auto [e, mantissa] = x;
  // s = f/(2 + f), so that log(1 + f) = 2 atanh s = 2s + ⅔s³ + s⁵·P(s²).
  V f = m.sub(mantissa, m.k(1));
  V t = m.add(f, m.k(2));
  V t_lo = m.sub(f, m.sub(t, m.k(2)));
  V inverse = m.div_normal(m.k(1), t);
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

/// Of the power of |x| that of x, which is finite where it is negative: NaN for exponents that are no integers.
V with_sign(MathEmitter& m, V x, V y, V power) {
  llvm::IRBuilderBase& b = m.b;
  auto floor = [&](V v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, v); };
  V y_integer = m.eq(floor(y), y);
  V y_half = m.mul(y, m.k(0.5));
  V y_odd = b.CreateAnd(y_integer, b.CreateFCmpONE(floor(y_half), y_half));
  V x_negative = b.CreateICmpSLT(m.bits(x), m.ki(0));
  power = m.select(b.CreateAnd(x_negative, y_odd), m.neg(power), power);
  V finite_negative = b.CreateAnd(m.lt(x, m.k(0)), m.lt(m.abs(x), m.inf()));
  return m.select(b.CreateAnd(finite_negative, b.CreateFCmpUNE(floor(y), y)), m.nan(), power);
}

V pow_of_any(MathEmitter& m, V x, V y) {
  llvm::IRBuilderBase& b = m.b;
  V magnitude = m.abs(x), zero = m.k(0), one = m.k(1);
  auto [log_hi, log_lo] = log2_sum(m, decompose(m, magnitude));
  V product = m.mul(y, log_hi);
  V product_lo = m.fma(y, log_lo, m.fma(y, log_hi, m.neg(product)));
  V result = exp2_sum(m, {product, product_lo});

  V y_negative = m.lt(y, zero);
  result = m.select(m.eq(magnitude, zero), m.select(y_negative, m.inf(), zero), result);
  result = m.select(m.eq(magnitude, m.inf()), m.select(y_negative, zero, m.inf()), result);
  result = m.select(m.eq(magnitude, one), one, result);
  result = with_sign(m, x, y, result);
  result = m.select(b.CreateFCmpUNO(x, y), m.nan(), result);
  V always_one = b.CreateOr(m.eq(x, one), m.eq(y, zero));
  return m.select(always_one, one, result);
}

/// pow_of_any() of f32, as a function of the module.
llvm::Function* pow_function(MathEmitter& m) {
  constexpr const char* kName = "kiln_pow";
  llvm::Module& module = *m.b.GetInsertBlock()->getModule();
  if (llvm::Function* f = module.getFunction(kName)) return f;
  llvm::IRBuilder<> b(module.getContext());
  b.setFastMathFlags(m.b.getFastMathFlags());
  llvm::Type* f32 = b.getFloatTy();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(f32, {f32, f32}, false), llvm::GlobalValue::InternalLinkage,
                                   kName, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", f));
  MathEmitter of_one(b, f32, m.target);
  b.CreateRet(pow_of_any(of_one, f->getArg(0), f->getArg(1)));
  return f;
}

V pow_of_each(MathEmitter& m, V x, V y) {
  llvm::IRBuilderBase& b = m.b;
  llvm::Function* f = pow_function(m);
  V all = llvm::PoisonValue::get(m.float_type);
  const uint64_t lanes = llvm::cast<llvm::FixedVectorType>(m.float_type)->getNumElements();
  for (uint64_t lane = 0; lane < lanes; ++lane)
    all = b.CreateInsertElement(
        all, b.CreateCall(f, {b.CreateExtractElement(x, lane), b.CreateExtractElement(y, lane)}), lane);
  return all;
}

// Normal numbers with a normal result take half of the instructions. The others of a vector are computed
// behind one branch for all, so that the elements of a thread overlap.
V pow_of_ordinary(MathEmitter& m, V x, V y) {
  llvm::IRBuilderBase& b = m.b;
  constexpr double kMostExponent = 125;
  V magnitude = m.abs(x);
  auto [log_hi, log_lo] = log2_sum(m, decompose_normal(m, magnitude));
  V exponent = m.mul(y, log_hi);
  V exponent_lo = m.fma(y, log_lo, m.fma(y, log_hi, m.neg(exponent)));
  auto [whole, integer] = m.round(exponent);
  V fraction = m.add(m.sub(exponent, whole), exponent_lo);
  V power = exp_reduced(m, m.mul(fraction, m.k(0x1.62e43p-1)));
  V fast = with_sign(m, x, y, m.from_bits(b.CreateAdd(m.bits(power), b.CreateShl(integer, m.ki(m.mantissa_bits())))));

  constexpr int64_t kLeastNormal = 0x00800000, kNormals = 0x7f000000;
  V fits = b.CreateAnd(b.CreateICmpULT(b.CreateSub(m.bits(magnitude), m.ki(kLeastNormal)), m.ki(kNormals)),
                       m.lt(m.abs(exponent), m.k(kMostExponent)));
  V all = b.CreateAndReduce(fits);
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "pow.slow", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "pow", function);
  b.CreateCondBr(all, after, slow);
  b.SetInsertPoint(slow);
  V mixed = m.select(fits, fast, pow_of_each(m, x, y));
  llvm::BasicBlock* slow_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode* result = b.CreatePHI(m.float_type, 2);
  result->addIncoming(fast, before);
  result->addIncoming(mixed, slow_end);
  return result;
}

}  // namespace

V emit_pow(MathEmitter& m, V x, V y) {
  return m.target.is_cuda() && m.f32 && m.float_type->isVectorTy() ? pow_of_ordinary(m, x, y) : pow_of_any(m, x, y);
}

}  // namespace kiln::lower
