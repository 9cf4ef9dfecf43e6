// Correctly rounded division and square roots of many f32 at once.
//
// ptxas makes a branch of each div.rn.f32 and sqrt.rn.f32, to a path for operands near the ends of the exponents, so
// that one ends before the next begins: 16 of a thread wait some 80 cycles each. Here they are straight-line code, and
// one branch asks for all of them whether any operand needs that path.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/lower/nvptx/lowering.h"

namespace kiln::lower {

namespace {

using llvm::ConstantFP;
using llvm::Value;

class ExactMath {
 public:
  explicit ExactMath(Lowering& l) : l_(l), b_(l.b), f32_(b_.getFloatTy()) {}

  Registers divide(const Registers& x, const Registers& y) {
    Registers fast;
    for (size_t r = 0; r < x.size(); ++r) fast.push_back(quotient(x[r], y[r]));
    return finish(fast, [&](size_t r) { return b_.CreateFDiv(x[r], y[r]); });
  }

  Registers square_root(const Registers& x) {
    Registers fast;
    for (Value* v : x) fast.push_back(root(v));
    return finish(fast, [&](size_t r) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x[r]); });
  }

 private:
  Value* k(double v) { return ConstantFP::get(f32_, v); }
  Value* fma(Value* x, Value* y, Value* z) { return b_.CreateIntrinsic(llvm::Intrinsic::fma, {f32_}, {x, y, z}); }
  Value* approximate(const char* text, Value* x) {
    auto* type = llvm::FunctionType::get(f32_, {f32_}, false);
    llvm::CallInst* call = b_.CreateCall(type, llvm::InlineAsm::get(type, text, "=f,f", false), {x});
    call->setDoesNotAccessMemory();
    call->setDoesNotThrow();
    call->addFnAttr(llvm::Attribute::WillReturn);
    return call;
  }

  // Exponents at which neither a quotient nor what is left of its division leaves the normal numbers.
  static constexpr int32_t kLeast = (127 - 60) << 23, kMost = (127 + 60) << 23;

  Value* magnitude(Value* v) { return b_.CreateAnd(b_.CreateBitCast(v, b_.getInt32Ty()), b_.getInt32(0x7fffffff)); }
  void within(Value* bits) {
    least_.push_back(bits);
    most_.push_back(bits);
  }

  /// The reciprocal, once for each divisor: the hardware's, which is off by an ulp at most, after a step of Newton's.
  Value* reciprocal(Value* y) {
    auto [known, is_new] = reciprocals_.try_emplace(y);
    if (!is_new) return known->second;
    if (auto* c = llvm::dyn_cast<ConstantFP>(y)) {
      const float value = c->getValueAPF().convertToFloat();
      if (std::abs(value) >= 0x1p-60f && std::abs(value) <= 0x1p60f) return known->second = k(1.0f / value);
    }
    Value* r = approximate("rcp.approx.ftz.f32 $0, $1;", y);
    r = fma(r, fma(b_.CreateFNeg(y), r, k(1)), r);
    within(magnitude(y));
    return known->second = r;
  }

  /// Two corrections by the rest of the division, which an fma has exactly.
  Value* quotient(Value* x, Value* y) {
    Value* r = reciprocal(y);
    Value* first = b_.CreateFMul(x, r);
    Value* q = first;
    Value* divisor = b_.CreateFNeg(y);
    for (int i = 0; i < 2; ++i) q = fma(fma(divisor, q, x), r, q);
    if (checked_.emplace(x, nullptr).second) {
      Value* bits = magnitude(x);
      most_.push_back(bits);
      least_.push_back(b_.CreateSub(bits, b_.getInt32(1)));  // a zero is far above
    }
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, q, first);  // of -0, which corrections make 0
  }

  /// Exact for every mantissa, were the hardware's 1/sqrt off by three ulp.
  Value* root(Value* x) {
    Value* r = approximate("rsqrt.approx.ftz.f32 $0, $1;", x);
    Value *g = b_.CreateFMul(x, r), *h = b_.CreateFMul(r, k(0.5));
    Value* off = fma(b_.CreateFNeg(g), h, k(0.5));
    g = fma(g, off, g);
    h = fma(h, off, h);
    within(b_.CreateBitCast(x, b_.getInt32Ty()));  // negative numbers are above, as unsigned ones
    return fma(fma(b_.CreateFNeg(g), g, x), h, g);
  }

  Value* extreme(llvm::Intrinsic::ID which, std::vector<Value*> values) {
    for (size_t step = 1; step < values.size(); step *= 2)
      for (size_t i = 0; i + step < values.size(); i += 2 * step)
        values[i] = b_.CreateBinaryIntrinsic(which, values[i], values[i + step]);
    return values[0];
  }

  /// The fast results where all operands are ordinary, else those of `slow`.
  template <class Fn>
  Registers finish(const Registers& fast, Fn&& slow) {
    Value* low = b_.CreateICmpULT(extreme(llvm::Intrinsic::umin, least_), b_.getInt32(kLeast - 1));
    Value* high = b_.CreateICmpUGT(extreme(llvm::Intrinsic::umax, most_), b_.getInt32(kMost));
    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* rare = llvm::BasicBlock::Create(l_.context(), "exact.rare", l_.function);
    auto* after = llvm::BasicBlock::Create(l_.context(), "exact", l_.function);
    b_.CreateCondBr(b_.CreateOr(low, high), rare, after);
    b_.SetInsertPoint(rare);
    Registers slowly;
    for (size_t r = 0; r < fast.size(); ++r) slowly.push_back(slow(r));
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    Registers out;
    for (size_t r = 0; r < fast.size(); ++r) {
      llvm::PHINode* phi = b_.CreatePHI(f32_, 2);
      phi->addIncoming(fast[r], before);
      phi->addIncoming(slowly[r], rare);
      out.push_back(phi);
    }
    return out;
  }

  Lowering& l_;
  llvm::IRBuilder<>& b_;
  llvm::Type* f32_;
  std::vector<Value*> least_, most_;  // bits of magnitudes
  std::map<Value*, Value*> reciprocals_, checked_;
};

}  // namespace

bool is_exact_in_bulk(const ir::Op& op, const Lowering& l) {
  const bool division = op.kind == ir::OpKind::kDivRn;
  if ((!division && op.kind != ir::OpKind::kSqrtRn) || op.result()->type.dtype != DType::kF32) return false;
  // One alone is as well done by ptxas, and so is a division by a power of two.
  const Registers& x = l.of(op.operand(0));
  if (!division) return std::any_of(x.begin(), x.end(), [&](Value* v) { return v != x[0]; });
  const Registers& y = l.of(op.operand(1));
  std::set<std::pair<Value*, Value*>> pairs;
  for (size_t r = 0; r < x.size(); ++r) pairs.emplace(x[r], y[r]);
  if (pairs.size() < 2) return false;
  return std::none_of(y.begin(), y.end(), [](Value* v) {
    auto* c = llvm::dyn_cast<ConstantFP>(v);
    return c && (c->isZero() || c->getValueAPF().getExactInverse(nullptr));
  });
}

Registers exact_in_bulk(Lowering& l, const ir::Op& op) {
  ExactMath math(l);
  return op.kind == ir::OpKind::kDivRn ? math.divide(l.of(op.operand(0)), l.of(op.operand(1)))
                                       : math.square_root(l.of(op.operand(0)));
}

}  // namespace kiln::lower
