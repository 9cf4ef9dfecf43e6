#include "compiler/ast/constant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace kiln::ast {
namespace {

Constant i(Int v) { return Constant(v); }
Constant f(double v) { return Constant(v); }
Constant s(std::string v) { return Constant(std::move(v)); }

std::string run(BinaryOp op, const Constant& a, const Constant& b) {
  auto r = apply(op, a, b, {});
  return r.ok() ? repr(*r) : "error: " + r.error().message;
}
std::string run(CompareOp op, const Constant& a, const Constant& b) {
  auto r = apply(op, a, b, {});
  return r.ok() ? repr(*r) : "error: " + r.error().message;
}

class ConstantRandom : public ::testing::Test {
 protected:
  unsigned seed = std::random_device{}();
  std::mt19937_64 rng{seed};
  ::testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

TEST_F(ConstantRandom, FloorDivisionAndModuloFitTogether) {
  for (int n = 0; n < 5000; ++n) {
    Int a = static_cast<int64_t>(rng()) >> (rng() % 60), b = static_cast<int64_t>(rng()) >> (rng() % 60);
    if (b == 0) continue;
    auto q = apply(BinaryOp::kFloorDiv, i(a), i(b), {});
    auto r = apply(BinaryOp::kMod, i(a), i(b), {});
    ASSERT_TRUE(q.ok() && r.ok());
    Int quotient = std::get<Int>(*q), remainder = std::get<Int>(*r);
    EXPECT_TRUE(quotient * b + remainder == a);
    EXPECT_TRUE(remainder == 0 || (remainder < 0) == (b < 0));
    EXPECT_TRUE((remainder < 0 ? -remainder : remainder) < (b < 0 ? -b : b));
  }
}

TEST_F(ConstantRandom, FloatReprReadsBackTheSame) {
  for (int n = 0; n < 20000; ++n) {
    uint64_t bits = rng();
    double v;
    std::memcpy(&v, &bits, sizeof v);
    if (n % 2)
      v = static_cast<double>(static_cast<int64_t>(rng() % 2000001) - 1000000) /
          std::pow(10, static_cast<int>(rng() % 9));
    if (std::isnan(v)) continue;
    EXPECT_EQ(std::strtod(float_repr(v).c_str(), nullptr), v) << float_repr(v);
  }
}

TEST_F(ConstantRandom, IntsAndFloatsCompareExactly) {
  for (int n = 0; n < 5000; ++n) {
    Int a = static_cast<Int>(static_cast<int64_t>(rng())) << (rng() % 40);
    double d = static_cast<double>(a);
    if (rng() % 2) d = std::nextafter(d, rng() % 2 ? 1e40 : -1e40);
    // |d| < 2^126 and its fraction is exact in binary, so Int shifted by 2^10 compares as the reals do.
    Int scaled = static_cast<Int>(std::floor(d));
    bool less = a < scaled || (a == scaled && d > std::floor(d));
    EXPECT_EQ(run(CompareOp::kLt, i(a), f(d)), less ? "True" : "False");
  }
}

TEST(Constant, FloatReprIsPythons) {
  for (auto [value, text] : {std::pair(1.0, "1.0"),
                             {0.1, "0.1"},
                             {1e16, "1e+16"},
                             {1e15, "1000000000000000.0"},
                             {1e-5, "1e-05"},
                             {1e-4, "0.0001"},
                             {123456.789, "123456.789"},
                             {-0.0, "-0.0"},
                             {1.5e300, "1.5e+300"},
                             {9999999999999998.0, "9999999999999998.0"},
                             {5e-324, "5e-324"},
                             {1e22, "1e+22"}})
    EXPECT_EQ(float_repr(value), text);
  EXPECT_EQ(float_repr(INFINITY), "inf");
  EXPECT_EQ(float_repr(-INFINITY), "-inf");
  EXPECT_EQ(float_repr(NAN), "nan");
}

TEST(Constant, Arithmetic) {
  using enum BinaryOp;
  EXPECT_EQ(run(kDiv, i(1), i(2)), "0.5");
  EXPECT_EQ(run(kFloorDiv, i(-7), i(2)), "-4");
  EXPECT_EQ(run(kMod, i(-7), i(2)), "1");
  EXPECT_EQ(run(kMod, i(7), i(-2)), "-1");
  EXPECT_EQ(run(kFloorDiv, f(-7), i(2)), "-4.0");
  EXPECT_EQ(run(kMod, f(-7), i(3)), "2.0");
  EXPECT_EQ(run(kMod, f(7), f(-3)), "-2.0");
  EXPECT_EQ(run(kPow, i(2), i(100)), "1267650600228229401496703205376");
  EXPECT_EQ(run(kPow, i(2), i(-1)), "0.5");
  EXPECT_EQ(run(kPow, i(-1), i(1000001)), "-1");
  EXPECT_EQ(run(kPow, f(2), f(0.5)), "1.4142135623730951");
  EXPECT_EQ(run(kShl, i(1), i(64)), "18446744073709551616");
  EXPECT_EQ(run(kShr, i(-5), i(1)), "-3");
  EXPECT_EQ(run(kShr, i(5), i(1000)), "0");
  EXPECT_EQ(run(kAdd, Constant(true), i(2)), "3");
  EXPECT_EQ(run(kAnd, Constant(true), Constant(false)), "False");
  EXPECT_EQ(run(kAdd, s("a"), s("b")), "'ab'");
  EXPECT_EQ(run(kMul, s("ab"), i(3)), "'ababab'");
  EXPECT_EQ(run(kMul, i(-1), s("ab")), "''");
}

TEST(Constant, Errors) {
  using enum BinaryOp;
  EXPECT_EQ(run(kDiv, i(1), i(0)), "error: division by zero");
  EXPECT_EQ(run(kMod, f(1), f(0)), "error: division by zero");
  EXPECT_EQ(run(kAdd, i(1), s("x")), "error: '+' does not apply to 'int' and 'str'");
  EXPECT_EQ(run(kAnd, f(1), i(1)), "error: '&' does not apply to 'float'");
  EXPECT_EQ(run(kMatMul, i(1), i(1)), "error: '@' does not apply to 'int' and 'int'");
  EXPECT_EQ(run(kPow, i(10), i(60)), "error: the result of '**' needs more than 128 bits, which Kiln's integers have");
  EXPECT_EQ(run(kShl, i(1), i(200)), "error: the result of '<<' needs more than 128 bits, which Kiln's integers have");
  EXPECT_EQ(run(kShl, i(1), i(-1)), "error: a shift count cannot be negative");
  EXPECT_EQ(run(kPow, f(-8), f(0.5)),
            "error: a negative number raised to a fraction is complex, which is not supported");
  EXPECT_EQ(run(kMul, s("abc"), i(Int{1} << 40)), "error: the repeated string would be larger than 1 GB");
  EXPECT_EQ(run(kMul, s("abcd"), i(Int{1} << 126)), "error: the repeated string would be larger than 1 GB");
  EXPECT_EQ(run(CompareOp::kLt, i(1), s("a")), "error: '<' does not apply to 'int' and 'str'");
  Int least = -(Int{1} << 126) * 2;
  EXPECT_FALSE(apply(UnaryOp::kNegate, i(least), {}).ok());
  EXPECT_FALSE(apply(kFloorDiv, i(least), i(-1), {}).ok());
  EXPECT_EQ(run(kMod, i(least), i(-1)), "0");
  EXPECT_EQ(to_string(least), "-170141183460469231731687303715884105728");
}

TEST(Constant, Comparisons) {
  using enum CompareOp;
  EXPECT_EQ(run(kEq, i(1), f(1.0)), "True");
  EXPECT_EQ(run(kEq, Constant(true), i(1)), "True");
  EXPECT_EQ(run(kEq, i(1), s("1")), "False");
  EXPECT_EQ(run(kEq, i((Int{1} << 53) + 1), f(9007199254740992.0)), "False");
  EXPECT_EQ(run(kLt, f(NAN), f(1)), "False");
  EXPECT_EQ(run(kNe, f(NAN), f(NAN)), "True");
  EXPECT_EQ(run(kLt, i(5), f(INFINITY)), "True");
  EXPECT_EQ(run(kIs, Constant(None{}), Constant(None{})), "True");
  EXPECT_EQ(run(kIs, Constant(true), i(1)), "False");
  EXPECT_EQ(run(kIsNot, i(3), Constant(None{})), "True");
  EXPECT_EQ(run(kIn, s("bc"), s("abcd")), "True");
  EXPECT_EQ(run(kNotIn, s("x"), s("abcd")), "True");
}

TEST(Constant, ReprOfStrings) {
  EXPECT_EQ(repr(s("it's")), "\"it's\"");
  EXPECT_EQ(repr(s("'\"")), "'\\'\"'");
  EXPECT_EQ(repr(s("a\n\t\\\x01")), "'a\\n\\t\\\\\\x01'");
}

}  // namespace
}  // namespace kiln::ast
