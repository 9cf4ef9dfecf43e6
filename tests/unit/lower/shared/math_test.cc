// Error in ULP of every math function on the host, against a wider libm: f32 over all floats (every 4099th by default,
// all of them with KILN_MATH_STRIDE=1), f64 at random. docs/math.md holds the same table; KILN_BLESS=1 rewrites it.
#include "compiler/lower/shared/math.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include "compiler/codegen/host.h"
#include "compiler/compile.h"
#include "tests/docs_table.h"

namespace kiln {
namespace {

using ir::OpKind;

// Largest error in ULP; of f32 over all floats (of pow: over the samples), of f64 over the samples.
struct Row {
  OpKind kind;
  double f32, f64;
  const char* method;
};
constexpr Row kTable[] = {
    {OpKind::kExp, 1.0, 1.0, "2ⁿ·eʳ with r = x - n·ln2; CUDA f32: ex2.approx(x·log2e), about 2 + |x|/2 ulp"},
    {OpKind::kExp2, 1.0, 1.1, "2ⁿ·e^(r·ln2); CUDA f32: ex2.approx.ftz, 2 ulp; 0 where that would be denormal"},
    {OpKind::kExpm1, 1.6, 2.0, "2ⁿ·(eʳ - 1) + (2ⁿ - 1)"},
    {OpKind::kLog, 1.0, 1.0, "e·ln2 + log(m) with √½ ≤ m < √2"},
    {OpKind::kLog2, 1.1, 1.0, "e + log(m)·log2e, the product in two parts"},
    {OpKind::kLog1p, 1.5, 1.5, "as log, with the rounding error of 1 + x carried along"},
    {OpKind::kSin, 1.7, 2.5, "x - n·π/2 in three fma up to |x| = 102400 (f64: 1.7e9), then exactly on 192 bits of 2/π"},
    {OpKind::kCos, 1.7, 2.5, "as sin"},
    {OpKind::kTanh, 6.0, 3.0, "f32: x·P(x²)/Q(x²); f64: t/(t + 2) with t = expm1(2x)"},
    {OpKind::kErf, 6.5, 3.0, "f32: x·P(x²)/Q(x²); f64: x + x·P(x²), from 1 on 1 - 2^-Q(x)"},
    {OpKind::kPow, 2.0, 2.0, "2^(y·log2 x), the logarithm in two parts"},
    {OpKind::kSqrt, 0.5, 0.5, "the hardware's; CUDA f32: sqrt.approx, 1 ulp"},
    {OpKind::kSqrtRn, 0.5, 0.5, "the hardware's, correctly rounded"},
    {OpKind::kRsqrt, 1.5, 1.5, "1/√x; CUDA f32: rsqrt.approx, 2 ulp"},
    {OpKind::kFloor, 0, 0, "exact"},
    {OpKind::kCeil, 0, 0, "exact"},
    {OpKind::kTrunc, 0, 0, "exact"},
    {OpKind::kRint, 0, 0, "exact"},
};

template <class Wide>
Wide reference(OpKind kind, Wide x, Wide y) {
  if (kind == OpKind::kExp) return std::exp(x);
  if (kind == OpKind::kExp2) return std::exp2(x);
  if (kind == OpKind::kExpm1) return std::expm1(x);
  if (kind == OpKind::kLog) return std::log(x);
  if (kind == OpKind::kLog2) return std::log2(x);
  if (kind == OpKind::kLog1p) return std::log1p(x);
  if (kind == OpKind::kSin) return std::sin(x);
  if (kind == OpKind::kCos) return std::cos(x);
  if (kind == OpKind::kTanh) return std::tanh(x);
  if (kind == OpKind::kErf) return std::erf(x);
  if (kind == OpKind::kPow) return std::pow(x, y);
  if (kind == OpKind::kSqrt || kind == OpKind::kSqrtRn) return std::sqrt(x);
  if (kind == OpKind::kRsqrt) return 1 / std::sqrt(x);
  if (kind == OpKind::kFloor) return std::floor(x);
  if (kind == OpKind::kCeil) return std::ceil(x);
  if (kind == OpKind::kTrunc) return std::trunc(x);
  return std::nearbyint(x);
}

// out[i] = op(x[i], y[i]) in vectors of `lanes`, as a host kernel: args = x, y, out; [first, last) counts vectors.
class CompiledMath {
 public:
  CompiledMath(OpKind kind, DType dtype, unsigned lanes) {
    llvm::LLVMContext context;
    llvm::Module module("math", context);
    llvm::IRBuilder<> b(context);
    llvm::Type *i64 = b.getInt64Ty(), *ptr = b.getPtrTy();
    auto* entry = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, i64, i64, ptr}, false),
                                         llvm::GlobalValue::ExternalLinkage, codegen::kHostEntryName, module);
    auto* start = llvm::BasicBlock::Create(context, "", entry);
    auto* loop = llvm::BasicBlock::Create(context, "", entry);
    auto* end = llvm::BasicBlock::Create(context, "", entry);
    llvm::Type* element = dtype == DType::kF32 ? b.getFloatTy() : b.getDoubleTy();
    llvm::Type* type = lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
    b.SetInsertPoint(start);
    llvm::Value* buffers[3];
    for (int i = 0; i < 3; ++i) buffers[i] = b.CreateLoad(ptr, b.CreateConstGEP1_64(i64, entry->getArg(0), i));
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    auto* i = b.CreatePHI(i64, 2);
    i->addIncoming(entry->getArg(2), start);
    auto at = [&](int k) { return b.CreateGEP(element, buffers[k], b.CreateMul(i, b.getInt64(lanes))); };
    llvm::Align align(static_cast<uint64_t>(size_of(dtype)));
    llvm::Value* operands[] = {b.CreateAlignedLoad(type, at(0), align), b.CreateAlignedLoad(type, at(1), align)};
    llvm::Value* result =
        lower::emit_math(b, kind, dtype, std::span(operands, kind == OpKind::kPow ? 2 : 1), *target::find("host"));
    b.CreateAlignedStore(result, at(2), align);
    auto* next = b.CreateAdd(i, b.getInt64(1));
    i->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpSLT(next, entry->getArg(3)), loop, end);
    b.SetInsertPoint(end);
    b.CreateRetVoid();
    EXPECT_FALSE(llvm::verifyModule(module, &llvm::errs()));
    auto object = codegen::emit_object(module);
    EXPECT_TRUE(object.ok());
    CompiledKernel kernel;
    kernel.name = "math";
    kernel.object = object->object;
    auto code = load_host_object(kernel);
    EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().message);
    code_ = *code;
    lanes_ = lanes;
  }

  void run(const void* x, const void* y, void* out, size_t n) const {
    uint64_t args[] = {reinterpret_cast<uint64_t>(x), reinterpret_cast<uint64_t>(y), reinterpret_cast<uint64_t>(out)};
    code_->entry()(args, nullptr, 0, static_cast<int64_t>(n / lanes_), nullptr);
  }

 private:
  std::shared_ptr<HostCode> code_;
  size_t lanes_ = 1;
};

// |got - exact| in units of the last place of T at `exact`; infinite when one is NaN or infinite and the other is not
// that.
template <class T, class Wide>
double ulp_error(T got, Wide exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (got == rounded) {
    if (got == 0 && exact == 0 && std::signbit(got) != std::signbit(exact)) return INFINITY;
    if (std::isinf(got)) return 0;
  } else if (std::isinf(rounded) || std::isinf(got)) {
    // Overflow is decided by the value, not by the rounding: one ulp of the largest number.
    constexpr T largest = std::numeric_limits<T>::max();
    const Wide top = static_cast<Wide>(largest), step = top - static_cast<Wide>(std::nextafter(largest, T(0)));
    const Wide a = std::isinf(got) ? std::copysign(top + step, static_cast<Wide>(got)) : static_cast<Wide>(got);
    if (std::isinf(exact)) return INFINITY;
    return static_cast<double>(std::abs(a - exact) / step);
  }
  const Wide magnitude = std::abs(exact);
  int exponent = magnitude == 0 ? std::numeric_limits<T>::min_exponent : std::ilogb(magnitude) + 1;
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::abs(static_cast<Wide>(got) - exact) /
                             std::ldexp(Wide(1), exponent - std::numeric_limits<T>::digits));
}

template <class T>
struct Worst {
  double error = 0;
  T x{}, y{}, got{};
};

template <class T, class Wide>
void measure(const CompiledMath& code, OpKind kind, const std::vector<T>& x, const std::vector<T>& y, Worst<T>* worst) {
  std::vector<T> out(x.size(), T(42));
  code.run(x.data(), y.data(), out.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error<T, Wide>(out[i], reference<Wide>(kind, x[i], y[i]));
    if (error > worst->error) *worst = {error, x[i], y[i], out[i]};
  }
}

class Math : public ::testing::TestWithParam<Row> {};

TEST_P(Math, F32OverAllFloats) {
  const Row row = GetParam();
  const char* given = std::getenv("KILN_MATH_STRIDE");
  CompiledMath code(row.kind, DType::kF32, 8);
  constexpr size_t kBatch = 1 << 16;
  std::vector<float> x(kBatch), y(kBatch);
  std::mt19937_64 random(std::random_device{}());
  Worst<float> worst;
  const uint64_t stride = given ? std::max(1, std::atoi(given)) : 4099;
  for (uint64_t bits = 0; bits < 1ull << 32;) {
    for (size_t i = 0; i < kBatch; ++i, bits += stride) {
      const auto low = static_cast<uint32_t>(bits);
      std::memcpy(&x[i], &low, 4);
      // pow: exponents for which the result is mostly finite, and some that are integers or anything at all.
      const auto r = random();
      const float scale = std::ldexp(130.0f, -static_cast<int>(r >> 60));
      y[i] = (static_cast<float>(r & 0xffffff) / 8388608.0f - 1.0f) * scale /
             std::max(1.0f, std::abs(std::log2(std::abs(x[i]))));
      if (r >> 32 & 1) y[i] = std::ldexp(y[i], 3);
      if ((r >> 33 & 7) == 0) y[i] = std::round(y[i] * 4) / 2;
      if ((r >> 36 & 63) == 0) std::memcpy(&y[i], &r, 4);
    }
    measure<float, double>(code, row.kind, x, y, &worst);
  }
  EXPECT_LE(worst.error, row.f32) << "x = " << ::testing::PrintToString(worst.x) << " y = " << worst.y << " got "
                                  << worst.got;
  std::printf("  f32 %-8s %.3f ulp at %a (%a)\n", std::string(ir::info(row.kind).mnemonic).c_str(), worst.error,
              worst.x, worst.y);
}

TEST_P(Math, F64AtRandom) {
  const Row row = GetParam();
  CompiledMath code(row.kind, DType::kF64, 4);
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  constexpr size_t kBatch = 1 << 16;
  std::vector<double> x(kBatch), y(kBatch);
  Worst<double> worst;
  for (int round = 0; round < 8; ++round) {
    for (size_t i = 0; i < kBatch; ++i) {
      const uint64_t r = random();
      std::memcpy(&x[i], &r, 8);
      const uint64_t s = random();
      const double unit = static_cast<double>(s >> 11) * 0x1p-53;
      // A third over all floats, a third of ordinary size, a third near one.
      if (round % 3 == 1) x[i] = (unit * 2 - 1) * std::ldexp(1.0, static_cast<int>(r % 12) - 2);
      if (round % 3 == 2) x[i] = 1 + (unit - 0.5) * std::ldexp(1.0, -static_cast<int>(r % 30));
      const uint64_t t = random();
      const double scale = std::ldexp(1100.0, -static_cast<int>(t >> 60));
      y[i] = (static_cast<double>(t & ((1ull << 53) - 1)) * 0x1p-52 - 1) * scale /
             std::max(1.0, std::abs(std::log2(std::abs(x[i]))));
      if ((t >> 54 & 7) == 0) y[i] = std::round(y[i] * 4) / 2;
      if ((t >> 57 & 63) == 0) std::memcpy(&y[i], &s, 8);
    }
    measure<double, long double>(code, row.kind, x, y, &worst);
  }
  EXPECT_LE(worst.error, row.f64) << "seed " << seed << " x = " << worst.x << " y = " << worst.y << " got "
                                  << worst.got;
  std::printf("  f64 %-8s %.3f ulp at %a (%a)\n", std::string(ir::info(row.kind).mnemonic).c_str(), worst.error,
              worst.x, worst.y);
}

template <class T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> v = {0,
                      1,
                      2,
                      3,
                      T(0.5),
                      T(1.5),
                      T(2.5),
                      T(1e-3),
                      T(100.25),
                      88,
                      89,
                      104,
                      127,
                      128,
                      150,
                      709,
                      746,
                      1024,
                      T(9007199254740993.0),
                      T(3.9299999),
                      T(9.02),
                      T(5.93),
                      T(20),
                      L::min(),
                      L::denorm_min(),
                      L::max(),
                      L::infinity(),
                      L::epsilon(),
                      L::quiet_NaN(),
                      T(102400),
                      T(102943.7),
                      T(1.7e9),
                      T(1e22),
                      std::nextafter(T(1), T(0)),
                      std::nextafter(T(1), T(2)),
                      T(1.5707963267948966),
                      T(3.141592653589793),
                      T(0x1.921fb54442d18p+1)};
  for (size_t i = 0, n = v.size(); i < n; ++i) v.push_back(-v[i]);
  while (v.size() % 8) v.push_back(T(0.25));
  return v;
}

template <class T, class Wide>
void check_specials(const Row& row, DType dtype, double bound) {
  const std::vector<T> values = special_values<T>();
  for (unsigned lanes : {1u, 8u}) {
    CompiledMath code(row.kind, dtype, lanes);
    Worst<T> worst;
    for (T second : row.kind == OpKind::kPow ? values : std::vector<T>{0})
      measure<T, Wide>(code, row.kind, values, std::vector<T>(values.size(), second), &worst);
    EXPECT_LE(worst.error, bound) << lanes << " lanes, x = " << worst.x << " y = " << worst.y << " got " << worst.got;
  }
}

TEST_P(Math, SpecialValues) {
  const Row row = GetParam();
  check_specials<float, double>(row, DType::kF32, row.f32);
  check_specials<double, long double>(row, DType::kF64, row.f64);
}

// tanh and erf end at exactly 1 and never pass it; exp of 0 is 1.
TEST(MathShape, SaturatesAtOne) {
  for (OpKind kind : {OpKind::kTanh, OpKind::kErf}) {
    CompiledMath code(kind, DType::kF32, 8);
    std::vector<float> x, y;
    for (int i = 0; i < 10 << 14; ++i) x.push_back(2 + static_cast<float>(i) * 0x1p-14f);
    x.resize(x.size() / 8 * 8);
    std::vector<float> out(x.size());
    code.run(x.data(), x.data(), out.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_LE(out[i], 1.0f) << x[i];
    EXPECT_EQ(out.back(), 1.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Math, ::testing::ValuesIn(kTable),
                         [](const auto& p) { return std::string(ir::info(p.param.kind).mnemonic); });

std::string table_text() {
  std::ostringstream out;
  out << "| function | f32 | f64 | how |\n|---|--:|--:|---|\n";
  for (const Row& row : kTable)
    out << "| " << ir::info(row.kind).mnemonic << " | " << row.f32 << " | " << row.f64 << " | " << row.method << " |\n";
  return out.str();
}

TEST(MathDocs, TableIsCurrent) { kiln::testing::check_docs_table("math.md", "table", table_text()); }

TEST(MathDocs, EveryMathOpHasARow) {
  for (int i = 0; i < ir::num_op_kinds(); ++i) {
    const auto kind = static_cast<OpKind>(i);
    const bool listed = std::any_of(std::begin(kTable), std::end(kTable), [&](const Row& r) { return r.kind == kind; });
    EXPECT_EQ(listed, lower::is_math_op(kind)) << ir::info(kind).mnemonic;
  }
}

}  // namespace
}  // namespace kiln
