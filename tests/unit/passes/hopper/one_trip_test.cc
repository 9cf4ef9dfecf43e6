// Products in no loop, whose operands the warps load themselves, on the machine that the distributed interpreter plays,
// against the tile interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/passes/hopper/product_case.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::Module;
using ir::OpKind;

constexpr char kOnce[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    is_row = m[:, None] < M
    is_column = n[None, :] < N
    x = tl.load(a + m[:, None] * K + k[None, :], mask=is_row, other=0)
    y = {}
    z = {}
    tl.store(c + m[:, None] * N + n[None, :], z, mask=is_row & is_column & (m[:, None] != n[None, :]))
)";
constexpr char kAcross[] = "tl.load(b + k[:, None] * N + n[None, :], mask=is_column, other=0)",
               kAlong[] = "tl.load(a + k[:, None] + n[None, :] * K, mask=is_column, other=0)",
               kPlain[] = "tl.dot(x, y)", kChain[] = "tl.dot(tl.dot(x, y).to(x.dtype), tl.trans(y).to(x.dtype))";

struct Once {
  const char *name, *y, *z;
  DType dtype;
  int64_t m, n, k;
  int warps, wgmma;
};
constexpr Once kCases[] = {
    {"halves", kAcross, kPlain, DType::kF16, 128, 64, 64, 4, 1},
    {"two groups", kAcross, kPlain, DType::kF16, 128, 64, 128, 8, 1},
    {"along k", kAlong, kPlain, DType::kBF16, 64, 64, 64, 4, 1},
    {"few rows", kAcross, kPlain, DType::kF16, 32, 64, 64, 4, 0},
    {"few of all", kAcross, kPlain, DType::kF16, 32, 32, 32, 4, 0},
    {"floats", kAlong, kPlain, DType::kF32, 64, 64, 64, 4, 1},
    {"a chain", kAcross, kChain, DType::kF16, 64, 64, 64, 4, 2},
};

TEST(OneTrip, ComputesTheSame) {
  for (const Once& row : kCases) {
    SCOPED_TRACE(row.name);
    ProductCase c;
    c.dtype = row.dtype, c.block_m = row.m, c.block_n = row.n, c.block_k = row.k, c.warps = row.warps;
    std::unique_ptr<Module> tile;
    const auto m = through_pipeline(lower(c, fmt::format(kOnce, row.y, row.z)), "sm_90a", &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kTmaLoad), 0) << ir::print(*m);
    EXPECT_EQ(count(*m, OpKind::kWarpSpecialize), 0) << ir::print(*m);
    EXPECT_EQ(count(*m, OpKind::kWgmma), row.wgmma) << ir::print(*m);
    for (const uint64_t seed : {1, 2}) {
      std::mt19937 rng(7);
      std::vector<double> expected, got;
      ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, seed, &expected, &got));
      double largest = 0;
      for (const double v : expected)
        if (!std::isnan(v)) largest = std::max(largest, std::abs(v));
      for (size_t e = 0; e < got.size(); ++e) {
        ASSERT_EQ(std::isnan(got[e]), std::isnan(expected[e])) << "element " << e;
        if (std::isnan(got[e])) continue;
        ASSERT_NEAR(got[e], expected[e], largest * 2e-3) << "element " << e;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::passes
