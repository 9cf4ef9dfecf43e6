#include "compiler/frontend/promotion.h"

#include <gtest/gtest.h>

namespace kiln::frontend {
namespace {

constexpr DType kInts[] = {DType::kI1,  DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                           DType::kI32, DType::kU32, DType::kI64, DType::kU64};

DType arithmetic(DType a, DType b) { return *promote(a, false, b, false, Promotion::kArithmetic); }
DType weak(DType tensor, DType scalar) { return *promote(tensor, false, scalar, true, Promotion::kArithmetic); }

TEST(Promotion, IntsFollowTheUsualConversions) {
  EXPECT_EQ(arithmetic(DType::kI8, DType::kI32), DType::kI32);
  EXPECT_EQ(arithmetic(DType::kI8, DType::kU8), DType::kU8);
  EXPECT_EQ(arithmetic(DType::kI32, DType::kU8), DType::kI32);
  EXPECT_EQ(arithmetic(DType::kI32, DType::kU32), DType::kU32);
  EXPECT_EQ(arithmetic(DType::kI1, DType::kI8), DType::kI8);
  EXPECT_EQ(arithmetic(DType::kI1, DType::kI1), DType::kI1);
}

TEST(Promotion, IsSymmetric) {
  for (int i = 0; i < kNumDTypes; ++i)
    for (int j = 0; j < kNumDTypes; ++j)
      for (Promotion how : {Promotion::kArithmetic, Promotion::kDivision}) {
        auto a = static_cast<DType>(i), b = static_cast<DType>(j);
        EXPECT_EQ(promote(a, false, b, false, how), promote(b, false, a, false, how)) << name(a) << " " << name(b);
        EXPECT_EQ(promote(a, true, b, false, how), promote(b, false, a, true, how)) << name(a) << " " << name(b);
      }
}

TEST(Promotion, Halves) {
  EXPECT_EQ(arithmetic(DType::kF16, DType::kBF16), DType::kF16);
  EXPECT_EQ(arithmetic(DType::kBF16, DType::kBF16), DType::kBF16);
  EXPECT_EQ(arithmetic(DType::kBF16, DType::kI32), DType::kF32);
  EXPECT_EQ(arithmetic(DType::kF16, DType::kI64), DType::kF16);
  EXPECT_EQ(arithmetic(DType::kF32, DType::kF16), DType::kF32);
  EXPECT_EQ(promote(DType::kF16, false, DType::kF16, false, Promotion::kDivision), DType::kF32);
  EXPECT_EQ(promote(DType::kBF16, false, DType::kBF16, false, Promotion::kDivision), DType::kF32);
  EXPECT_EQ(promote(DType::kF16, false, DType::kI32, true, Promotion::kDivision), DType::kF32);
}

TEST(Promotion, PythonScalarsAreWeak) {
  EXPECT_EQ(weak(DType::kF16, DType::kF32), DType::kF16);
  EXPECT_EQ(weak(DType::kBF16, DType::kI32), DType::kBF16);
  EXPECT_EQ(weak(DType::kI8, DType::kI32), DType::kI8);
  EXPECT_EQ(weak(DType::kI8, DType::kI1), DType::kI8);
  EXPECT_EQ(weak(DType::kI64, DType::kF32), DType::kF32);
  EXPECT_EQ(weak(DType::kI1, DType::kI32), DType::kI32);
  EXPECT_EQ(weak(DType::kF32, DType::kF64), DType::kF32);
}

TEST(Promotion, SomePairsHaveNone) {
  EXPECT_EQ(promote(DType::kI32, false, DType::kU32, false, Promotion::kDivision), std::nullopt);
  EXPECT_EQ(promote(DType::kF8E5M2, false, DType::kI32, false, Promotion::kArithmetic), std::nullopt);
  EXPECT_EQ(promote(DType::kF8E5M2, false, DType::kF8E4M3, false, Promotion::kArithmetic), DType::kF16);
}

TEST(Promotion, NaturalTypesOfPythonScalars) {
  auto of_int = [](ast::Int v) { return natural_dtype(ast::Constant(v)); };
  EXPECT_EQ(of_int(0), DType::kI32);
  EXPECT_EQ(of_int(ast::Int{INT32_MAX}), DType::kI32);
  EXPECT_EQ(of_int(ast::Int{1} << 31), DType::kU32);
  EXPECT_EQ(of_int(ast::Int{1} << 32), DType::kI64);
  EXPECT_EQ(of_int(-(ast::Int{1} << 31) - 1), DType::kI64);
  EXPECT_EQ(of_int(ast::Int{1} << 63), DType::kU64);
  EXPECT_EQ(of_int(ast::Int{1} << 64), std::nullopt);
  EXPECT_EQ(natural_dtype(ast::Constant(true)), DType::kI1);
  EXPECT_EQ(natural_dtype(ast::Constant(0.5)), DType::kF32);
  EXPECT_EQ(natural_dtype(ast::Constant(1e-300)), DType::kF64);
  EXPECT_EQ(natural_dtype(ast::Constant(1e300)), DType::kF64);
  EXPECT_EQ(natural_dtype(ast::Constant(std::string("x"))), std::nullopt);
}

TEST(Promotion, FitsKnowsTheBounds) {
  for (DType t : kInts) {
    ast::Int high = is_signed(t) ? (ast::Int{1} << (bits(t) - 1)) - 1 : (ast::Int{1} << bits(t)) - 1;
    ast::Int low = is_signed(t) ? -high - 1 : 0;
    EXPECT_TRUE(fits(high, t) && fits(low, t)) << name(t);
    EXPECT_FALSE(fits(high + 1, t) || fits(low - 1, t)) << name(t);
  }
}

}  // namespace
}  // namespace kiln::frontend
