#include "compiler/interp/eval.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "compiler/ir/builder.h"
#include "support/diag.h"

namespace kiln::interp {
namespace {

using ir::AttrName;
using ir::OpKind;

/// Evaluates one op on scalars given by their bits.
uint64_t eval_op(OpKind kind, const ir::Type& result, std::initializer_list<std::pair<ir::Type, uint64_t>> operands,
                 std::vector<std::pair<AttrName, ir::Attr>> attrs = {}) {
  ir::Module m("k");
  ir::Builder b(m);
  std::vector<ir::Value*> values;
  std::vector<uint64_t> bits;
  for (const auto& [type, v] : operands) {
    values.push_back(m.add_arg(m.body(), type));
    m.params.push_back({"", 1});
    bits.push_back(v);
  }
  ir::Op* op = b.create(kind, values, std::span(&result, 1), std::move(attrs));
  b.ret();
  EXPECT_TRUE(ir::verify(m).ok()) << ir::print(*op);
  return eval(*op, bits);
}

uint64_t eval2(OpKind kind, DType t, uint64_t a, uint64_t b) {
  const ir::Type type = ir::scalar_type(t);
  return eval_op(kind, type, {{type, a}, {type, b}});
}

double feval2(OpKind kind, DType t, double a, double b, std::vector<std::pair<AttrName, ir::Attr>> attrs = {}) {
  const ir::Type type = ir::scalar_type(t);
  return float_from_bits(
      t, eval_op(kind, type, {{type, float_to_bits(t, a)}, {type, float_to_bits(t, b)}}, std::move(attrs)));
}

uint64_t cast(DType from, DType to, uint64_t bits) { return convert(from, to, bits); }
uint64_t f32(float v) { return std::bit_cast<uint32_t>(v); }

/// A module with one op per (kind, dtype), so that all pairs are cheap.
class ByteOp {
 public:
  ByteOp(OpKind kind, DType t) : m_("k"), b_(m_) {
    const ir::Type type = ir::scalar_type(t);
    std::vector<ir::Value*> v(static_cast<size_t>(ir::info(kind).min_operands));
    for (ir::Value*& x : v) x = m_.add_arg(m_.body(), type);
    op_ = b_.create(kind, v, std::span(&type, 1));
  }
  uint8_t operator()(uint8_t a, uint8_t b) const {
    const uint64_t in[] = {a, b};
    return static_cast<uint8_t>(eval(*op_, std::span(in, op_->operands.size())));
  }

 private:
  ir::Module m_;
  ir::Builder b_;
  ir::Op* op_;
};

TEST(Eval, IntegersOverAllBytePairs) {
  struct Row {
    OpKind kind;
    int (*reference)(int, int);  // on extended numbers; the low byte counts
  };
  const Row rows[] = {{OpKind::kAdd, [](int a, int b) { return a + b; }},
                      {OpKind::kSub, [](int a, int b) { return a - b; }},
                      {OpKind::kMul, [](int a, int b) { return a * b; }},
                      {OpKind::kDiv, [](int a, int b) { return b ? a / b : 0; }},
                      {OpKind::kRem, [](int a, int b) { return b ? a % b : 0; }},
                      {OpKind::kMin, [](int a, int b) { return a < b ? a : b; }},
                      {OpKind::kMax, [](int a, int b) { return a < b ? b : a; }},
                      {OpKind::kAnd, [](int a, int b) { return a & b; }},
                      {OpKind::kOr, [](int a, int b) { return a | b; }},
                      {OpKind::kXor, [](int a, int b) { return a ^ b; }},
                      {OpKind::kNeg, [](int a, int) { return -a; }},
                      {OpKind::kAbs, [](int a, int) { return a < 0 ? -a : a; }},
                      {OpKind::kShl, [](int a, int b) { return (b & 0xff) >= 8 ? 0 : a * (1 << b); }},
                      {OpKind::kShr, [](int a, int b) { return (b & 0xff) >= 8 ? (a < 0 ? -1 : 0) : a >> b; }}};
  for (const Row& row : rows) {
    for (DType t : {DType::kI8, DType::kU8}) {
      const ByteOp op(row.kind, t);
      for (int a = 0; a < 256; ++a)
        for (int b = 0; b < 256; ++b) {
          const int x = t == DType::kI8 ? static_cast<int8_t>(a) : a, y = t == DType::kI8 ? static_cast<int8_t>(b) : b;
          ASSERT_EQ(op(static_cast<uint8_t>(a), static_cast<uint8_t>(b)), static_cast<uint8_t>(row.reference(x, y)))
              << ir::info(row.kind).mnemonic << " " << name(t) << " " << x << " " << y;
        }
    }
  }
}

TEST(Eval, IntegerEdges) {
  const uint64_t min32 = 0x80000000, min64 = uint64_t{1} << 63;
  EXPECT_EQ(eval2(OpKind::kDiv, DType::kI32, min32, 0xffffffff), min32);
  EXPECT_EQ(eval2(OpKind::kRem, DType::kI32, min32, 0xffffffff), 0u);
  EXPECT_EQ(eval2(OpKind::kDiv, DType::kI64, min64, ~uint64_t{0}), min64);
  EXPECT_EQ(eval2(OpKind::kDiv, DType::kU64, min64, ~uint64_t{0}), 0u);
  EXPECT_EQ(eval2(OpKind::kDiv, DType::kI64, 7, 0), 0u);
  EXPECT_EQ(eval2(OpKind::kRem, DType::kU32, 7, 0), 0u);
  EXPECT_EQ(eval2(OpKind::kShl, DType::kI32, 1, 33), 0u);
  EXPECT_EQ(eval2(OpKind::kShl, DType::kI64, 1, 63), min64);
  EXPECT_EQ(eval2(OpKind::kShr, DType::kI64, min64, ~uint64_t{0}), ~uint64_t{0});
  EXPECT_EQ(eval2(OpKind::kShr, DType::kU64, min64, 64), 0u);
  EXPECT_EQ(eval2(OpKind::kAdd, DType::kI1, 1, 1), 0u);
  EXPECT_EQ(eval2(OpKind::kMulHi, DType::kU32, 0xffffffff, 0xffffffff), 0xfffffffeu);
  EXPECT_EQ(eval2(OpKind::kMulHi, DType::kI32, 0xffffffff, 0xffffffff), 0u);
  EXPECT_EQ(eval2(OpKind::kMulHi, DType::kI32, 0xffffffff, 1), 0xffffffffu);
  EXPECT_EQ(eval2(OpKind::kMulHi, DType::kU64, ~uint64_t{0}, ~uint64_t{0}), ~uint64_t{0} - 1);
  EXPECT_EQ(eval2(OpKind::kMulHi, DType::kI64, min64, 2), ~uint64_t{0});
}

// A result is right when no neighbour is nearer to the exact value hi + lo, and a tie is even. |lo| is below half a
// unit of hi's last place: it only decides what hi alone leaves as a tie.
void expect_rounded(DType t, uint64_t got, __float128 hi, const std::string& what, __float128 lo = 0) {
  const double value = float_from_bits(t, got);
  auto magnitude = [](__float128 v) { return v < 0 ? -v : v; };
  if (std::isinf(value)) {
    EXPECT_GT(magnitude(hi), static_cast<__float128>(float_from_bits(t, max_finite_bits(t)))) << what;
    return;
  }
  for (int step : {-1, 1}) {
    const uint64_t neighbour = got + static_cast<uint64_t>(step);
    if (((neighbour ^ got) >> (bits(t) - 1)) != 0 || !std::isfinite(float_from_bits(t, neighbour))) continue;
    const __float128 own = hi - static_cast<__float128>(value);
    const __float128 other = hi - static_cast<__float128>(float_from_bits(t, neighbour));
    const bool nearer = magnitude(own) != magnitude(other) ? magnitude(own) < magnitude(other)
                        : lo != 0                          ? (own < 0) == (lo > 0)
                                                           : !(got & 1);
    EXPECT_TRUE(nearer) << what;
  }
}

TEST(Eval, HalvesAreRoundedOnce) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 rng(seed);
  for (DType t : {DType::kF16, DType::kBF16}) {
    const ir::Type type = ir::scalar_type(t);
    for (int i = 0; i < 3000; ++i) {
      // Exponents near each other, so that ties and cancellations occur.
      const uint64_t base = rng() & 0x7c00;
      uint64_t v[3];
      for (uint64_t& x : v) x = ((base + (rng() & 0xfff)) & 0x7fff) | (rng() & 0x8000);
      __float128 q[3];
      bool finite = true;
      for (int k = 0; k < 3; ++k) {
        q[k] = float_from_bits(t, v[k]);
        finite = finite && std::isfinite(float_from_bits(t, v[k]));
      }
      if (!finite) continue;
      const std::string what = fmt::format("{} {:#x} {:#x} {:#x} seed {}", name(t), v[0], v[1], v[2], seed);
      expect_rounded(t, eval2(OpKind::kAdd, t, v[0], v[1]), q[0] + q[1], "add " + what);
      expect_rounded(t, eval2(OpKind::kSub, t, v[0], v[1]), q[0] - q[1], "sub " + what);
      expect_rounded(t, eval2(OpKind::kMul, t, v[0], v[1]), q[0] * q[1], "mul " + what);
      if (q[1] != 0) expect_rounded(t, eval2(OpKind::kDiv, t, v[0], v[1]), q[0] / q[1], "div " + what);
      const uint64_t fma = eval_op(OpKind::kFma, type, {{type, v[0]}, {type, v[1]}, {type, v[2]}});
      const __float128 product = q[0] * q[1], sum = product + q[2], part = sum - product;
      expect_rounded(t, fma, sum, "fma " + what, (product - (sum - part)) + (q[2] - part));
    }
  }
}

TEST(Eval, FmaOfHalvesSeesATinyAddend) {
  // 1.5 * 1.5 = 2.25 is no tie in f16; (1 + 2^-10) * (1 + 2^-1) has one bit too many: the addend decides.
  const ir::Type h = ir::scalar_type(DType::kF16);
  auto fma = [&](double a, double b, double c) {
    return eval_op(
        OpKind::kFma, h,
        {{h, float_to_bits(DType::kF16, a)}, {h, float_to_bits(DType::kF16, b)}, {h, float_to_bits(DType::kF16, c)}});
  };
  const double a = 1 + 0x1p-10, b = 1.5;  // product 1.5 + 2^-10 + 2^-11: a tie between 1.5+2^-10 and 1.5+2^-9
  EXPECT_EQ(float_from_bits(DType::kF16, fma(a, b, 0)), 1.5 + 0x1p-9);
  EXPECT_EQ(float_from_bits(DType::kF16, fma(a, b, -0x1p-24)), 1.5 + 0x1p-10);
}

TEST(Eval, MinMaxRules) {
  for (DType t : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    EXPECT_TRUE(std::signbit(feval2(OpKind::kMin, t, 0.0, -0.0)));
    EXPECT_TRUE(std::signbit(feval2(OpKind::kMin, t, -0.0, 0.0)));
    EXPECT_FALSE(std::signbit(feval2(OpKind::kMax, t, -0.0, 0.0)));
    EXPECT_FALSE(std::signbit(feval2(OpKind::kMax, t, 0.0, -0.0)));
    EXPECT_EQ(feval2(OpKind::kMin, t, NAN, 2.0), 2.0);
    EXPECT_EQ(feval2(OpKind::kMax, t, 2.0, NAN), 2.0);
    EXPECT_TRUE(std::isnan(feval2(OpKind::kMax, t, NAN, NAN)));
    EXPECT_TRUE(std::isnan(feval2(OpKind::kMax, t, 2.0, NAN, {{AttrName::kNan, ir::Nan::kPropagate}})));
    EXPECT_EQ(feval2(OpKind::kMax, t, 2.0, 3.0, {{AttrName::kNan, ir::Nan::kPropagate}}), 3.0);
  }
}

TEST(Eval, ComparisonsWithNan) {
  const ir::Type f = ir::scalar_type(DType::kF32), flag = ir::scalar_type(DType::kI1);
  using ir::Predicate;
  for (Predicate p : {Predicate::kEq, Predicate::kNe, Predicate::kLt, Predicate::kLe, Predicate::kGt, Predicate::kGe})
    EXPECT_EQ(eval_op(OpKind::kCmp, flag, {{f, f32(NAN)}, {f, f32(1)}}, {{AttrName::kPredicate, p}}),
              p == Predicate::kNe)
        << ir::spelling(p);
  const ir::Type i = ir::scalar_type(DType::kI32), u = ir::scalar_type(DType::kU32);
  EXPECT_EQ(eval_op(OpKind::kCmp, flag, {{i, 0xffffffff}, {i, 1}}, {{AttrName::kPredicate, ir::Predicate::kLt}}), 1u);
  EXPECT_EQ(eval_op(OpKind::kCmp, flag, {{u, 0xffffffff}, {u, 1}}, {{AttrName::kPredicate, ir::Predicate::kLt}}), 0u);
}

TEST(Eval, CastsToIntegers) {
  EXPECT_EQ(cast(DType::kF32, DType::kI32, f32(1e20f)), 0x7fffffffu);
  EXPECT_EQ(cast(DType::kF32, DType::kI32, f32(-1e20f)), 0x80000000u);
  EXPECT_EQ(cast(DType::kF32, DType::kI32, f32(NAN)), 0u);
  EXPECT_EQ(cast(DType::kF32, DType::kI32, f32(-1.9f)), 0xffffffffu);
  EXPECT_EQ(cast(DType::kF32, DType::kU32, f32(-1.9f)), 0u);
  EXPECT_EQ(cast(DType::kF32, DType::kU32, f32(INFINITY)), 0xffffffffu);
  EXPECT_EQ(cast(DType::kF32, DType::kU8, f32(300)), 44u);
  EXPECT_EQ(cast(DType::kF32, DType::kI8, f32(200)), 200u);  // through i32: -56
  EXPECT_EQ(cast(DType::kF32, DType::kI16, f32(1e20f)), 0xffffu);
  EXPECT_EQ(cast(DType::kF32, DType::kI64, f32(-INFINITY)), uint64_t{1} << 63);
  EXPECT_EQ(cast(DType::kF64, DType::kU64, std::bit_cast<uint64_t>(0x1p63)), uint64_t{1} << 63);
  EXPECT_EQ(cast(DType::kF32, DType::kI1, f32(NAN)), 1u);
  EXPECT_EQ(cast(DType::kF32, DType::kI1, f32(-0.0f)), 0u);
  EXPECT_EQ(cast(DType::kI32, DType::kI1, 256), 1u);
  EXPECT_EQ(cast(DType::kI1, DType::kI32, 1), 1u);
  EXPECT_EQ(cast(DType::kI8, DType::kU32, 0xff), 0xffffffffu);
  EXPECT_EQ(cast(DType::kU8, DType::kI32, 0xff), 0xffu);
  EXPECT_EQ(cast(DType::kI64, DType::kI16, 0x12345), 0x2345u);
}

TEST(Eval, CastsToFloats) {
  EXPECT_EQ(cast(DType::kI32, DType::kF32, 16777217), f32(16777216.0f));
  EXPECT_EQ(cast(DType::kU64, DType::kF32, ~uint64_t{0}), f32(0x1p64f));
  EXPECT_EQ(cast(DType::kI64, DType::kF32, ~uint64_t{0}), f32(-1.0f));
  EXPECT_EQ(cast(DType::kI32, DType::kF16, 65520), 0x7c00u);
  EXPECT_EQ(cast(DType::kF32, DType::kF8E4M3, f32(1000)), 0x7eu);
  EXPECT_EQ(cast(DType::kF16, DType::kBF16, 0x3c01), 0x3f80u);  // 1 + 2^-10 rounds to 1
  EXPECT_EQ(cast(DType::kBF16, DType::kF16, 0x7f00), 0x7c00u);
  EXPECT_EQ(convert(DType::kF32, DType::kF16, f32(1.999999f), Rounding::kTowardZero), 0x3fffu);
}

TEST(Eval, AddPtrExtendsByTheOffsetsSignedness) {
  const ir::Type p = ir::pointer_type(DType::kF32);
  EXPECT_EQ(eval_op(OpKind::kAddPtr, p, {{p, 1000}, {ir::scalar_type(DType::kI32), 0xffffffff}}), 996u);
  EXPECT_EQ(eval_op(OpKind::kAddPtr, p, {{p, 1000}, {ir::scalar_type(DType::kU32), 0xffffffff}}),
            1000 + 4 * 0xffffffffull);
}

// Every pure elementwise op has a case: this stops with an internal error for one that lacks it.
TEST(Eval, CoversEveryElementwiseOp) {
  for (int k = 0; k < ir::num_op_kinds(); ++k) {
    const OpKind kind = static_cast<OpKind>(k);
    if (!has_scalar_meaning(kind)) continue;
    const ir::Type flt = ir::scalar_type(DType::kF32), i32 = ir::scalar_type(DType::kI32),
                   flag = ir::scalar_type(DType::kI1);
    const ir::Type i64 = ir::scalar_type(DType::kI64), ptr = ir::pointer_type(DType::kF32);
    const bool ints = kind == OpKind::kAnd || kind == OpKind::kOr || kind == OpKind::kXor || kind == OpKind::kShl ||
                      kind == OpKind::kShr || kind == OpKind::kMulHi;
    const ir::Type type = ints ? i32 : flt;
    std::vector<ir::Type> in(static_cast<size_t>(ir::info(kind).min_operands), type);
    ir::Type out = type;
    if (kind == OpKind::kSelect) in[0] = flag;
    if (kind == OpKind::kCmp) out = flag;
    if (kind == OpKind::kBitcast || kind == OpKind::kCast) out = i32;
    if (kind == OpKind::kIntToPtr) in[0] = i64, out = ptr;
    if (kind == OpKind::kPtrToInt) in[0] = ptr, out = i64;
    if (kind == OpKind::kAddPtr) in = {ptr, i32}, out = ptr;
    ir::Module m("k");
    ir::Builder b(m);
    std::vector<ir::Value*> values;
    for (const ir::Type& t : in) {
      values.push_back(m.add_arg(m.body(), t));
      m.params.push_back({"", 1});
    }
    ir::Op* op = b.create(kind, values, std::span(&out, 1));
    if (kind == OpKind::kCmp) op->set(ir::Predicate::kLt);
    b.ret();
    const Status ok = ir::verify(m);
    EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : ok.error().message);
    const std::vector<uint64_t> ones(in.size(), out == flt ? f32(1) : 1);
    EXPECT_EQ(eval(*op, ones) & ~element_mask(out.element_bits()), 0u) << ir::print(*op);
  }
}

TEST(Eval, MathIsCorrectlyRoundedAlmostAlways) {
  const ir::Type d = ir::scalar_type(DType::kF64), f = ir::scalar_type(DType::kF32);
  EXPECT_EQ(eval_op(OpKind::kExp, d, {{d, std::bit_cast<uint64_t>(1.0)}}), std::bit_cast<uint64_t>(2.718281828459045));
  EXPECT_EQ(eval_op(OpKind::kErf, f, {{f, f32(0.5f)}}), f32(0.52049988f));
  EXPECT_EQ(eval_op(OpKind::kRsqrt, f, {{f, f32(4)}}), f32(0.5f));
  EXPECT_EQ(eval_op(OpKind::kRint, f, {{f, f32(2.5f)}}), f32(2.0f));
  EXPECT_EQ(eval_op(OpKind::kRint, f, {{f, f32(-3.5f)}}), f32(-4.0f));
  EXPECT_EQ(eval_op(OpKind::kPow, f, {{f, f32(2)}, {f, f32(0.5f)}}), f32(1.41421356f));
  EXPECT_EQ(eval_op(OpKind::kRem, f, {{f, f32(-5.5f)}, {f, f32(2)}}), f32(-1.5f));
}

}  // namespace
}  // namespace kiln::interp
