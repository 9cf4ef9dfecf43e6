#include "compiler/lower/shared/elementwise.h"

#include <llvm/ADT/APFloat.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "compiler/lower/shared/float_convert.h"
#include "compiler/lower/shared/float_rem.h"
#include "compiler/lower/shared/math.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::lower {

using ir::AttrName;
using ir::OpKind;
using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::Value;

namespace {

using Operands = std::span<Value* const>;

struct Emit {
  llvm::IRBuilderBase& b;
  const ir::Op& op;
  const target::Target& target;

  Value* num(Value* like, int64_t v) const { return ConstantInt::getSigned(like->getType(), v); }
  bool constant(Value* v) const { return llvm::isa<llvm::Constant>(v); }

  template <class Fn>
  Value* per_lane(Operands v, Fn&& fn) const {
    return lower::per_lane(b, v, std::forward<Fn>(fn));
  }

  // --- integers

  /// Division never traps and is never undefined in LLVM's sense: a zero divisor, and -1 under the smallest integer,
  /// become 1. As in the interpreter, x / 0 is 0.
  Value* int_divide(Operands v, bool sign, bool remainder) const {
    Value *x = v[0], *y = v[1];
    // LLVM multiplies in place of dividing by a constant. A scalar divides once, and its guards take fewer registers
    // through a persistent kernel than the divisor's size and sign.
    if (target.is_cuda() && op.result()->type.is_tile() && !constant(y) && fits_ptx_divide(x, y, sign)) {
      return per_lane(v, [&](Operands lane) -> Value* {
        Value* result =
            ptx_divide(b.CreateTrunc(lane[0], b.getInt32Ty()), b.CreateTrunc(lane[1], b.getInt32Ty()), sign, remainder);
        return b.CreateIntCast(result, lane[0]->getType(), sign);
      });
    }
    Value* one = num(y, 1);
    Value* by_zero = b.CreateICmpEQ(y, num(y, 0));
    Value* bad = by_zero;
    if (sign) {
      Value* smallest =
          ConstantInt::get(x->getType(), llvm::APInt::getSignedMinValue(x->getType()->getScalarSizeInBits()));
      bad = b.CreateOr(bad, b.CreateAnd(b.CreateICmpEQ(y, num(y, -1)), b.CreateICmpEQ(x, smallest)));
    }
    Value* divisor = b.CreateSelect(bad, one, y);
    if (remainder) return sign ? b.CreateSRem(x, divisor) : b.CreateURem(x, divisor);
    Value* quotient = sign ? b.CreateSDiv(x, divisor) : b.CreateUDiv(x, divisor);
    return b.CreateSelect(by_zero, num(x, 0), quotient);
  }

  /// Whether operands and results are integers of 32 bits, or are known to be as small.
  bool fits_ptx_divide(Value* x, Value* y, bool sign) const {
    const unsigned width = x->getType()->getScalarSizeInBits();
    if (width == 32) return true;
    if (width != 64) return false;
    const llvm::DataLayout& layout = b.GetInsertBlock()->getDataLayout();
    // 2^31, of the smallest integer by -1, is no int32: the numerator has a bit to spare.
    if (sign) return llvm::ComputeNumSignBits(x, layout) >= 34 && llvm::ComputeNumSignBits(y, layout) >= 33;
    return llvm::computeKnownBits(x, layout).countMinLeadingZeros() >= 32 &&
           llvm::computeKnownBits(y, layout).countMinLeadingZeros() >= 32;
  }

  /// By PTX's div, which is defined for all integers of 32 bits: any value by zero, as in the language, and the
  /// smallest one wraps. Guarding LLVM's own would take a selection for each quotient, and divisors of their own would
  /// keep ptxas from sharing a reciprocal. A numerator known not to be negative divides without a sign, which saves a
  /// third of the instructions; the quotient then takes the divisor's.
  Value* ptx_divide(Value* x, Value* y, bool sign, bool remainder) const {
    const llvm::DataLayout& layout = b.GetInsertBlock()->getDataLayout();
    auto may_be_negative = [&](Value* v) { return sign && !llvm::computeKnownBits(v, layout).isNonNegative(); };
    const bool x_has_sign = may_be_negative(x);
    const bool takes_sign = !x_has_sign && may_be_negative(y);
    Value* divisor = takes_sign ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, y, b.getFalse()) : y;
    auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty(), b.getInt32Ty()}, false);
    const char* text = x_has_sign ? "div.s32 $0, $1, $2;" : "div.u32 $0, $1, $2;";
    llvm::CallInst* quotient = b.CreateCall(type, llvm::InlineAsm::get(type, text, "=r,r,r", false), {x, divisor});
    quotient->setDoesNotAccessMemory();
    quotient->setDoesNotThrow();
    quotient->addFnAttr(llvm::Attribute::WillReturn);
    if (remainder) return b.CreateSub(x, b.CreateMul(quotient, divisor));
    if (!takes_sign) return quotient;
    return b.CreateMul(quotient, b.CreateOr(b.CreateAShr(y, 31), 1));
  }

  Value* shift(Operands v, bool left, bool arithmetic) const {
    Value *x = v[0], *amount = v[1];
    const int width = static_cast<int>(x->getType()->getScalarSizeInBits());
    if (arithmetic) {
      Value* clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, num(amount, width - 1));
      return b.CreateAShr(x, clamped);
    }
    if (width == 1) return b.CreateSelect(amount, num(x, 0), x);
    Value* in_range = b.CreateICmpULT(amount, num(amount, width));
    // An out-of-range LLVM shift is poison, which select does not let through. NVPTX makes one clamping shl of this
    // pattern, but drops the upper half of a 64-bit amount (LLVM 22.1.8): there the pattern is broken up.
    if (width == 64) amount = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, num(amount, width - 1));
    Value* shifted = left ? b.CreateShl(x, amount) : b.CreateLShr(x, amount);
    return b.CreateSelect(in_range, shifted, num(x, 0));
  }

  Value* mulhi(Operands v, bool sign) const {
    const unsigned width = v[0]->getType()->getScalarSizeInBits();
    if (target.is_cuda()) {
      auto id = width == 64 ? (sign ? llvm::Intrinsic::nvvm_mulhi_ll : llvm::Intrinsic::nvvm_mulhi_ull)
                            : (sign ? llvm::Intrinsic::nvvm_mulhi_i : llvm::Intrinsic::nvvm_mulhi_ui);
      return per_lane(v, [&](Operands lane) -> Value* { return b.CreateIntrinsic(id, {lane[0], lane[1]}); });
    }
    llvm::Type* wide = same_lanes(b.getIntNTy(width * 2), v[0]);
    auto extend = [&](Value* x) { return sign ? b.CreateSExt(x, wide) : b.CreateZExt(x, wide); };
    Value* product = b.CreateMul(extend(v[0]), extend(v[1]));
    return b.CreateTrunc(b.CreateLShr(product, ConstantInt::get(wide, width)), v[0]->getType());
  }

  Value* integer(Operands v, bool sign) const {
    switch (op.kind) {
      case OpKind::kAdd:
        return b.CreateAdd(v[0], v[1]);
      case OpKind::kSub:
        return b.CreateSub(v[0], v[1]);
      case OpKind::kMul:
        return b.CreateMul(v[0], v[1]);
      case OpKind::kDiv:
        return int_divide(v, sign, false);
      case OpKind::kRem:
        return int_divide(v, sign, true);
      case OpKind::kNeg:
        return b.CreateNeg(v[0]);
      case OpKind::kAbs:
        return sign ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v[0], b.getFalse()) : v[0];
      case OpKind::kMin:
        return b.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, v[0], v[1]);
      case OpKind::kMax:
        return b.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, v[0], v[1]);
      case OpKind::kFma:
        return b.CreateAdd(b.CreateMul(v[0], v[1]), v[2]);
      case OpKind::kAnd:
        return b.CreateAnd(v[0], v[1]);
      case OpKind::kOr:
        return b.CreateOr(v[0], v[1]);
      case OpKind::kXor:
        return b.CreateXor(v[0], v[1]);
      case OpKind::kShl:
        return shift(v, true, false);
      case OpKind::kShr:
        return shift(v, false, sign);
      case OpKind::kMulHi:
        return mulhi(v, sign);
      default:
        KILN_UNREACHABLE("{} on integers", ir::print(op));
    }
  }

  // --- floats

  /// True when the target has this op on the half type itself, correctly rounded.
  bool native_half(DType t) const {
    if (!target.is_cuda()) return false;
    if (t == DType::kF16)
      return op.kind != OpKind::kDiv && op.kind != OpKind::kDivRn && op.kind != OpKind::kRem && !is_math_op(op.kind);
    switch (op.kind) {
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kCmp:
        return target.has(target::kBf16Arith);
      case OpKind::kFma:
      case OpKind::kMin:
      case OpKind::kMax:
      case OpKind::kNeg:
      case OpKind::kAbs:
        return target.has(target::kBf16);
      default:
        return false;
    }
  }

  /// 1 / y within 1 ulp; half the instructions of div.full. The hardware's own instruction knows no denormals: a
  /// divisor that is far above zero is brought into its range with two multiplications by powers of two, and any other
  /// by rcp.approx, which takes six instructions to do so.
  Value* reciprocal(Value* y, bool far_above_zero) const {
    llvm::Constant* quarter = ConstantFP::get(y->getType(), 0.25);
    if (far_above_zero) y = b.CreateFMul(y, quarter);
    Value* r = per_lane({&y, 1}, [&](Operands lane) -> Value* {
      auto* type = llvm::FunctionType::get(b.getFloatTy(), {b.getFloatTy()}, false);
      const char* text = far_above_zero ? "rcp.approx.ftz.f32 $0, $1;" : "rcp.approx.f32 $0, $1;";
      llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, "=f,f", false), {lane[0]});
      call->setDoesNotAccessMemory();
      call->setDoesNotThrow();
      call->addFnAttr(llvm::Attribute::WillReturn);
      return call;
    });
    return far_above_zero ? b.CreateFMul(r, quarter) : r;
  }

  /// The number that every element of `v` is, if it is a float constant.
  static std::optional<double> constant_of(const ir::Value* v) {
    while (v->is_result() && (v->op->kind == OpKind::kSplat || v->op->kind == OpKind::kBroadcast))
      v = v->op->operand(0);
    if (!v->is_result() || v->op->kind != OpKind::kConstant) return std::nullopt;
    const double* number = std::get_if<double>(v->op->find(AttrName::kValue));
    return number ? std::optional(*number) : std::nullopt;
  }

  /// True for c + e^x with c ≥ 2^-100: never so small that its reciprocal overflows.
  static bool is_far_above_zero(const ir::Value* v) {
    if (!v->is_result() || v->op->kind != OpKind::kAdd) return false;
    for (int i = 0; i < 2; ++i) {
      const auto c = constant_of(v->op->operand(i));
      const ir::Value* other = v->op->operand(1 - i);
      if (c && *c >= 0x1p-100 && other->is_result() &&
          (other->op->kind == OpKind::kExp || other->op->kind == OpKind::kExp2))
        return true;
    }
    return false;
  }

  Value* divide_f32_full(Value* x, Value* y) const {
    // A constant divisor with a normal reciprocal costs one multiplication, within 1.5 ulp.
    if (auto* c = llvm::dyn_cast<ConstantFP>(y)) {
      const float r = 1.0f / c->getValueAPF().convertToFloat();
      if (std::isnormal(r) && std::isnormal(c->getValueAPF().convertToFloat()))
        return b.CreateFMul(x, ConstantFP::get(y->getType(), r));
    }
    if (auto* c = llvm::dyn_cast<ConstantFP>(x); c && c->isExactlyValue(1.0))
      return reciprocal(y, is_far_above_zero(op.operand(1)));
    Value* lanes[] = {x, y};
    return per_lane(lanes, [&](Operands v) -> Value* {
      return b.CreateIntrinsic(llvm::Intrinsic::nvvm_div_full, {v[0], v[1]});
    });
  }

  Value* compare(Operands v, bool floating, bool sign) const {
    struct Row {
      llvm::CmpInst::Predicate floats, with_sign, without;
    };
    using P = llvm::CmpInst;
    auto row = [&]() -> Row {
      switch (op.word<ir::Predicate>()) {
        case ir::Predicate::kEq:
          return {P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ};
        case ir::Predicate::kNe:
          return {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE};
        case ir::Predicate::kLt:
          return {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT};
        case ir::Predicate::kLe:
          return {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE};
        case ir::Predicate::kGt:
          return {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT};
        case ir::Predicate::kGe:
          return {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE};
      }
      KILN_UNREACHABLE("predicate");
    }();
    return b.CreateCmp(floating ? row.floats : sign ? row.with_sign : row.without, v[0], v[1]);
  }

  /// `v` in an LLVM float type whose arithmetic is that of `t`.
  Value* arithmetic(Operands v, DType t) const {
    const bool propagate = op.find_word<ir::Nan>() == ir::Nan::kPropagate;
    switch (op.kind) {
      case OpKind::kAdd:
        return b.CreateFAdd(v[0], v[1]);
      case OpKind::kSub:
        return b.CreateFSub(v[0], v[1]);
      case OpKind::kMul:
        return b.CreateFMul(v[0], v[1]);
      case OpKind::kDiv:
        // Halves round an exact f32 quotient once more, which is correct only from a correctly rounded one.
        return target.is_cuda() && t == DType::kF32 ? divide_f32_full(v[0], v[1]) : b.CreateFDiv(v[0], v[1]);
      case OpKind::kDivRn:
        return b.CreateFDiv(v[0], v[1]);
      case OpKind::kRem:
        return emit_fmod(b, v[0], v[1]);
      case OpKind::kNeg:
        return b.CreateFNeg(v[0]);
      case OpKind::kAbs:
        return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v[0]);
      case OpKind::kMin:
        return b.CreateBinaryIntrinsic(propagate ? llvm::Intrinsic::minimum : llvm::Intrinsic::minimumnum, v[0], v[1]);
      case OpKind::kMax:
        return b.CreateBinaryIntrinsic(propagate ? llvm::Intrinsic::maximum : llvm::Intrinsic::maximumnum, v[0], v[1]);
      case OpKind::kFma:
        return b.CreateIntrinsic(llvm::Intrinsic::fma, {v[0]->getType()}, {v[0], v[1], v[2]});
      case OpKind::kCmp:
        return compare(v, true, false);
      default:
        break;
    }
    KILN_ASSERT(is_math_op(op.kind), "{}", ir::print(op));
    return emit_math(b, op.kind, t == DType::kF64 ? DType::kF64 : DType::kF32, v, target);
  }

  /// a*b + c of a narrow format rounded once: the product is exact in f64; the sum's error, exact by two-sum, makes the
  /// f64 sum odd, so that the narrowing rounds as if from the true value.
  Value* narrow_fma(Operands v, DType t) const {
    Value* wide[3];
    for (int i = 0; i < 3; ++i) wide[i] = convert_number(b, v[i], t, DType::kF64, false, target);
    Value* product = b.CreateFMul(wide[0], wide[1]);
    Value* addend = wide[2];
    Value* sum = b.CreateFAdd(product, addend);
    Value* part = b.CreateFSub(sum, product);
    Value* error = b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, part)), b.CreateFSub(addend, part));
    llvm::Type* i64 = same_lanes(b.getInt64Ty(), sum);
    Value* bits = b.CreateBitCast(sum, i64);
    Value* inexact = b.CreateFCmpONE(error, ConstantFP::get(sum->getType(), 0.0));
    // Towards the error: one unit away from zero when both have one sign, else one unit back; only an even sum moves.
    Value* opposite = b.CreateICmpSLT(b.CreateXor(bits, b.CreateBitCast(error, i64)), num(bits, 0));
    Value* moved = b.CreateAdd(bits, b.CreateSelect(opposite, num(bits, -1), num(bits, 1)));
    Value* even = b.CreateICmpEQ(b.CreateAnd(bits, num(bits, 1)), num(bits, 0));
    Value* odd = b.CreateSelect(b.CreateAnd(inexact, even), moved, bits);
    return convert_number(b, b.CreateBitCast(odd, sum->getType()), DType::kF64, t, false, target);
  }

  Value* floating(Operands v, DType t) const {
    if (t == DType::kF32 || t == DType::kF64 || native_half(t)) return arithmetic(v, t);
    if (op.kind == OpKind::kNeg || op.kind == OpKind::kAbs) {  // the sign bit alone, NaNs keep their bits
      llvm::Type* bits_type = same_lanes(b.getIntNTy(bits(t)), v[0]);
      Value* bits = b.CreateBitCast(v[0], bits_type);
      const llvm::APInt sign = llvm::APInt::getSignMask(kiln::bits(t));
      Value* out = op.kind == OpKind::kNeg ? b.CreateXor(bits, ConstantInt::get(bits_type, sign))
                                           : b.CreateAnd(bits, ConstantInt::get(bits_type, ~sign));
      return b.CreateBitCast(out, v[0]->getType());
    }
    if (op.kind == OpKind::kFma) return narrow_fma(v, t);
    std::vector<Value*> wide;
    for (Value* x : v) wide.push_back(convert_number(b, x, t, DType::kF32, false, target));
    // DType::kF16 here only says "not f32": the quotient must be exact.
    Value* out = arithmetic(wide, is_fp8(t) ? DType::kF16 : t);
    return op.kind == OpKind::kCmp ? out : convert_number(b, out, DType::kF32, t, false, target);
  }

  // --- pointers and bits

  Value* add_pointer(Operands v) const {
    Value* offset = v[1];
    const DType index = op.operand(1)->type.dtype;
    llvm::Type* i64 = same_lanes(b.getInt64Ty(), offset);
    offset = is_signed(index) ? b.CreateSExt(offset, i64) : b.CreateZExt(offset, i64);
    const int bytes = size_of(op.operand(0)->type.dtype);
    if (target.is_cuda()) return b.CreateGEP(b.getIntNTy(static_cast<unsigned>(bytes) * 8), v[0], offset);
    return b.CreateAdd(v[0], b.CreateMul(offset, num(offset, bytes)));
  }

  Value* reinterpret(Value* v, const ir::Type& from, const ir::Type& to) const {
    llvm::Type* result = same_lanes(element_type(to, b.getContext(), target), v);
    if (v->getType() == result) return v;
    if (from.pointer) return b.CreatePtrToInt(v, result);
    if (to.pointer) return b.CreateIntToPtr(v, result);
    Value* out = b.CreateBitCast(v, result);
    // InstCombine takes `fcmp une (bitcast bfloat x to half), 0` for a bitcast of an integer and makes invalid IR of it
    // (LLVM 22.1.8); the fence keeps the bitcast out of its sight. To go when `x & 32767` there checks the type.
    const bool between_halves = v->getType()->isFPOrFPVectorTy() && result->isFPOrFPVectorTy();
    return between_halves ? b.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {result}, {out}) : out;
  }

  Value* run(Operands v) const {
    const ir::Type& result = op.result()->type;
    switch (op.kind) {
      case OpKind::kSelect:
        return b.CreateSelect(v[0], v[1], v[2]);
      case OpKind::kHint:
        return v[0];
      case OpKind::kBitcast:
        return reinterpret(v[0], op.operand(0)->type, result);
      case OpKind::kPtrToInt: {
        llvm::Type* i64 = same_lanes(b.getInt64Ty(), v[0]);
        return target.is_cuda() ? b.CreatePtrToInt(v[0], i64) : v[0];
      }
      case OpKind::kIntToPtr: {
        llvm::Type* i64 = same_lanes(b.getInt64Ty(), v[0]);
        const bool sign = is_signed(op.operand(0)->type.dtype);
        Value* wide = sign ? b.CreateSExtOrTrunc(v[0], i64) : b.CreateZExtOrTrunc(v[0], i64);
        llvm::Type* pointer = same_lanes(element_type(result, b.getContext(), target), v[0]);
        return target.is_cuda() ? b.CreateIntToPtr(wide, pointer) : wide;
      }
      case OpKind::kAddPtr:
        return add_pointer(v);
      case OpKind::kCast:
        return convert_number(b, v[0], op.operand(0)->type.dtype, result.dtype,
                              op.find_word<ir::Rounding>() == ir::Rounding::kTowardZero, target);
      case OpKind::kCmp:
#define KILN_MIXED_OP(...)
#define KILN_ELEMENTWISE_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
        return numbers(v);
#define KILN_ELEMENTWISE_OP(...)
#define KILN_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
        break;
    }
    KILN_UNREACHABLE("{} is not elementwise", ir::print(op));
  }

  Value* numbers(Operands v) const {
    const ir::Type& type = op.operand(0)->type;
    if (type.is_float()) return floating(v, type.dtype);
    const bool sign = !type.pointer && is_signed(type.dtype);
    return op.kind == OpKind::kCmp ? compare(v, false, sign) : integer(v, sign);
  }
};

/// What the block yields. `lanes` is the vector type of the arguments, or null for scalars.
std::vector<Value*> combine_block(llvm::IRBuilderBase& b, const ir::Block& block,
                                  std::unordered_map<const ir::Value*, Value*>& values, llvm::VectorType* lanes,
                                  const target::Target& target) {
  std::vector<Value*> operands;
  for (const ir::Op* op : block) {
    operands.clear();
    for (const ir::Value* v : op->operands) operands.push_back(values.at(v));
    if (ir::is_terminator(op)) break;
    if (op->kind == OpKind::kConstant) {
      Value* c = emit_constant(*op, b.getContext(), target);
      values[op->result()] = lanes ? b.CreateVectorSplat(lanes->getElementCount(), c) : c;
    } else if (op->kind == OpKind::kIf) {  // both branches are pure: computed, then selected
      const std::vector<Value*> yes = combine_block(b, *op->region(0), values, lanes, target);
      const std::vector<Value*> no = combine_block(b, *op->region(1), values, lanes, target);
      for (size_t i = 0; i < op->results.size(); ++i)
        values[op->results[i]] = b.CreateSelect(operands[0], yes[i], no[i]);
    } else {
      values[op->result()] = emit_elementwise(b, *op, operands, target);
    }
  }
  return operands;
}

const llvm::fltSemantics& semantics(DType t) {
  switch (t) {
    case DType::kF16:
      return llvm::APFloat::IEEEhalf();
    case DType::kBF16:
      return llvm::APFloat::BFloat();
    case DType::kF32:
      return llvm::APFloat::IEEEsingle();
    case DType::kF64:
      return llvm::APFloat::IEEEdouble();
    case DType::kI1:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E4B15:
      break;
  }
  KILN_UNREACHABLE("{} is no float of LLVM's", name(t));
}

}  // namespace

llvm::Type* element_type(const ir::Type& type, llvm::LLVMContext& context, const target::Target& target) {
  if (type.pointer)
    return target.is_cuda() ? static_cast<llvm::Type*>(llvm::PointerType::get(context, 1))
                            : llvm::Type::getInt64Ty(context);
  switch (type.dtype) {
    case DType::kI1:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E4B15:
      return llvm::Type::getIntNTy(context, static_cast<unsigned>(bits(type.dtype)));
    case DType::kF16:
      return llvm::Type::getHalfTy(context);
    case DType::kBF16:
      return llvm::Type::getBFloatTy(context);
    case DType::kF32:
      return llvm::Type::getFloatTy(context);
    case DType::kF64:
      return llvm::Type::getDoubleTy(context);
  }
  KILN_UNREACHABLE("dtype {}", static_cast<int>(type.dtype));
}

Value* emit_elementwise(llvm::IRBuilderBase& b, const ir::Op& op, Operands operands, const target::Target& target) {
  return Emit{b, op, target}.run(operands);
}

llvm::Constant* emit_constant(const ir::Op& op, llvm::LLVMContext& context, const target::Target& target) {
  const ir::Type& type = op.result()->type;
  llvm::Type* element = element_type(type, context, target);
  const ir::Attr* value = op.find(AttrName::kValue);
  KILN_ASSERT(value, "{}", ir::print(op));
  const bool is_real = std::holds_alternative<double>(*value);
  KILN_ASSERT(is_real || std::holds_alternative<int64_t>(*value), "{}", ir::print(op));
  if (!type.is_float()) {
    const int64_t n = std::get<int64_t>(*value);
    if (element->isPointerTy()) {
      auto* bits = ConstantInt::getSigned(llvm::Type::getInt64Ty(context), n);
      return n == 0 ? llvm::Constant::getNullValue(element) : llvm::ConstantExpr::getIntToPtr(bits, element);
    }
    return ConstantInt::get(
        element, llvm::APInt(element->getIntegerBitWidth(), static_cast<uint64_t>(n), true, /*implicitTrunc=*/true));
  }
  double real = is_real ? std::get<double>(*value) : static_cast<double>(std::get<int64_t>(*value));
  if (is_fp8(type.dtype)) return ConstantInt::get(element, float_to_bits(type.dtype, real));
  llvm::APFloat rounded(real);
  bool loses_info = false;
  rounded.convert(semantics(type.dtype), llvm::APFloat::rmNearestTiesToEven, &loses_info);
  return ConstantFP::get(context, rounded);
}

std::vector<Value*> emit_combine(llvm::IRBuilderBase& b, const ir::Block& region, std::span<Value* const> args,
                                 const target::Target& target) {
  KILN_ASSERT(!args.empty() && args.size() == region.args.size());
  std::unordered_map<const ir::Value*, Value*> values;
  for (size_t i = 0; i < args.size(); ++i) values[region.args[i]] = args[i];
  return combine_block(b, region, values, llvm::dyn_cast<llvm::VectorType>(args[0]->getType()), target);
}

}  // namespace kiln::lower
