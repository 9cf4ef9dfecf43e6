// Products of what is masked, gathered, converted or computed, through the whole pipeline for Hopper, on the machine
// that the distributed interpreter plays, against the tile interpreter. Kernels are drawn at random from the forms in
// which programs bring their operands; each product must become a wgmma.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "compiler/analysis/shared_memory.h"
#include "compiler/interp/machine/distributed.h"
#include "tests/unit/passes/hopper/product_case.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::AttrName;
using ir::Module;
using ir::Op;
using ir::OpKind;

/// How a tile is brought: the statements in the loop's body that make `NAME` of the type of the product.
struct Form {
  const char* name;
  const char* text;
  bool quantized = false;  // the tensor has whole numbers of 8 bits
};

constexpr Form kFirst[] = {
    {"masked", "x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)"},
    {"gathered", "x = tl.load(a + at[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)"},
    {"turned",
     "x = tl.trans(tl.load(a + k[:, None] * M + m[None, :], mask=(k[:, None] < L) & (m[None, :] < M), "
     "other=0.0))"},
    {"scaled",
     "x = (tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)"
     ".to(tl.float32) * 0.5).to(a.dtype.element_ty)"},
    {"filled", "x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=1.0)"},
    {"converted",
     "x = tl.load(q + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0)"
     ".to(a.dtype.element_ty)"},
    {"described",
     "x = tl.make_tensor_descriptor(a + zero, [M + zero, L], [K, 1], [BM, BK])"
     ".load([tl.program_id(0) * BM, t * BK])"},
};
constexpr Form kSecond[] = {
    {"masked", "y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)"},
    {"gathered",
     "y = tl.load(b + tl.load(index + k)[:, None] * N + n[None, :], "
     "mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)"},
    {"turned",
     "y = tl.trans(tl.load(b + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < L), "
     "other=0.0))"},
    {"scaled",
     "y = (tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)"
     ".to(tl.float32) * scale[None, :]).to(a.dtype.element_ty)"},
    {"converted",
     "y = tl.load(q + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0)"
     ".to(a.dtype.element_ty)"},
    {"weighted",
     "y = (tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)"
     ".to(tl.float32) * tl.load(q + k, mask=k < L, other=0).to(tl.float32)[:, None]).to(a.dtype.element_ty)"},
    {"decayed",
     "y = (tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)"
     ".to(tl.float32) * (tl.load(index + k, mask=k < L, other=0).to(tl.float32) * 0.02)[:, None])"
     ".to(a.dtype.element_ty)"},
    {"constant", "y = tl.full((BK, BN), 0.25, a.dtype.element_ty)"},
    {"described",
     "y = tl.make_tensor_descriptor(b, [L + zero, N], [N, 1], [BK, BN]).load([t * BK, tl.program_id(1) * BN])"},
    {"described turned",
     "y = tl.make_tensor_descriptor(b, [N, L], [K + zero, 1], [BN, BK]).load([tl.program_id(1) * BN, t * BK]).T"},
};
constexpr const char kStoredSum[] =
    "acc = tl.dot(x, y, acc)\n        tl.store(c + (m[:, None] * N + n[None, :]), acc, "
    "mask=(m[:, None] < M) & (n[None, :] < N))";
/// By scales of the iteration, whose layouts are converted while the product runs.
constexpr const char kScaledSum[] =
    "acc += tl.dot(x, y) * tl.load(q + m + t, mask=m + t < M, other=1).to(tl.float32)[:, None] * "
    "(tl.load(q + n + t, mask=n + t < N, other=1).to(tl.float32) * 0.0625)[None, :]";
constexpr const char* kSums[] = {
    "acc += tl.dot(x, y)",
    "acc = acc * 0.5 + tl.dot(x, y)",
    "if t % 2 == 0:\n            acc = tl.dot(x, y, acc)",
    "for r in range(2):\n            acc = tl.dot(x, y, acc)",
    kStoredSum,
    kScaledSum,
};
constexpr const char* kEnds[] = {
    "",
    "acc = tl.dot(acc.to(a.dtype.element_ty), tl.full((BN, BN), 0.125, a.dtype.element_ty))",
    "acc = tl.dot(tl.full((BM, BM), 0.125, a.dtype.element_ty), acc.to(a.dtype.element_ty))",
};

constexpr char kKernel[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    at = tl.load(index + m, mask=m < M, other=0)
    scale = tl.load(q + n, mask=n < N, other=0).to(tl.float32)
    zero = tl.load(index) // 4096
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        {}
        {}
        {}
    {}
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
)";

/// Two products of one operand in a loop, and a third of their results behind it.
constexpr char kTwoKernel[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    at = tl.load(index + m, mask=m < M, other=0)
    scale = tl.load(q + n, mask=n < N, other=0).to(tl.float32)
    zero = tl.load(index) // 4096
    acc = tl.zeros((BM, BN), tl.float32)
    s = tl.zeros((BM, BM), tl.float32)
    for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        {}
        {}
        w = tl.load(a + k[:, None] + m[None, :] * K, mask=(k[:, None] < L) & (m[None, :] < M), other=0.0)
        acc += tl.dot(x, y)
        s += tl.dot(x, w)
    g = tl.load(q + m, mask=m < M, other=0).to(tl.float32)
    acc = acc * tl.exp2(g)[:, None]
    s = tl.where((m[:, None] >= m[None, :]) & (m[:, None] < M), s * tl.exp2(g[:, None] - g[None, :]), 0)
    v = tl.load(b + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=0.0)
    acc = acc * 0.5 + tl.dot(s.to(v.dtype), v) * 0.25
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
)";

/// Loops in a row, in a loop around them: their rings and buffers take turns in shared memory.
constexpr char kLoopsKernel[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    at = tl.load(index + m, mask=m < M, other=0)
    scale = tl.load(q + n, mask=n < N, other=0).to(tl.float32)
    zero = tl.load(index) // 4096
    acc = tl.zeros((BM, BN), tl.float32)
    for r in range(2):
        for t in range(0, tl.cdiv(L, BK)):
            k = t * BK + tl.arange(0, BK)
            {}
            {}
            acc = tl.dot(x, y, acc)
        acc = acc * 0.5
        for t in range(r, tl.cdiv(L, BK)):
            k = t * BK + tl.arange(0, BK)
            x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
            {}
            acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
)";

/// Blocks: the first of them is read by both loops, and what the loops load themselves is of one type.
constexpr char kBlocks[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    first = rows.load([m, 0])
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, L // 40):
        x = rows.load([m, t * BK])
        y = columns.load([t * BK, n])
        acc = tl.dot(x, y, acc)
        acc = tl.dot(first, y, acc)
    acc = acc * 0.5
    for t in range(L // 40, tl.cdiv(L, BK)):
        x = rows.load([m, t * BK])
        y = columns.load([t * BK, n])
        acc = tl.dot(x, y, acc)
        acc = tl.dot(first, y, acc)
    i = m + tl.arange(0, BM)
    j = n + tl.arange(0, BN)
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))
)";

struct Case : ProductCase {
  const char* whole = nullptr;  // the source, when it is not made of forms
  enum { kOne, kTwo, kLoops } kernel = kOne;
  int first = 0, second = 0, sum = 0, end = 0;

  std::string source() const {
    if (whole) return whole;
    if (kernel == kTwo) return fmt::format(kTwoKernel, kFirst[first].text, kSecond[second].text);
    if (kernel == kLoops)
      return fmt::format(kLoopsKernel, kFirst[first].text, kSecond[second].text, kSecond[(second + 1) % 5].text);
    return fmt::format(kKernel, kFirst[first].text, kSecond[second].text, kSums[sum], kEnds[end]);
  }
  std::string describe() const {
    return fmt::format("{}{} x {}, sum {}, end {}, depth {}, {} tile {}x{}x{}, {} warps, {} stages",
                       kernel == kTwo     ? "two of "
                       : kernel == kLoops ? "loops of "
                                          : "",
                       kFirst[first].name, kSecond[second].name, sum, end, depth, kiln::name(dtype), block_m, block_n,
                       block_k, warps, stages);
  }
};

std::unique_ptr<Module> distributed(const Case& c, std::unique_ptr<Module>* tile = nullptr) {
  return through_pipeline(lower(c, c.source()), "sm_90a", tile);
}

TEST(StagedProducts, MatchTheTileInterpreter) {
  const uint32_t first = std::random_device{}();
  for (uint32_t i = 0; i < 40; ++i) {
    std::mt19937 rng(first + i);
    auto pick = [&](size_t n) { return static_cast<int>(rng() % n); };
    Case c;
    c.first = pick(std::size(kFirst)), c.second = pick(std::size(kSecond));
    c.sum = pick(std::size(kSums)), c.end = pick(std::size(kEnds));
    c.dtype = pick(2) ? DType::kF16 : DType::kBF16;
    c.kernel = std::array{Case::kOne, Case::kOne, Case::kTwo, Case::kLoops}[static_cast<size_t>(pick(4))];
    c.depth = kDepth - pick(16);
    c.warps = 4 << pick(2), c.stages = 1 + pick(4);
    c.block_m = 64 << pick(2), c.block_n = 16 << pick(3), c.block_k = 16 << pick(3);
    SCOPED_TRACE(fmt::format("seed {}: {}\n{}", first + i, c.describe(), c.source()));
    std::unique_ptr<Module> tile;
    const auto m = distributed(c, &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kDot), 0) << ir::print(*m);
    EXPECT_GE(count(*m, OpKind::kWgmma), c.end == 0 && c.kernel == Case::kOne ? 1 : 2);
    std::vector<double> expected, got;
    ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, first + i, &expected, &got));
    double largest = 0;
    for (const double v : expected) largest = std::max(largest, std::abs(v));
    // Sums in another order; an end rounds the sum to the operands' type before it is multiplied again.
    const double bound = largest * (c.end == 0 && c.kernel == Case::kOne ? 1e-5 : c.dtype == DType::kF16 ? 1e-3 : 8e-3);
    for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], bound) << "element " << e;
  }
}

/// Of fewer rows than a warp group takes, loaded and summed up: they are the columns of the transposed product.
TEST(StagedProducts, FewRowsAreColumns) {
  constexpr int kLoaded[] = {0, 1};  // masked, gathered
  const uint32_t first = std::random_device{}();
  for (uint32_t i = 0; i < 16; ++i) {
    std::mt19937 rng(first + i);
    auto pick = [&](size_t n) { return static_cast<int>(rng() % n); };
    Case c;
    c.first = kLoaded[pick(2)], c.second = pick(3), c.sum = pick(std::size(kSums));
    c.dtype = pick(2) ? DType::kF16 : DType::kBF16;
    c.depth = kDepth - pick(16);
    c.warps = 4 << pick(2), c.stages = 2 + pick(3);
    c.block_m = 16 << pick(2), c.block_n = 64 << (c.warps == 8 || pick(2)), c.block_k = 32 << pick(2);
    SCOPED_TRACE(fmt::format("seed {}: {}\n{}", first + i, c.describe(), c.source()));
    std::unique_ptr<Module> tile;
    const auto m = distributed(c, &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kDot), 0) << ir::print(*m);
    std::vector<double> expected, got;
    ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, first + i, &expected, &got));
    double largest = 0;
    for (const double v : expected) largest = std::max(largest, std::abs(v));
    for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], largest * 1e-5) << "element " << e;
  }
  // A sum whose rows are reduced, as in attention, stays as it is.
  const std::string reduced =
      fmt::format(kKernel, kFirst[1].text, kSecond[0].text, kSums[0], "acc -= tl.max(acc, 1)[:, None]");
  Case c;
  c.block_m = 16, c.block_n = 64;
  c.whole = reduced.c_str();
  const auto m = distributed(c);
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kDot), 1) << ir::print(*m);
}

TEST(StagedProducts, LoopsShareSlotsAndBlocks) {
  for (const int warps : {4, 8}) {
    for (const int64_t depth : {30, 50, 144}) {
      Case c;
      c.whole = kBlocks, c.warps = warps, c.depth = depth;
      std::unique_ptr<Module> tile;
      const auto m = distributed(c, &tile);
      ASSERT_TRUE(m);
      EXPECT_EQ(count(*m, OpKind::kWgmma), 4) << ir::print(*m);
      EXPECT_EQ(count(*m, OpKind::kTmaLoad), 5) << ir::print(*m);
      EXPECT_EQ(count(*m, OpKind::kMbarrierInit), 4) << "of two rings\n" << ir::print(*m);
      std::mt19937 rng(std::random_device{}());
      std::vector<double> expected, got;
      ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, rng(), &expected, &got));
      for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], 2e-3) << "element " << e;
    }
  }
}

int count_in_loop(Module& m, OpKind kind) {
  int n = 0;
  ir::walk(m.body(), [&](Op* op) { n += op->kind == kind && op->parent->parent; });
  return n;
}

/// What is stored before each product shares the fence and the first barrier with what copies have brought, and
/// vectors come with them.
TEST(StagedProducts, AnIterationHasOneFence) {
  Case c;
  c.second = 6, c.sum = 1, c.depth = kDepth;
  const auto m = distributed(c);
  ASSERT_TRUE(m);
  EXPECT_EQ(count_in_loop(*m, OpKind::kFenceAsync), 1) << ir::print(*m);
  EXPECT_EQ(count_in_loop(*m, OpKind::kBarrier), 2) << ir::print(*m);
  EXPECT_EQ(count_in_loop(*m, OpKind::kAsyncCopy), 3) << ir::print(*m);
  EXPECT_EQ(count_in_loop(*m, OpKind::kLoad), 0) << ir::print(*m);
  // With one stage there is no barrier but those of the store.
  c.stages = 1;
  const auto alone = distributed(c);
  ASSERT_TRUE(alone);
  EXPECT_EQ(count_in_loop(*alone, OpKind::kBarrier), 2) << ir::print(*alone);
}

/// Two operands that are stored one after the other take turns in shared memory: warps meet between them, and not once
/// more in front of the first one, which the barrier of the copies parts from the iteration before.
TEST(StagedProducts, BuffersThatTakeTurnsMeetOnce) {
  Case c;
  c.whole = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)
        acc = acc * 0.5 + tl.dot(x, (y.to(tl.float32) * 0.5).to(y.dtype))
        acc = acc * 0.5 + tl.dot(x, (y.to(tl.float32) * 0.25).to(y.dtype))
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
)";
  std::unique_ptr<Module> tile;
  const auto m = distributed(c, &tile);
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kWgmma), 2) << ir::print(*m);
  EXPECT_EQ(count_in_loop(*m, OpKind::kBarrier), 4) << ir::print(*m);
  std::mt19937 rng(std::random_device{}());
  std::vector<double> expected, got;
  ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, rng(), &expected, &got));
  for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], 1e-3) << "element " << e;
}

/// wgmma reads words only along k: what is computed is stored so, whichever way it was loaded.
TEST(StagedProducts, ComputedWordsAreStoredAlongK) {
  for (const int second : {3, 5, 6}) {
    Case c;
    c.second = second, c.dtype = DType::kF32, c.block_n = 64;
    SCOPED_TRACE(c.describe());
    std::unique_ptr<Module> tile;
    const auto m = distributed(c, &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kDot), 0) << ir::print(*m);
    EXPECT_EQ(count(*m, OpKind::kWgmma), 1) << ir::print(*m);
    std::mt19937 rng(std::random_device{}());
    std::vector<double> expected, got;
    ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, 1, &expected, &got));
    double largest = 0;
    for (const double v : expected) largest = std::max(largest, std::abs(v));
    for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], largest * 2e-3) << "element " << e;
  }
}

/// The result is staged for its store in the rings, which are not in use any more.
TEST(StagedProducts, EpiloguesUseTheRings) {
  Case c;
  c.first = 1, c.block_n = 64, c.block_k = 64, c.out = DType::kF16;
  const auto m = distributed(c);
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kTmaStore), 1) << ir::print(*m);
  EXPECT_EQ(m->shared_bytes, (c.block_m + c.block_n) * c.block_k * size_of(c.dtype) * c.stages) << ir::print(*m);
}

/// Nor does a loop copy ahead past a volatile load in it, which may wait for what the copies read.
TEST(StagedProducts, NothingRunsAheadOfAVolatileLoad) {
  for (const bool waits : {false, true}) {
    const std::string text = fmt::format(R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.load(index + tl.arange(0, BM))
    n = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, L, BK):
        {}
        k = t + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < L)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < L)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)
)",
                                         waits ? "while tl.load(index + t, volatile=True) == 0: pass" : "pass");
    Case c;
    c.whole = text.c_str();
    const auto m = distributed(c);
    ASSERT_TRUE(m) << text;
    EXPECT_EQ(count(*m, OpKind::kAsyncCopy) > 0, !waits) << text << ir::print(*m);
  }
}

/// A copy by TMA is waited for at the end: what tells others before that the result is there keeps it with the threads.
TEST(StagedProducts, WhatIsToldIsStoredByThreads) {
  struct Told {
    const char *before, *after;
    bool by_tma;
  };
  const Told cases[] = {
      {"", "", true},
      {"", "    tl.atomic_add(index, 1, sem='relaxed')", true},
      {"    tl.atomic_add(index, 1)", "", true},
      {"", "    tl.debug_barrier()\n    tl.load(q + n)", true},
      {"", "    tl.debug_barrier()\n    tl.atomic_add(index, 1)", false},
      {"", "    if M > 100:\n        tl.atomic_cas(index, 0, 1, sem='release')", false},
      {"", "    tl.debug_barrier()\n    tl.store(index, 1)", false},
      {"", "    tl.debug_barrier()\n    tl.store(q + n, tl.load(c + n).to(tl.int8))", false},
  };
  for (const Told& told : cases) {
    const std::string text = fmt::format(R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
{}
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, L, BK):
        k = t + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < L)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k < L)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])
{}
)",
                                         told.before, told.after);
    Case c;
    c.whole = text.c_str(), c.out = DType::kF16;
    const auto m = distributed(c);
    ASSERT_TRUE(m) << text;
    EXPECT_EQ(count(*m, OpKind::kTmaStore) > 0, told.by_tma) << text << ir::print(*m);
  }
}

/// What is loaded behind a loop that waits for others may not be there before: no producer brings it.
TEST(StagedProducts, NoProducerRunsPastALoopThatWaits) {
  struct Waits {
    const char* loop;
    bool by_producer;
  };
  const Waits cases[] = {
      {"", true},
      {"    i = 0\n    while i < M:\n        i += tl.load(index + i)", true},
      {"    while tl.atomic_add(index, 0) == 0:\n        pass", false},
      {"    while tl.load(index, volatile=True) == 0:\n        pass", false},
      {"    i = 0\n    while i == 0:\n        i = tl.atomic_cas(index, 1, 1, sem='acquire')", false},
  };
  for (const char* loads :
       {"tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < L)[None, :], other=0.0)",
        "rows.load([tl.program_id(0) * BM, t])"})
    for (const Waits& waits : cases) {
      const std::string text = fmt::format(R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN
    rows = tl.make_tensor_descriptor(a, [M, L], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b, [L, N], [N, 1], [BK, BN])
{}
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, L, BK):
        k = t + tl.arange(0, BK)
        acc = tl.dot({}, columns.load([t, n]), acc)
    tl.store(c + m[:, None] * N + (n + tl.arange(0, BN))[None, :], acc)
)",
                                           waits.loop, loads);
      Case c;
      c.whole = text.c_str();
      const auto m = distributed(c);
      ASSERT_TRUE(m) << text;
      EXPECT_EQ(count(*m, OpKind::kWgmma), 1) << text;
      EXPECT_EQ(count(*m, OpKind::kWarpSpecialize) > 0, waits.by_producer) << text << ir::print(*m);
    }
}

/// What the kernel below keeps in flight: two rings, copies behind the product, one wait for the last.
TEST(StagedProducts, PlantedErrorsAreFound) {
  Case c;
  c.first = 1;
  struct Planted {
    const char* name;
    void (*plant)(Module&);
    bool is_found;
  };
  const Planted planted[] = {
      {"none", [](Module&) {}, false},
      {"no fence",
       [](Module& m) {
         std::vector<Op*> fences;
         ir::walk(m.body(), [&](Op* op) {
           if (op->kind == OpKind::kFenceAsync) fences.push_back(op);
         });
         for (Op* op : fences) op->erase();
       },
       true},
      {"the product before may be unfinished",
       [](Module& m) {
         ir::walk(m.body(), [&](Op* op) {
           if (op->kind == OpKind::kWgmmaWait && op->int_attr(AttrName::kCount) == 1)
             op->set(AttrName::kCount, int64_t{2});
         });
       },
       true},
      {"the last product may be unfinished",
       [](Module& m) {
         ir::walk(m.body(), [&](Op* op) {
           if (op->kind == OpKind::kWgmmaWait) op->set(AttrName::kCount, int64_t{1});
         });
       },
       true},
      {"copies may be unfinished",
       [](Module& m) {
         ir::walk(m.body(), [&](Op* op) {
           if (op->kind == OpKind::kAsyncWait && op->parent->parent)
             op->set(AttrName::kCount, op->int_attr(AttrName::kCount) + 1);
         });
       },
       true},
  };
  std::mt19937 rng(std::random_device{}());
  Problem launch(c.dtype, rng);
  const auto made = distributed(c);
  ASSERT_TRUE(made);
  std::vector<int64_t> counts;
  ir::walk(made->body(), [&](Op* op) {
    if (op->kind == OpKind::kWgmmaWait) counts.push_back(op->int_attr(AttrName::kCount));
  });
  EXPECT_EQ(counts, (std::vector<int64_t>{1, 0})) << ir::print(*made);
  for (const Planted& p : planted) {
    const auto m = ir::clone(*made);
    p.plant(*m);
    EXPECT_EQ(!launch(c, *m).ok(), p.is_found) << p.name << ir::print(*m);
  }
  for (int64_t barrier : {0, 1}) {  // the loop's, ahead of the product and behind it
    interp::DistributedOptions dropped;
    dropped.drop_barrier = static_cast<int>(barrier);
    EXPECT_FALSE(launch(c, *made, dropped).ok()) << "barrier " << barrier;
  }
}

// --- blocks that a loop brings by TMA for its own products

/// Tensors, and tiles of them, that the kernel finds in memory, tile after tile.
constexpr char kFound[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    zero = tl.load(index) // 4096
    tile = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    tiles_m = tl.cdiv(M, BM)
    rows = tl.make_tensor_descriptor(a + zero, [M + zero, L], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b + zero, [L, N + zero], [N, 1], [BK, BN])
    result = tl.make_tensor_descriptor(c + zero, [M + zero, N], [N, 1], [BM, BN])
    while tile < tiles_m * tl.cdiv(N, BN):
        m = tile % tiles_m * BM
        n = tile // tiles_m * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for t in range(0, tl.cdiv(L, BK)):
            acc = tl.dot(rows.load([m, t * BK]), columns.load([t * BK, n]), acc)
        result.store([m, n], acc)
        tile += 2
)";

/// One step along k, so that its loop is gone, in another that nobody can run ahead of.
constexpr char kOnce[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    zero = tl.load(index) // 4096
    rows = tl.make_tensor_descriptor(a + zero, [M + zero, L], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b + zero, [L, N + zero], [N, 1], [BK, BN])
    result = tl.make_tensor_descriptor(c + zero, [M + zero, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    r = 0
    while r < 2 + zero:
        acc = tl.zeros((BM, BN), tl.float32)
        for t in range(0, BK // BK):
            acc = tl.dot(rows.load([m, t * BK]), columns.load([t * BK, n]), acc)
        result.store([m, n], acc * (r + 1))
        r += 1
)";

/// A lies across k, where fp8 has no wgmma: it is converted in the loop, and B comes by TMA.
constexpr char kAcross[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.make_tensor_descriptor(a, [L, M], [M, 1], [BK, BM])
    columns = tl.make_tensor_descriptor(b, [N, L], [K, 1], [BN, BK])
    acc = tl.zeros((BM, BN), tl.float32)
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    for t in range(0, L, BK):
        acc = tl.dot(rows.load([t, m]).T, columns.load([n, t]).T, acc)
    at_m = m + tl.arange(0, BM)[:, None]
    at_n = n + tl.arange(0, BN)[None, :]
    tl.store(c + at_m * N + at_n * 2, acc, mask=(at_m < M) & (at_n < N))
)";

/// A loop whose blocks a producer brings, and one of tensors that the kernel finds on the way.
constexpr char kBeside[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    known = tl.make_tensor_descriptor(a, [M, L], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b, [L, N], [N, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, tl.cdiv(L, BK)):
        acc = tl.dot(known.load([m, t * BK]), columns.load([t * BK, n]), acc)
    acc = acc * 0.5
    for g in range(0, 2):
        at = tl.load(index + g) // 4096
        rows = tl.make_tensor_descriptor(a + at, [M + at, L], [K, 1], [BM, BK])
        for t in range(0, tl.cdiv(L, BK)):
            acc = tl.dot(rows.load([m, t * BK]), columns.load([t * BK, n]), acc)
    i = m + tl.arange(0, BM)
    j = n + tl.arange(0, BN)
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))
)";

TEST(LoopBlocks, BesideThoseOfAProducer) {
  Case c;
  c.whole = kBeside;
  std::unique_ptr<Module> tile;
  const auto m = distributed(c, &tile);
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kWarpSpecialize), 1) << ir::print(*m);
  EXPECT_EQ(count(*m, OpKind::kWgmma), 2) << ir::print(*m);
  EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 0) << ir::print(*m);
  ir::walk(m->body(), [&](Op* op) {
    if (op->kind == OpKind::kMakeDescriptor && op->flag(AttrName::kOnDevice)) {
      EXPECT_EQ(op->parent->parent->kind, OpKind::kFor) << "made for each tensor\n" << ir::print(*m);
    }
  });
  std::mt19937 rng(std::random_device{}());
  std::vector<double> expected, got;
  ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, rng(), &expected, &got));
  for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], 2e-3) << "element " << e;
}

TEST(LoopBlocks, OfTensorsFoundInMemory) {
  for (const char* whole : {kFound, kOnce})
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      Case c;
      c.whole = whole, c.dtype = dtype;
      std::mt19937 rng(std::random_device{}());
      c.depth = whole == kOnce ? 32 : kDepth - static_cast<int64_t>(rng() % 16);
      c.warps = 4 << (rng() % 2), c.stages = 2 + static_cast<int>(rng() % 3);
      SCOPED_TRACE(c.source());
      std::unique_ptr<Module> tile;
      const auto m = distributed(c, &tile);
      ASSERT_TRUE(m);
      EXPECT_EQ(count(*m, OpKind::kWgmma), 1) << ir::print(*m);
      EXPECT_EQ(count(*m, OpKind::kTmaLoad), 2 * (whole == kOnce ? 1 : c.stages)) << ir::print(*m);
      EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 0) << ir::print(*m);
      EXPECT_EQ(count(*m, OpKind::kMakeDescriptor), 2) << ir::print(*m);
      ir::walk(m->body(), [&](Op* op) {
        if (op->kind == OpKind::kMakeDescriptor) {
          EXPECT_TRUE(op->flag(AttrName::kOnDevice));
          EXPECT_FALSE(op->parent->parent) << "made once, in front of the loops\n" << ir::print(*m);
        }
      });
      std::vector<double> expected, got;
      ASSERT_NO_FATAL_FAILURE(run_both(c, *tile, *m, rng, rng(), &expected, &got));
      for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], 1e-3) << "element " << e;
    }
}

/// What is converted behind the loop has room in a ring that TMA filled, in front of its barriers.
TEST(LoopBlocks, ResultsUseTheRing) {
  Case c;
  c.whole = kAcross, c.dtype = DType::kF8E4M3, c.out = DType::kF32;
  c.block_m = 128, c.block_n = 256, c.block_k = 128, c.warps = 8, c.stages = 4;
  const auto m = distributed(c);
  ASSERT_TRUE(m);
  EXPECT_GT(count(*m, OpKind::kTmaLoad), 0) << ir::print(*m);
  EXPECT_EQ(count(*m, OpKind::kConvertLayout), 2) << "of A, and of the result\n" << ir::print(*m);
  int64_t rings = 0;
  ir::walk(m->body(), [&](Op* op) {
    if (op->kind == OpKind::kSharedAlloc) rings += analysis::shared_bytes(op->result()->type);
  });
  EXPECT_LT(m->shared_bytes - rings, c.block_m * c.block_k + 1024) << ir::print(*m);
}

/// What an iteration waits for is a wait too for other launches: nothing runs ahead of that.
TEST(LoopBlocks, NothingRunsAheadOfAWait) {
  Case c;
  c.whole = kFound;
  std::string waiting = kFound;
  const std::string_view start = "        for t in range(0, tl.cdiv(L, BK)):\n";
  waiting.insert(waiting.find(start) + start.size(), "            tl.extra.cuda.gdc_wait()\n");
  c.whole = waiting.c_str();
  const auto m = distributed(c);
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kTmaLoad) + count(*m, OpKind::kAsyncCopy), 0) << ir::print(*m);
}

/// Each barrier and each wait is needed; the machine's interpreter tells what goes wrong without.
TEST(LoopBlocks, PlantedErrorsAreFound) {
  Case c;
  c.whole = kFound, c.stages = 3;
  const auto made = distributed(c);
  ASSERT_TRUE(made);
  std::mt19937 rng(7);
  Problem launch(c.dtype, rng);
  ASSERT_TRUE(launch(c, *made).ok());
  auto erase = [](OpKind kind, auto&& which) {
    return [kind, which](Module& m) {
      std::vector<Op*> found;
      ir::walk(m.body(), [&](Op* op) {
        if (op->kind == kind && which(*op)) found.push_back(op);
      });
      ASSERT_FALSE(found.empty());
      for (Op* op : found) op->erase();
    };
  };
  auto any = [](const Op&) { return true; };
  const std::pair<const char*, std::function<void(Module&)>> planted[] = {
      {"no wait for a block", erase(OpKind::kMbarrierWait, any)},
      {"phases stay odd",
       erase(OpKind::kMbarrierExpect, [](const Op& op) { return op.int_attr(AttrName::kBytes) == 0; })},
      {"bytes are not announced",
       erase(OpKind::kMbarrierExpect, [](const Op& op) { return op.int_attr(AttrName::kBytes) > 0; })},
  };
  for (const auto& [name, plant] : planted) {
    const auto m = ir::clone(*made);
    plant(*m);
    EXPECT_FALSE(launch(c, *m).ok()) << name << ir::print(*m);
  }
  // Those that part the slots' readers from the next copies into them.
  int barriers = 0;
  for (int i = 0; i < count(*made, OpKind::kBarrier); ++i) {
    interp::DistributedOptions dropped;
    dropped.drop_barrier = i;
    for (dropped.seed = 1; dropped.seed < 6; ++dropped.seed)
      if (!launch(c, *made, dropped).ok()) {
        ++barriers;
        break;
      }
  }
  EXPECT_EQ(barriers, 2) << "of the loop, and in front of it\n" << ir::print(*made);
}

}  // namespace
}  // namespace kiln::passes
