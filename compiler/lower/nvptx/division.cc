// Correctly rounded division and square roots of many f32 at once.
//
// ptxas makes a branch of each div.rn.f32 and sqrt.rn.f32, to a path for operands near the ends of the exponents, so
// that one ends before the next begins: 16 of a thread wait some 80 cycles each. Here eight at a time are straight-line
// code, and one branch asks for all of them whether any operand needs that path.
//
// A quotient that is rounded once more, to a half or to a whole number, is rarely needed to its last bit: where two
// products with the reciprocal, the next float below and above it, round to the same, the quotient does as well.
//
// Divisors that an exp2 made are asked first whether they are powers of two, as scales of blocks are: quotients by
// these are products.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/shared/elementwise.h"

namespace kiln::lower {

namespace {

using llvm::ConstantFP;
using llvm::Value;

/// The bits of 2^exponent.
constexpr int32_t bits_of_power(int32_t exponent) { return (127 + exponent) << 23; }

class ExactMath {
 public:
  explicit ExactMath(Lowering& l) : l_(l), b_(l.b), f32_(b_.getFloatTy()) {}

  /// Below kMostNumber, and of magnitude 1 at least or +0.
  static bool was_integer(const Value* v) {
    const auto* cast = llvm::dyn_cast<llvm::CastInst>(v);
    return cast && (llvm::isa<llvm::UIToFPInst>(cast) || llvm::isa<llvm::SIToFPInst>(cast)) &&
           cast->getSrcTy()->getIntegerBitWidth() <= 32;
  }
  /// A constant divisor that needs no check.
  static bool is_usual(const Value* v) {
    const auto* c = llvm::dyn_cast<ConstantFP>(v);
    const float magnitude = c ? std::abs(c->getValueAPF().convertToFloat()) : 0;
    return magnitude >= static_cast<float>(kLeastNumber) && magnitude <= static_cast<float>(kMostNumber);
  }

  /// Whether all operands are ordinary numbers is asked twice: of zeros, which are no ordinary ones and whose sign the
  /// corrections lose, only where there are any. What was an integer is ordinary, or a zero whose sign they keep.
  Registers divide(const Registers& x, const Registers& y) {
    begin();
    Registers fast;
    for (size_t r = 0; r < x.size(); ++r) fast.push_back(quotient(x[r], y[r]));
    auto slow = [&] { return by_hardware(x, y); };
    if (numerators_.empty()) return bits_.empty() ? fast : either(is_within(), fast, slow);
    const bool of_integers = std::ranges::any_of(x, was_integer);
    Value* fits = bits_.empty() ? b_.getTrue() : of_integers ? is_within() : is_within(kLeastDivisor, kMostDivisor);
    const auto [low, high] = bounds_of_numerators(y);
    Value* least = numerators_.front();
    Value* most = least;
    for (size_t i = 1; i < numerators_.size(); ++i) {
      least = b_.CreateMinNum(least, numerators_[i]);
      most = b_.CreateMaxNum(most, numerators_[i]);
    }
    // Comparisons that a NaN passes: the fast path makes a NaN of it.
    fits = b_.CreateAnd(b_.CreateNot(b_.CreateFCmpOGT(most, high)), fits);
    Value* is_ordinary = b_.CreateAnd(fits, b_.CreateNot(b_.CreateFCmpOLT(least, low)));
    return either(is_ordinary, fast, [&] {
      Value* has_tiny = b_.getFalse();
      for (Value* v : numerators_)
        has_tiny = b_.CreateOr(has_tiny, b_.CreateAnd(b_.CreateFCmpOLT(v, low), b_.CreateFCmpONE(v, k(0))));
      Registers with_signs;
      for (size_t r = 0; r < x.size(); ++r)
        with_signs.push_back(
            b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, fast[r], b_.CreateFMul(x[r], reciprocals_[y[r]])));
      return either(b_.CreateAnd(fits, b_.CreateNot(has_tiny)), with_signs, slow);
    });
  }

  /// The same by what exp2 made.
  Registers divide_by_powers(const Registers& x, const Registers& y) {
    constexpr uint32_t kMantissa = 0x7fffff, kLeastPower = 1u << 23, kMostPower = 253u << 23;  // of 1/y a normal number
    std::vector<Value*> bits, mantissas;
    std::map<Value*, Value*> inverse;
    for (Value* v : y) {
      auto [it, is_new] = inverse.try_emplace(v);
      if (!is_new) continue;
      bits.push_back(b_.CreateBitCast(v, b_.getInt32Ty()));
      mantissas.push_back(b_.CreateAnd(bits.back(), b_.getInt32(kMantissa)));
      it->second = b_.CreateBitCast(b_.CreateSub(b_.getInt32(254u << 23), bits.back()), f32_);
    }
    Registers products;
    for (size_t r = 0; r < x.size(); ++r) products.push_back(b_.CreateFMul(x[r], inverse[y[r]]));
    Value* are_powers = b_.CreateICmpEQ(extreme(llvm::Intrinsic::umax, mantissas), b_.getInt32(0));
    for (Value* outside : {b_.CreateICmpULT(extreme(llvm::Intrinsic::umin, bits), b_.getInt32(kLeastPower)),
                           b_.CreateICmpUGT(extreme(llvm::Intrinsic::umax, bits), b_.getInt32(kMostPower))})
      are_powers = b_.CreateAnd(are_powers, b_.CreateNot(outside));
    return either(are_powers, products, [&] {
      reciprocals_.clear();  // of blocks that need not have run
      return divide(x, y);
    });
  }

  /// What `rounds` makes of the quotients, in units of one or of two of them.
  std::vector<Value*> rounded(const Registers& x, const Registers& y, const ir::Op& rounds) {
    begin();
    std::map<Value*, std::pair<Value*, Value*>> around;
    Registers low, high;
    for (size_t r = 0; r < x.size(); ++r) {
      auto [it, is_new] = around.try_emplace(y[r]);
      if (is_new) it->second = around_reciprocal(y[r]);
      low.push_back(b_.CreateFMul(x[r], it->second.first));
      high.push_back(b_.CreateFMul(x[r], it->second.second));
    }
    const std::vector<Value*> below = round(low, rounds), above = round(high, rounds);
    Value* differ = nullptr;
    for (size_t i = 0; i < above.size(); ++i) {
      Value* d = b_.CreateXor(b_.CreateBitCast(below[i], b_.getInt32Ty()), b_.CreateBitCast(above[i], b_.getInt32Ty()));
      differ = differ ? b_.CreateOr(differ, d) : d;
    }
    Value* same = b_.CreateICmpEQ(differ, b_.getInt32(0));
    if (!bits_.empty()) same = b_.CreateAnd(is_within(), same);
    return either(same, above, [&] { return round(by_hardware(x, y), rounds); });
  }

  Registers square_root(const Registers& x) {
    begin();
    Registers fast;
    for (Value* v : x) fast.push_back(root(v));
    return either(is_within(kLeastSquare, kMostSquare), fast, [&] {
      Registers slow;
      for (Value* v : x) slow.push_back(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v));
      return slow;
    });
  }

 private:
  void begin() {
    bits_.clear();
    numerators_.clear();
    checked_.clear();
    divided_.clear();
  }

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

  // Exponents at which neither a quotient nor what is left of its division leaves the normal numbers, whatever it is a
  // quotient of.
  static constexpr int32_t kLeast = bits_of_power(-60), kMost = bits_of_power(60);
  static constexpr double kLeastNumber = 0x1p-60, kMostNumber = 0x1p60;
  // Those of divisors where their numerators are asked by what they are divided by, and of roots.
  static constexpr int32_t kLeastDivisor = bits_of_power(-125), kMostDivisor = bits_of_power(125);
  static constexpr int32_t kLeastSquare = bits_of_power(-100), kMostSquare = bits_of_power(126);

  /// Between which the magnitudes of numerators lie whose quotients by any of these divisors are normal numbers, with
  /// rests that an fma has exactly: elements of a matrix that is normalized by its sums are below 2^-60 soon.
  std::pair<Value*, Value*> bounds_of_numerators(const Registers& y) {
    constexpr float kLeastWithRest = 0x1p-100F, kLeastQuotient = 0x1p-124F, kMostQuotient = 0x1p126F;
    float least_constant = 1, most_constant = 0;  // a numerator is below the largest quotient too
    for (Value* v : y) {
      if (!is_usual(v)) continue;
      const float magnitude = std::abs(llvm::cast<ConstantFP>(v)->getValueAPF().convertToFloat());
      least_constant = std::min(least_constant, magnitude), most_constant = std::max(most_constant, magnitude);
    }
    Value *low = k(std::max(kLeastWithRest, most_constant * kLeastQuotient)), *high = k(least_constant * kMostQuotient);
    if (bits_.empty()) return {low, high};
    Value* least = b_.CreateBitCast(extreme(llvm::Intrinsic::umin, bits_), f32_);
    Value* most = b_.CreateBitCast(extreme(llvm::Intrinsic::umax, bits_), f32_);
    return {b_.CreateMaxNum(low, b_.CreateFMul(most, k(kLeastQuotient))),
            b_.CreateMinNum(high, b_.CreateFMul(least, k(kMostQuotient)))};
  }

  /// Quotients that ptxas makes, each with a branch of its own.
  Registers by_hardware(const Registers& x, const Registers& y) {
    Registers out;
    for (size_t r = 0; r < x.size(); ++r) out.push_back(b_.CreateFDiv(x[r], y[r]));
    return out;
  }

  Value* magnitude(Value* v) { return b_.CreateAnd(b_.CreateBitCast(v, b_.getInt32Ty()), b_.getInt32(0x7fffffff)); }
  void within(Value* bits) { bits_.push_back(bits); }

  /// The reciprocal, once for each divisor: the hardware's, which is off by an ulp at most, after a step of Newton's.
  Value* reciprocal(Value* y) {
    auto [known, is_new] = reciprocals_.try_emplace(y);
    if (is_usual(y)) return known->second = k(1.0f / llvm::cast<ConstantFP>(y)->getValueAPF().convertToFloat());
    if (checked_.insert(y).second) within(magnitude(y));
    if (!is_new) return known->second;
    Value* r = approximate("rcp.approx.ftz.f32 $0, $1;", y);
    return known->second = fma(r, fma(b_.CreateFNeg(y), r, k(1)), r);
  }

  /// The floats next to 1/y on its two sides, of magnitudes up to and from it; equal where it is one itself.
  std::pair<Value*, Value*> around_reciprocal(Value* y) {
    Value* r = reciprocal(y);
    Value* rest = fma(b_.CreateFNeg(y), r, k(1));  // positive: the magnitude of r is too small
    Value* bits = b_.CreateBitCast(r, b_.getInt32Ty());
    auto next = [&](Value* is_off, int32_t step) {
      Value* moved =
          b_.CreateAdd(bits, b_.CreateSelect(is_off, b_.getInt32(static_cast<uint32_t>(step)), b_.getInt32(0)));
      return b_.CreateBitCast(moved, f32_);
    };
    return {next(b_.CreateFCmpOLT(rest, k(0)), -1), next(b_.CreateFCmpOGT(rest, k(0)), 1)};
  }

  /// Conversions to halves make two at once.
  std::vector<Value*> round(const Registers& x, const ir::Op& rounds) {
    std::vector<Value*> out;
    const bool pairs = rounds.kind == ir::OpKind::kCast;
    for (size_t r = 0; r < x.size(); r += pairs ? 2 : 1) {
      Value* v = x[r];
      if (pairs) {
        v = b_.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(f32_, 2)), v, uint64_t{0});
        v = b_.CreateInsertElement(v, x[r + 1], uint64_t{1});
      }
      out.push_back(emit_elementwise(b_, rounds, {&v, 1}, l_.target));
    }
    return out;
  }

  /// Two corrections by the rest of the division, which an fma has exactly.
  Value* quotient(Value* x, Value* y) {
    Value* r = reciprocal(y);
    Value* q = b_.CreateFMul(x, r);
    Value* divisor = b_.CreateFNeg(y);
    for (int i = 0; i < 2; ++i) q = fma(fma(divisor, q, x), r, q);
    // As floats: an instruction of the GPU takes the magnitude and the minimum.
    if (!was_integer(x) && divided_.insert(x).second)
      numerators_.push_back(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
    return q;
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

  /// Whether the bits that `within` was told lie where the fast path is exact.
  Value* is_within(int32_t least = kLeast, int32_t most = kMost) {
    Value* low = b_.CreateICmpULT(extreme(llvm::Intrinsic::umin, bits_), b_.getInt32(static_cast<uint32_t>(least)));
    Value* high = b_.CreateICmpUGT(extreme(llvm::Intrinsic::umax, bits_), b_.getInt32(static_cast<uint32_t>(most)));
    return b_.CreateNot(b_.CreateOr(low, high));
  }

  /// `fast` where `is_fast`, else what `slow` computes in a block of its own.
  template <class Fn>
  Registers either(Value* is_fast, const Registers& fast, Fn&& slow) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* rare = llvm::BasicBlock::Create(l_.context(), "exact.rare", l_.function);
    auto* after = llvm::BasicBlock::Create(l_.context(), "exact", l_.function);
    b_.CreateCondBr(is_fast, after, rare, llvm::MDBuilder(l_.context()).createLikelyBranchWeights());
    b_.SetInsertPoint(rare);
    const Registers slowly = slow();
    llvm::BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    Registers out;
    for (size_t r = 0; r < fast.size(); ++r) {
      llvm::PHINode* phi = b_.CreatePHI(fast[r]->getType(), 2);
      phi->addIncoming(fast[r], before);
      phi->addIncoming(slowly[r], end);
      out.push_back(phi);
    }
    return out;
  }

  Lowering& l_;
  llvm::IRBuilder<>& b_;
  llvm::Type* f32_;
  std::vector<Value*> bits_;            // of magnitudes
  std::vector<Value*> numerators_;      // their magnitudes
  std::set<Value*> checked_, divided_;  // divisors and numerators that are among those
  std::map<Value*, Value*> reciprocals_;
};

/// Whether the numbers are results of exp2, repeated or moved.
bool are_made_by_exp2(const ir::Value* v) {
  for (const ir::Op* op = v->op; op; op = op->operand(0)->op) {
    switch (op->kind) {
      case ir::OpKind::kExp2:
        return true;
      case ir::OpKind::kSplat:
      case ir::OpKind::kBroadcast:
      case ir::OpKind::kExpandDims:
      case ir::OpKind::kReshape:
      case ir::OpKind::kTrans:
      case ir::OpKind::kConvertLayout:
        break;
      default:
        return false;
    }
  }
  return false;
}

Registers part(const Registers& all, size_t first, size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

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

const ir::Op* reader_that_rounds(const ir::Op& division, const Lowering& l) {
  if (division.kind != ir::OpKind::kDivRn || !is_exact_in_bulk(division, l)) return nullptr;
  const ir::Value* quotient = division.result();
  if (quotient->uses.size() != 1) return nullptr;
  const ir::Op* reader = quotient->uses.front().op;
  if (reader->parent != division.parent) return nullptr;
  switch (reader->kind) {
    case ir::OpKind::kCast:
      if (!is_half(reader->result()->type.dtype) || reader->has(ir::AttrName::kRounding)) return nullptr;
      if (l.of(division.operand(0)).size() % 2 != 0) return nullptr;  // they are made in pairs
      break;
    case ir::OpKind::kRint:
    case ir::OpKind::kFloor:
    case ir::OpKind::kCeil:
    case ir::OpKind::kTrunc:
      break;
    default:
      return nullptr;
  }
  // What a divisor takes must be little beside what each of its quotients saves.
  constexpr size_t kLeastOfEach = 4;
  const Registers &x = l.of(division.operand(0)), &y = l.of(division.operand(1));
  if (std::ranges::all_of(x, ExactMath::was_integer) && std::ranges::all_of(y, ExactMath::is_usual)) return nullptr;
  return std::set<Value*>(y.begin(), y.end()).size() * kLeastOfEach <= y.size() ? reader : nullptr;
}

const ir::Op* division_for(const ir::Op& reader, const Lowering& l) {
  const ir::Op* division = reader.operands.empty() ? nullptr : reader.operand(0)->op;
  return division && reader_that_rounds(*division, l) == &reader ? division : nullptr;
}

Registers rounded_quotients(Lowering& l, const ir::Op& division, const ir::Op& reader) {
  constexpr size_t kAtOnce = 8;
  ExactMath math(l);
  const Registers &x = l.of(division.operand(0)), &y = l.of(division.operand(1));
  Registers out;
  for (size_t first = 0; first < x.size(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, x.size() - first);
    for (Value* v : math.rounded(part(x, first, count), part(y, first, count), reader)) {
      if (!v->getType()->isVectorTy())
        out.push_back(v);
      else
        for (uint64_t i : {0, 1}) out.push_back(l.b.CreateExtractElement(v, i));
    }
  }
  return out;
}

Registers exact_in_bulk(Lowering& l, const ir::Op& op) {
  // Operands live until their check: few enough at once to leave other values their registers.
  constexpr size_t kAtOnce = 8;
  ExactMath math(l);
  const Registers& x = l.of(op.operand(0));
  Registers out;
  for (size_t first = 0; first < x.size(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, x.size() - first);
    const Registers some = part(x, first, count);
    Registers done;
    if (op.kind == ir::OpKind::kSqrtRn) {
      done = math.square_root(some);
    } else {
      const Registers divisors = part(l.of(op.operand(1)), first, count);
      done = are_made_by_exp2(op.operand(1)) ? math.divide_by_powers(some, divisors) : math.divide(some, divisors);
    }
    out.insert(out.end(), done.begin(), done.end());
  }
  return out;
}

}  // namespace kiln::lower
