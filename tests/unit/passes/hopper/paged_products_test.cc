// Products of rows that are found through an index, such as the pages of a cache, through the whole pipeline for
// Hopper, on the machine that the distributed interpreter plays, against the tile interpreter: the indices come by a
// ring of their own, ahead of the rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "compiler/passes/util/rewrite.h"
#include "tests/unit/passes/hopper/product_case.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::Module;
using ir::Op;
using ir::OpKind;

/// Scores of rows that a page table names, their sums, and by them those of the same rows; what the loop counts is read
/// behind it.
constexpr char kPaged[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    d = tl.arange(0, 32)
    x = tl.load(a + m[:, None] * K + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=0.0)
    w = tl.load(a + m[:, None] * K + d[None, :], mask=m[:, None] < M, other=0.0)
    zero = tl.load(index) // 4096
    acc = tl.zeros((BM, BN), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    r = tl.arange(0, BK)
    for t in range({}, L // BK):
        page = {}
        {}
        row = (page + r % 4) % M
        y = tl.load(a + row[:, None] * K + n[None, :], mask=n[None, :] < N, other=0.0)
        s = tl.dot(x, tl.trans(y))
        z = tl.load(a + row[None, :] * K + d[:, None])
        s = tl.dot(v, z, s) * 0.125
        acc = tl.dot(s.to(a.dtype.element_ty), y, acc * 0.5)
        total += tl.sum(s, 1)
        r += BK
    row = tl.load(index + r // 4, mask=r < L, other=0) % M
    y = tl.load(a + row[:, None] * K + n[None, :], mask=(r[:, None] < L) & (n[None, :] < N), other=0.0)
    s = tl.dot(x, tl.trans(y)) * 0.125
    acc = tl.dot(s.to(a.dtype.element_ty), y, acc) + total[:, None]
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
)";
constexpr const char* kPages[] = {
    "tl.load(index + r // 4)",
    "tl.load(index + r // 4, mask=r < L, other=0) * 2 // 2",
    "tl.load(index + t * BK + tl.arange(0, BK))",
    "tl.load(index + r // 4) + tl.load(index + r // 2)",  // two indices
    "tl.load(index + tl.load(index + t) + r // 4)",       // the page table's own place
};

/// A block that the loop asks for by TMA, or none.
constexpr const char* kBlocks[] = {
    "v = w",
    "v = tl.make_tensor_descriptor(a + zero, [M + zero, K], [K, 1], [BM, 32]).load([tl.program_id(0) * BM, t % 2 * "
    "32])",
};

int in_loop(Module& m, OpKind kind) {
  int n = 0;
  ir::walk(m.body(),
           [&](Op* op) { n += op->kind == kind && op->parent->parent && op->parent->parent->kind == OpKind::kFor; });
  return n;
}

void expect_match(const ProductCase& c, const Module& tile, const Module& m, std::mt19937& rng, uint32_t seed) {
  std::vector<double> expected, got;
  ASSERT_NO_FATAL_FAILURE(run_both(c, tile, m, rng, seed, &expected, &got));
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  for (size_t e = 0; e < got.size(); ++e)
    ASSERT_NEAR(got[e], expected[e], largest * (c.dtype == DType::kF16 ? 2e-3 : 1.6e-2)) << "element " << e;
}

/// Whether a loop reads indices from a ring.
bool has_index_ring(Module& m) {
  bool found = false;
  ir::walk(m.body(), [&](Op* op) {
    found |= op->kind == OpKind::kSharedLoad && op->result()->type.shape.rank == 1 && is_in_loop(op->parent);
  });
  return found;
}

TEST(PagedProducts, MatchTheTileInterpreter) {
  const uint32_t first = std::random_device{}();
  int rings = 0;
  for (uint32_t i = 0; i < 40; ++i) {
    std::mt19937 rng(first + i);
    auto pick = [&](size_t n) { return static_cast<int>(rng() % n); };
    ProductCase c;
    c.dtype = pick(2) ? DType::kF16 : DType::kBF16;
    c.depth = kDepth - pick(120);
    c.warps = 4 << pick(2), c.stages = 1 + pick(4);
    c.block_n = 32 << pick(3), c.block_k = 16 << pick(3);
    const std::string source = fmt::format(kPaged, pick(3), kPages[pick(std::size(kPages))], kBlocks[pick(2)]);
    SCOPED_TRACE(fmt::format("seed {}: {} x {}, depth {}, {} warps, {} stages\n{}", first + i, c.block_n, c.block_k,
                             c.depth, c.warps, c.stages, source));
    std::unique_ptr<Module> tile;
    const auto m = through_pipeline(lower(c, source), "sm_90a", &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kDot), 0) << ir::print(*m);
    if (c.stages > 1) {
      EXPECT_GE(in_loop(*m, OpKind::kAsyncCopy), 2) << ir::print(*m);
    }
    rings += has_index_ring(*m);
    ASSERT_NO_FATAL_FAILURE(expect_match(c, *tile, *m, rng, first + i));
  }
  EXPECT_GT(rings, 0);
}

/// Without wgmma and rings, keys that are values too go through shared memory once in each iteration.
TEST(PagedProducts, WhatTwoProductsReadIsStoredOnce) {
  const uint32_t first = std::random_device{}();
  for (uint32_t i = 0; i < 8; ++i) {
    std::mt19937 rng(first + i);
    ProductCase c;
    c.dtype = i % 2 ? DType::kF16 : DType::kBF16;
    c.block_m = 32, c.block_n = 64, c.block_k = 32 << (i / 4), c.warps = 4 << (i / 2 % 2), c.stages = 1;
    const std::string source = fmt::format(kPaged, 0, kPages[i % std::size(kPages)], kBlocks[0]);
    SCOPED_TRACE(fmt::format("seed {}: {} warps\n{}", first + i, c.warps, source));
    std::unique_ptr<Module> tile;
    const auto m = through_pipeline(lower(c, source), "sm_90a", &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(in_loop(*m, OpKind::kSharedStore), 1) << ir::print(*m);
    ASSERT_NO_FATAL_FAILURE(expect_match(c, *tile, *m, rng, first + i));
  }
}

/// Queries of 512 columns stay in shared memory beside two slots of as many keys: a program has its SM alone. What is
/// left over behind the loop takes the place of the slots.
TEST(PagedProducts, OneProgramFillsTheSM) {
  constexpr char kWide[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = BN + tl.arange(0, 64)
    x = tl.load(a + m[:, None] * K + n[None, :])
    w = tl.load(a + m[:, None] * K + d[None, :])
    acc = tl.zeros((BM, BN), tl.float32)
    r = tl.arange(0, BK)
    for t in range(0, L // BK):
        row = tl.load(index + r // 64) * 64 + r % 64
        y = tl.load(b + row[:, None] * K + n[None, :])
        s = tl.dot(x, tl.trans(y))
        z = tl.load(b + row[None, :] * K + d[:, None])
        s = tl.dot(w, z, s)
        acc = tl.dot(s.to(a.dtype.element_ty), y, acc)
        r += BK
    if L % BK:
        row = tl.load(index + r // 64, mask=r < L, other=0) * 64 + r % 64
        y = tl.load(b + row[:, None] * K + n[None, :], mask=r[:, None] < L, other=0.0)
        s = tl.dot(x, tl.trans(y))
        z = tl.load(b + row[None, :] * K + d[:, None], mask=r[None, :] < L, other=0.0)
        s = tl.dot(w, z, s)
        acc = tl.dot(s.to(a.dtype.element_ty), y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)
)";
  ProductCase c;
  c.block_m = 64, c.block_n = 512, c.block_k = 64, c.warps = 8;
  const auto m = through_pipeline(lower(c, kWide), "sm_90a");
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kDot), 0) << ir::print(*m);
  EXPECT_EQ(in_loop(*m, OpKind::kAsyncCopy), 3) << ir::print(*m);  // keys in two parts, and their rows' numbers
  EXPECT_EQ(in_loop(*m, OpKind::kLoad), 0) << ir::print(*m);
}

}  // namespace
}  // namespace kiln::passes
