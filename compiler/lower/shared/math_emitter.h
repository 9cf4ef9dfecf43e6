// Arithmetic in one float type (f32 or f64, scalar or vector), short enough to write formulas in. Private to math*.cc.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <span>

#include "compiler/target/target.h"

namespace kiln::lower {

/// A constant of one formula in both precisions, hi + lo.
struct Split {
  double hi, lo;
};

class MathEmitter {
 public:
  using V = llvm::Value*;
  MathEmitter(llvm::IRBuilderBase& builder, llvm::Type* type, const target::Target& t)
      : b(builder),
        target(t),
        float_type(type),
        f32(type->getScalarType()->isFloatTy()),
        int_type(type->getWithNewType(f32 ? builder.getInt32Ty() : builder.getInt64Ty())) {}

  llvm::IRBuilderBase& b;
  const target::Target& target;
  llvm::Type* const float_type;
  const bool f32;
  llvm::Type* const int_type;

  int mantissa_bits() const { return f32 ? 23 : 52; }
  int64_t bias() const { return f32 ? 127 : 1023; }
  double min_normal() const { return f32 ? 0x1p-126 : 0x1p-1022; }
  template <class T>
  T pick(T for_f32, T for_f64) const {
    return f32 ? for_f32 : for_f64;
  }

  V k(double value) const { return llvm::ConstantFP::get(float_type, value); }
  V ki(int64_t value) const { return llvm::ConstantInt::getSigned(int_type, value); }
  V inf() const { return llvm::ConstantFP::getInfinity(float_type); }
  V nan() const { return llvm::ConstantFP::getNaN(float_type); }

  V add(V x, V y) { return b.CreateFAdd(x, y); }
  V sub(V x, V y) { return b.CreateFSub(x, y); }
  V mul(V x, V y) { return b.CreateFMul(x, y); }
  V neg(V x) { return b.CreateFNeg(x); }
  V fma(V x, V y, V z) { return b.CreateIntrinsic(llvm::Intrinsic::fma, {float_type}, {x, y, z}); }
  V abs(V x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  V copysign(V magnitude, V sign) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign); }
  /// Within 2 ulp: the hardware's approximation on CUDA f32.
  V div(V x, V y);
  /// x / y within 2 ulp where y and 1/y are normal: no scaling around the hardware's reciprocal.
  V div_normal(V x, V y);

  V lt(V x, V y) { return b.CreateFCmpOLT(x, y); }
  V eq(V x, V y) { return b.CreateFCmpOEQ(x, y); }
  V select(V c, V x, V y) { return b.CreateSelect(c, x, y); }
  /// x but at most (at least) `limit`; NaN stays NaN.
  V at_most(V x, double limit);
  V at_least(V x, double limit);
  /// Between -limit and limit.
  V within(V x, double limit);

  V bits(V x) { return b.CreateBitCast(x, int_type); }
  V from_bits(V x) { return b.CreateBitCast(x, float_type); }
  /// c[0] + c[1]·x + …
  V poly(std::span<const double> c, V x);

  /// The nearest integer to x (|x| < 2^22 or 2^51), as a float and as an int. A NaN gives NaN and any int.
  struct Rounded {
    V value, integer;
  };
  Rounded round(V x);
  /// A small integer as a float.
  V to_float(V integer);
  /// 2^e for e in the exponents of normal numbers.
  V pow2(V e) { return from_bits(b.CreateShl(b.CreateAdd(e, ki(bias())), ki(mantissa_bits()))); }
  /// x·2^n with one rounding, for results that may be denormal or overflow. `shifted` is n + scale_magic().
  V scale(V x, V shifted);
  /// Adding it rounds to an integer and leaves that, plus twice the exponent's bias, in the low bits.
  V scale_magic() const { return k(f32 ? 0x1.8p23 + 254 : 0x1.8p52 + 2046); }

  /// An NVVM intrinsic of one or two f32 scalars, lane by lane.
  V nvvm(llvm::Intrinsic::ID id, std::span<V const> args);

 private:
  V magic() const { return k(f32 ? 0x1.8p23 : 0x1.8p52); }
};

/// x^y (math_pow.cc); may branch on CUDA, see math.h.
llvm::Value* emit_pow(MathEmitter& m, llvm::Value* x, llvm::Value* y);

/// e^r and e^r - 1 for |r| ≤ ln2/2, and log's pieces: shared by math.cc and math_pow.cc.
llvm::Value* exp_reduced(MathEmitter& m, llvm::Value* r);
llvm::Value* expm1_reduced(MathEmitter& m, llvm::Value* r);
/// x = 2^exponent·mantissa with mantissa in [√½, √2), for x > 0; denormals too.
struct Decomposed {
  llvm::Value* exponent;  // as a float
  llvm::Value* mantissa;
};
Decomposed decompose(MathEmitter& m, llvm::Value* x);
/// The same of a normal x.
Decomposed decompose_normal(MathEmitter& m, llvm::Value* x);

}  // namespace kiln::lower
