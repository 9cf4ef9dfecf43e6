// The asynchronous road of Hopper on a GPU: a hand-written GEMM of the distributed stage (TMA, mbarriers, wgmma, warp
// specialisation) against float64, on sizes that no tile divides. Rows are padded with garbage that must not be read,
// and the result's padding must not be written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "compiler/compile.h"
#include "kiln/tensor.h"
#include "runtime/jit/jit.h"
#include "tests/gpu/gpu_test_util.h"
#include "tests/unit/lower/hopper_gemm.h"
#include "tests/unit/lower/remarks.h"

namespace kiln::runtime {
namespace {

using testing_support::HopperGemm;
using Matrix = std::vector<double>;

constexpr double kPoison = 77;

int64_t padded(int64_t n, DType t) {
  const int64_t unit = 16 / size_of(t);
  return (n + unit) / unit * unit;  // always some padding, or a whole unit of it
}

/// Bound of a sum's error over the sum of its products' magnitudes: each instruction cuts its partial sum to the
/// accumulator's precision (fp8 products: 14 bits), and tf32 cuts or rounds both operands to 11 bits.
double error_per_magnitude(const HopperGemm& g, int64_t k) {
  if (is_int(g.operand)) return 0;
  const double instructions = static_cast<double>(k * size_of(g.operand)) / 32 + 2;
  const double cut = g.accumulator == DType::kF16 ? 0x1p-10 : is_fp8(g.operand) ? 0x1p-13 : 0x1p-22;
  return instructions * cut + (g.operand == DType::kF32 ? 0x1p-9 : 0);
}

/// Relative error of the result's own rounding, with a little for the sum's error in it.
double rounding(DType t) { return t == DType::kF16 ? 0x1.02p-11 : t == DType::kBF16 ? 0x1.02p-8 : 0; }

struct Problem {
  int64_t m, n, k;
};

void check(const HopperGemm& g, const Problem& p, uint64_t seed) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "needs a GPU of target sm_90a, not " << device.info().target;
  SCOPED_TRACE(fmt::format("{}x{}x{} of {} in {}, tile {}x{}x{}, seed {}", p.m, p.n, p.k, name(g.operand),
                           name(g.accumulator), g.m, g.n, g.k, seed));
  auto module = ir::parse_module(SourceText::make("gemm.kir", testing_support::hopper_gemm_ir(g)));
  ASSERT_TRUE(module.ok()) << render(module.error());
  CompileOptions options;
  options.target = "sm_90a";
  auto code = compile_ir(std::move(*module), options);
  ASSERT_TRUE(code.ok()) << render(code.error());
  testing_support::expect_no_remarks(code->warnings);
  auto kernel = device.impl()->backend().load(image_of(*code));
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_EQ((*kernel)->local_bytes(), 0);

  const int64_t lda = padded(g.a_transposed ? p.m : p.k, g.operand),
                ldb = padded(g.b_transposed ? p.k : p.n, g.operand), ldc = padded(p.n, g.result);
  auto operand = [&](int64_t rows, int64_t columns, uint64_t s) {
    const std::vector<int64_t> shape{rows, columns};
    if (is_int(g.operand)) return randint(device, g.operand, shape, -128, 128, s);
    auto wide = randn(device, DType::kF32, shape, s);
    return wide.ok() ? wide->to(g.operand) : wide;
  };
  auto a = operand(g.a_transposed ? p.k : p.m, lda, seed), b = operand(g.b_transposed ? p.n : p.k, ldb, seed + 1);
  ASSERT_TRUE(a.ok()) << render(a.error());
  ASSERT_TRUE(b.ok()) << render(b.error());
  auto c = Tensor::full(device, g.result, std::vector<int64_t>{p.m, ldc}, kPoison);
  ASSERT_TRUE(c.ok()) << render(c.error());
  auto number = [](int64_t v) { return static_cast<uint64_t>(v); };
  const uint64_t slots[] = {a->address(), b->address(), c->address(), number(p.m), number(p.n),
                            number(p.k),  number(lda),  number(ldb),  number(ldc)};
  Backend& backend = device.impl()->backend();
  // Fewer programs than tiles: the ring goes on across tiles.
  for (int repeat = 0; repeat < 2; ++repeat)
    ASSERT_OK(backend.launch(**kernel, {3, 1, 1}, slots, backend.default_stream()));
  ASSERT_OK(device.synchronize());

  const Matrix av = *a->to_doubles(), bv = *b->to_doubles(), cv = *c->to_doubles();
  auto at = [](const Matrix& m, int64_t i) { return m[static_cast<size_t>(i)]; };
  int wrong = 0;
  for (int64_t row = 0; row < p.m; ++row)
    for (int64_t column = 0; column < ldc; ++column) {
      const double got = at(cv, row * ldc + column);
      if (column >= p.n) {
        if (got != kPoison && ++wrong < 5) ADD_FAILURE() << "padding written at " << row << ", " << column;
        continue;
      }
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < p.k; ++i) {
        const double x = at(av, g.a_transposed ? i * lda + row : row * lda + i) *
                         at(bv, g.b_transposed ? column * ldb + i : i * ldb + column);
        sum += x;
        magnitude += std::abs(x);
      }
      const double bound = magnitude * error_per_magnitude(g, p.k) + std::abs(sum) * rounding(g.result) + 1e-7;
      if (!(std::abs(got - sum) <= bound) && ++wrong < 5)
        ADD_FAILURE() << "at " << row << ", " << column << ": " << got << " for " << sum << ", bound " << bound;
    }
  EXPECT_EQ(wrong, 0);
}

void check_sizes(const HopperGemm& g) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  // Rows of the result are whole units of 16 bytes: the copy out writes no less.
  for (const Problem& p : {Problem{128, 128, 64}, Problem{1, 8, 1}, Problem{257, 208, 331}, Problem{65, 520, 1000},
                           Problem{300, 136, 0}}) {
    check(g, p, seed);
    if (testing::Test::IsSkipped() || testing::Test::HasFailure()) return;
  }
}

TEST(GpuHopper, F16) { check_sizes({}); }
TEST(GpuHopper, F16RowMajorB) { check_sizes({.n = 256, .b_transposed = false}); }
TEST(GpuHopper, Bf16BothTransposed) {
  check_sizes({.operand = DType::kBF16, .result = DType::kBF16, .a_transposed = true, .b_transposed = false});
}
TEST(GpuHopper, F16Accumulators) { check_sizes({.accumulator = DType::kF16}); }
TEST(GpuHopper, Tf32) { check_sizes({.k = 32, .operand = DType::kF32, .result = DType::kF32}); }
TEST(GpuHopper, Fp8) { check_sizes({.k = 128, .operand = DType::kF8E4M3}); }
TEST(GpuHopper, Int8) {
  check_sizes({.k = 128, .operand = DType::kI8, .result = DType::kI32, .accumulator = DType::kI32});
}
TEST(GpuHopper, OperandInRegisters) { check_sizes({.a_in_registers = true}); }
TEST(GpuHopper, OneGroupOfWarps) { check_sizes({.m = 64, .n = 32, .num_warps = 4}); }
TEST(GpuHopper, RowsInSlices) { check_sizes({.m = 256, .n = 64}); }
TEST(GpuHopper, ManyWarpsWithRegistersMoved) { check_sizes({.m = 256, .num_warps = 16}); }

}  // namespace
}  // namespace kiln::runtime
