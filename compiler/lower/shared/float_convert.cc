#include "compiler/lower/shared/float_convert.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/diag.h"

namespace kiln::lower {

using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::Value;

namespace {

struct Fp8Format {
  int mantissa_bits, bias;
  float max_finite;
  uint8_t nan;
};
constexpr Fp8Format kE4M3{3, 7, 448.0f, 0x7f};
constexpr Fp8Format kE5M2{2, 15, 57344.0f, 0x7f};

const Fp8Format& fp8_format(DType t) { return t == DType::kF8E4M3 ? kE4M3 : kE5M2; }

llvm::Value* fabs(llvm::IRBuilderBase& b, Value* v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); }

/// Rounds towards zero what fptrunc rounded to nearest: one unit back from `narrow_bits` where it went too far.
Value* step_back(llvm::IRBuilderBase& b, Value* narrow_bits, Value* widened, Value* exact) {
  Value* too_far = b.CreateFCmpOGT(fabs(b, widened), fabs(b, exact));
  return b.CreateSub(narrow_bits, b.CreateZExt(too_far, narrow_bits->getType()));
}

/// Shorthands that fit scalars and vectors alike.
struct Converter {
  llvm::IRBuilderBase& b;
  const target::Target& target;

  llvm::Type* type(llvm::Type* scalar, Value* like) const { return same_lanes(scalar, like); }
  Value* num(Value* like, uint64_t value) const { return ConstantInt::get(like->getType(), value); }
  Value* real(Value* like, double value) const { return ConstantFP::get(like->getType(), value); }
  Value* cast_bits(Value* v, llvm::Type* scalar) const { return b.CreateBitCast(v, type(scalar, v)); }
  Value* bits32(Value* f32) const { return cast_bits(f32, b.getInt32Ty()); }
  Value* float32(Value* bits) const { return cast_bits(bits, b.getFloatTy()); }

  /// Lanes of a vector one or two at a time: `fn(lo, hi)` gives a pair as a vector of two results.
  template <class Fn>
  Value* by_pairs(Value* v, llvm::Type* result_scalar, Fn&& fn) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    if (!vector) return b.CreateExtractElement(fn(v, nullptr), uint64_t{0});
    const unsigned lanes = vector->getNumElements();
    Value* out = llvm::PoisonValue::get(type(result_scalar, v));
    for (unsigned i = 0; i < lanes; i += 2) {
      Value* lo = b.CreateExtractElement(v, i);
      Value* hi = i + 1 < lanes ? b.CreateExtractElement(v, i + 1) : nullptr;
      Value* pair = fn(lo, hi);
      out = b.CreateInsertElement(out, b.CreateExtractElement(pair, uint64_t{0}), i);
      if (hi) out = b.CreateInsertElement(out, b.CreateExtractElement(pair, uint64_t{1}), i + 1);
    }
    return out;
  }

  Value* f64_to_f32(Value* v, bool to_zero) const {
    Value* f = b.CreateFPTrunc(v, type(b.getFloatTy(), v));
    if (!to_zero) return f;
    return float32(step_back(b, bits32(f), b.CreateFPExt(f, v->getType()), v));
  }

  Value* bf16_to_f32(Value* v) const {
    if (target.is_cuda()) return b.CreateFPExt(v, type(b.getFloatTy(), v));
    // x86 has no conversion that keeps denormals, and LLVM's own may be a library call: the shift is the definition.
    Value* wide = b.CreateZExt(cast_bits(v, b.getInt16Ty()), type(b.getInt32Ty(), v));
    return float32(b.CreateShl(wide, num(wide, 16)));
  }

  Value* f32_to_bf16(Value* v, bool to_zero) const {
    if (target.is_cuda() && !to_zero) return b.CreateFPTrunc(v, type(b.getBFloatTy(), v));
    Value* bits = bits32(v);
    Value* upper = b.CreateLShr(bits, num(bits, 16));
    Value* rounded = upper;
    if (!to_zero) {
      Value* odd = b.CreateAnd(upper, num(bits, 1));
      rounded = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(odd, num(bits, 0x7fff))), num(bits, 16));
    }
    Value* is_nan = b.CreateFCmpUNO(v, v);
    Value* out = b.CreateSelect(is_nan, b.CreateOr(upper, num(bits, 0x40)), rounded);
    return cast_bits(b.CreateTrunc(out, type(b.getInt16Ty(), v)), b.getBFloatTy());
  }

  Value* f32_to_f16(Value* v, bool to_zero) const {
    Value* h = b.CreateFPTrunc(v, type(b.getHalfTy(), v));
    if (!to_zero) return h;
    return cast_bits(step_back(b, cast_bits(h, b.getInt16Ty()), b.CreateFPExt(h, v->getType()), v), b.getHalfTy());
  }

  /// f8e4b15 is f16 without the highest bit of its exponent and the lowest seven of its mantissa.
  Value* f8e4b15_to_f32(Value* v) const {
    Value* wide = b.CreateZExt(v, type(b.getInt16Ty(), v));
    Value* sign = b.CreateShl(b.CreateAnd(wide, num(wide, 0x80)), num(wide, 8));
    Value* magnitude = b.CreateShl(b.CreateAnd(wide, num(wide, 0x7f)), num(wide, 7));
    return b.CreateFPExt(cast_bits(b.CreateOr(magnitude, sign), b.getHalfTy()), type(b.getFloatTy(), v));
  }

  /// The first rounding is toward zero, so that it makes no ties.
  Value* f32_to_f8e4b15(Value* v, bool to_zero) const {
    Value* half = cast_bits(f32_to_f16(v, /*to_zero=*/true), b.getInt16Ty());
    Value* magnitude = b.CreateAnd(half, num(half, 0x7fff));
    magnitude = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, magnitude, num(half, 0x3f00));  // 1.75
    if (!to_zero) magnitude = b.CreateAdd(magnitude, num(half, 0x40));
    Value* sign = b.CreateLShr(b.CreateAnd(half, num(half, 0x8000)), num(half, 8));
    Value* out = b.CreateOr(b.CreateLShr(magnitude, num(half, 7)), sign);
    out = b.CreateSelect(b.CreateFCmpUNO(v, v), num(half, 0x7e), out);
    return b.CreateTrunc(out, type(b.getInt8Ty(), v));
  }

  Value* fp8_to_f32(Value* v, DType from) const {
    if (from == DType::kF8E4B15) return f8e4b15_to_f32(v);
    if (target.has(target::kFp8Convert) && target.is_cuda()) {
      auto id =
          from == DType::kF8E4M3 ? llvm::Intrinsic::nvvm_e4m3x2_to_f16x2_rn : llvm::Intrinsic::nvvm_e5m2x2_to_f16x2_rn;
      Value* halves = by_pairs(v, b.getHalfTy(), [&](Value* lo, Value* hi) -> Value* {
        Value* packed = b.CreateZExt(lo, b.getInt16Ty());
        if (hi) packed = b.CreateOr(packed, b.CreateShl(b.CreateZExt(hi, b.getInt16Ty()), 8));
        return b.CreateIntrinsic(id, {packed});
      });
      return b.CreateFPExt(halves, type(b.getFloatTy(), v));
    }
    if (from == DType::kF8E5M2) {  // the upper byte of an f16
      Value* wide = b.CreateShl(b.CreateZExt(v, type(b.getInt16Ty(), v)), ConstantInt::get(type(b.getInt16Ty(), v), 8));
      return b.CreateFPExt(cast_bits(wide, b.getHalfTy()), type(b.getFloatTy(), v));
    }
    // Placed as a (denormal) f32 with the exponent off by 120; the product is exact and normalises denormals.
    Value* bits = b.CreateZExt(v, type(b.getInt32Ty(), v));
    Value* sign = b.CreateShl(b.CreateAnd(bits, num(bits, 0x80)), num(bits, 24));
    Value* magnitude = b.CreateAnd(bits, num(bits, 0x7f));
    Value* scaled = float32(b.CreateShl(magnitude, num(bits, 20)));
    scaled = b.CreateFMul(scaled, real(scaled, 0x1p120));
    Value* is_nan = b.CreateICmpEQ(magnitude, num(bits, kE4M3.nan));
    Value* out = b.CreateSelect(is_nan, num(bits, 0x7fc00000), bits32(scaled));
    return float32(b.CreateOr(out, sign));
  }

  Value* f32_to_fp8(Value* v, DType to, bool to_zero) const {
    if (to == DType::kF8E4B15) return f32_to_f8e4b15(v, to_zero);
    if (target.has(target::kFp8Convert) && target.is_cuda() && !to_zero) {
      auto id = to == DType::kF8E4M3 ? llvm::Intrinsic::nvvm_ff_to_e4m3x2_rn : llvm::Intrinsic::nvvm_ff_to_e5m2x2_rn;
      return by_pairs(v, b.getInt8Ty(), [&](Value* lo, Value* hi) -> Value* {
        Value* upper = hi ? hi : llvm::ConstantFP::get(b.getFloatTy(), 0.0);
        Value* packed = b.CreateIntrinsic(id, {upper, lo});
        return b.CreateBitCast(packed, llvm::FixedVectorType::get(b.getInt8Ty(), 2));
      });
    }
    const Fp8Format& f = fp8_format(to);
    const int dropped = 23 - f.mantissa_bits;
    Value* bits = bits32(v);
    Value* magnitude = b.CreateAnd(bits, num(bits, 0x7fffffff));
    Value* is_nan = b.CreateICmpUGT(magnitude, num(bits, 0x7f800000));
    Value* sign = b.CreateAnd(b.CreateLShr(bits, num(bits, 24)), num(bits, 0x80));
    // Saturation first: then rounding cannot carry past the largest finite value.
    magnitude =
        b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, magnitude, num(bits, std::bit_cast<uint32_t>(f.max_finite)));
    Value* rounding = num(bits, 0);
    if (!to_zero) {
      Value* odd = b.CreateAnd(b.CreateLShr(magnitude, num(bits, dropped)), num(bits, 1));
      rounding = b.CreateAdd(odd, num(bits, (1u << (dropped - 1)) - 1));
    }
    Value* normal = b.CreateLShr(b.CreateAdd(magnitude, rounding), num(bits, dropped));
    normal = b.CreateSub(normal, num(bits, static_cast<uint64_t>(127 - f.bias) << f.mantissa_bits));
    // Denormal results: multiples of 2^-unit. Adding a float whose last place is that rounds; scaling truncates.
    const int unit = f.bias - 1 + f.mantissa_bits;
    Value* positive = float32(magnitude);
    Value* denormal;
    if (to_zero) {
      Value* scaled = b.CreateFMul(positive, real(positive, std::ldexp(1.0, unit)));
      denormal = b.CreateFPToUI(scaled, bits->getType());
    } else {
      const float magic = std::ldexp(1.0f, 23 - unit);
      Value* sum = b.CreateFAdd(positive, real(positive, magic));
      denormal = b.CreateSub(bits32(sum), num(bits, std::bit_cast<uint32_t>(magic)));
    }
    const float smallest_normal = std::ldexp(1.0f, 1 - f.bias);
    Value* is_normal = b.CreateICmpUGE(magnitude, num(bits, std::bit_cast<uint32_t>(smallest_normal)));
    Value* out = b.CreateOr(b.CreateSelect(is_normal, normal, denormal), sign);
    out = b.CreateSelect(is_nan, num(bits, f.nan), out);
    return b.CreateTrunc(out, type(b.getInt8Ty(), v));
  }

  Value* float_to_f32(Value* v, DType from, bool to_zero) const {
    switch (from) {
      case DType::kF32:
        return v;
      case DType::kF64:
        return f64_to_f32(v, to_zero);
      case DType::kF16:
        return b.CreateFPExt(v, type(b.getFloatTy(), v));
      case DType::kBF16:
        return bf16_to_f32(v);
      case DType::kF8E4M3:
      case DType::kF8E5M2:
      case DType::kF8E4B15:
        return fp8_to_f32(v, from);
      case DType::kI1:
      case DType::kI8:
      case DType::kI16:
      case DType::kI32:
      case DType::kI64:
      case DType::kU8:
      case DType::kU16:
      case DType::kU32:
      case DType::kU64:
        break;
    }
    KILN_UNREACHABLE("not a float");
  }

  Value* f32_to_float(Value* v, DType to, bool to_zero) const {
    switch (to) {
      case DType::kF32:
        return v;
      case DType::kF64:
        return b.CreateFPExt(v, type(b.getDoubleTy(), v));
      case DType::kF16:
        return f32_to_f16(v, to_zero);
      case DType::kBF16:
        return f32_to_bf16(v, to_zero);
      case DType::kF8E4M3:
      case DType::kF8E5M2:
      case DType::kF8E4B15:
        return f32_to_fp8(v, to, to_zero);
      case DType::kI1:
      case DType::kI8:
      case DType::kI16:
      case DType::kI32:
      case DType::kI64:
      case DType::kU8:
      case DType::kU16:
      case DType::kU32:
      case DType::kU64:
        break;
    }
    KILN_UNREACHABLE("not a float");
  }

  Value* float_to_float(Value* v, DType from, DType to, bool to_zero) const {
    if (from == to) return v;
    if (from == DType::kF64) {
      if (to == DType::kF32) return f64_to_f32(v, to_zero);
      if (to == DType::kF16 && target.is_cuda() && !to_zero) return b.CreateFPTrunc(v, type(b.getHalfTy(), v));
      return f32_to_float(to_zero ? f64_to_f32(v, true) : round_to_odd(b, v), to, to_zero);
    }
    return f32_to_float(float_to_f32(v, from, false), to, to_zero);
  }

  /// Keeps `x` where |x| < 2^limit; elsewhere clears the bits below `low` and notes in bit `low` that some were set, so
  /// that the conversion to a float of limit bits is exact and a narrower rounding after it sees a correct remainder.
  Value* jam(Value* x, bool is_signed_int, int limit, int low) const {
    Value* below = b.CreateAnd(x, num(x, (uint64_t{1} << low) - 1));
    Value* sticky = b.CreateZExt(b.CreateICmpNE(below, num(x, 0)), x->getType());
    Value* jammed = b.CreateOr(b.CreateSub(x, below), b.CreateShl(sticky, num(x, low)));
    Value* magnitude = is_signed_int ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse()) : x;
    return b.CreateSelect(b.CreateICmpULT(magnitude, num(x, uint64_t{1} << limit)), x, jammed);
  }

  Value* int_to_float(Value* v, DType from, DType to, bool to_zero) const {
    const bool sign = is_signed(from);
    auto convert = [&](Value* x, llvm::Type* scalar) {
      return sign ? b.CreateSIToFP(x, type(scalar, x)) : b.CreateUIToFP(x, type(scalar, x));
    };
    if (to == DType::kF64) return convert(v, b.getDoubleTy());
    if (to == DType::kF32) return convert(v, b.getFloatTy());
    // f16 and fp8 overflow (or saturate) long before f32 becomes inexact at 2^24; bf16 does not.
    if (to == DType::kBF16 && bits(from) == 32) v = jam(v, sign, 24, 8);
    if (to == DType::kBF16 && bits(from) == 64)
      return f32_to_float(round_to_odd(b, convert(jam(v, sign, 53, 11), b.getDoubleTy())), to, to_zero);
    return f32_to_float(convert(v, b.getFloatTy()), to, to_zero);
  }

  /// The same as fptosi.sat, of which LLVM makes seven instructions. The GPU's conversion saturates as well, and takes
  /// a floor or another rounding with it; a NaN becomes 0, unless one side has 64 bits (PTX ISA, "cvt"). Of a scalar.
  Value* saturated_by_gpu(Value* x, DType to) const {
    using namespace llvm::Intrinsic;
    constexpr ID kBy[2][2][2][4] = {// [from f64][to 64 bits][signed]: towards zero, down, up, nearest
                                    {{{nvvm_f2ui_rz, nvvm_f2ui_rm, nvvm_f2ui_rp, nvvm_f2ui_rn},
                                      {nvvm_f2i_rz, nvvm_f2i_rm, nvvm_f2i_rp, nvvm_f2i_rn}},
                                     {{nvvm_f2ull_rz, nvvm_f2ull_rm, nvvm_f2ull_rp, nvvm_f2ull_rn},
                                      {nvvm_f2ll_rz, nvvm_f2ll_rm, nvvm_f2ll_rp, nvvm_f2ll_rn}}},
                                    {{{nvvm_d2ui_rz, nvvm_d2ui_rm, nvvm_d2ui_rp, nvvm_d2ui_rn},
                                      {nvvm_d2i_rz, nvvm_d2i_rm, nvvm_d2i_rp, nvvm_d2i_rn}},
                                     {{nvvm_d2ull_rz, nvvm_d2ull_rm, nvvm_d2ull_rp, nvvm_d2ull_rn},
                                      {nvvm_d2ll_rz, nvvm_d2ll_rm, nvvm_d2ll_rp, nvvm_d2ll_rn}}}};
    const bool from_double = x->getType()->isDoubleTy(), to_wide = bits(to) == 64;
    size_t rounding = 0;
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(x)) {
      const ID id = call->getIntrinsicID();
      rounding = id == llvm::Intrinsic::floor  ? 1
                 : id == llvm::Intrinsic::ceil ? 2
                 : id == llvm::Intrinsic::rint ? 3
                                               : 0;
      if (rounding) x = call->getArgOperand(0);
    }
    Value* integer = b.CreateIntrinsic(kBy[from_double][to_wide][is_signed(to)][rounding], {x});
    if (!from_double && !to_wide) return integer;
    return b.CreateSelect(b.CreateFCmpUNO(x, x), num(integer, 0), integer);
  }

  Value* float_to_int(Value* v, DType from, DType to) const {
    Value* wide = from == DType::kF64 ? v : float_to_f32(v, from, false);
    if (to == DType::kI1) return b.CreateFCmpUNE(wide, real(wide, 0.0));
    if (target.is_cuda()) {
      Value* integer =
          per_lane(b, {&wide, 1}, [&](std::span<Value* const> lane) { return saturated_by_gpu(lane[0], to); });
      return b.CreateTrunc(integer, type(b.getIntNTy(bits(to)), v));
    }
    // Saturates at 32 or 64 bits; narrower integers take the low bits of that (interp/eval.h).
    llvm::Type* saturated = type(b.getIntNTy(std::max(bits(to), 32)), v);
    auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    Value* integer = b.CreateIntrinsic(id, {saturated, wide->getType()}, {wide});
    return b.CreateTrunc(integer, type(b.getIntNTy(bits(to)), v));
  }
};

}  // namespace

llvm::Type* same_lanes(llvm::Type* scalar, const Value* like) {
  auto* vector = llvm::dyn_cast<llvm::VectorType>(like->getType());
  return vector ? llvm::VectorType::get(scalar, vector->getElementCount()) : scalar;
}

Value* round_to_odd(llvm::IRBuilderBase& b, Value* f64) {
  llvm::Type* i32 = same_lanes(b.getInt32Ty(), f64);
  Value* nearest = b.CreateFPTrunc(f64, same_lanes(b.getFloatTy(), f64));
  Value* back = b.CreateFPExt(nearest, f64->getType());
  Value* inexact = b.CreateFCmpONE(back, f64);
  Value* truncated = step_back(b, b.CreateBitCast(nearest, i32), back, f64);
  return b.CreateBitCast(b.CreateOr(truncated, b.CreateZExt(inexact, i32)), nearest->getType());
}

Value* convert_number(llvm::IRBuilderBase& b, Value* v, DType from, DType to, bool to_zero,
                      const target::Target& target) {
  Converter e{b, target};
  if (from == to) return v;
  if (is_float(from)) return is_float(to) ? e.float_to_float(v, from, to, to_zero) : e.float_to_int(v, from, to);
  if (is_float(to)) return e.int_to_float(v, from, to, to_zero);
  if (to == DType::kI1) return b.CreateICmpNE(v, e.num(v, 0));
  llvm::Type* result = same_lanes(b.getIntNTy(bits(to)), v);
  return is_signed(from) ? b.CreateSExtOrTrunc(v, result) : b.CreateZExtOrTrunc(v, result);
}

}  // namespace kiln::lower
