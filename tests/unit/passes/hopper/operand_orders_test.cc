// Tiles that products sum over along both of their dimensions, through the whole pipeline for Hopper, on the machine
// that the distributed interpreter plays, against the tile interpreter.
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
using ir::Op;
using ir::OpKind;

std::unique_ptr<Module> distributed(const ProductCase& c, const std::string& source,
                                    std::unique_ptr<Module>* tile = nullptr) {
  return through_pipeline(lower(c, source), "sm_90a", tile);
}

/// `error`: of the largest element.
void expect_equal(const ProductCase& c, const Module& tile, const Module& distributed, uint64_t seed, double error) {
  std::mt19937 rng(7);
  std::vector<double> expected, got;
  ASSERT_NO_FATAL_FAILURE(run_both(c, tile, distributed, rng, seed, &expected, &got));
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  for (size_t e = 0; e < got.size(); ++e) ASSERT_NEAR(got[e], expected[e], largest * error) << "element " << e;
}

/// One tile that products sum over along either dimension, in the places where such tiles are made and read.
constexpr char kBothWays[] = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, q, index, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    {}
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
)";
constexpr char kFirstTiles[] = R"(k = tl.arange(0, BK)
    x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
    u = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)
    u = (u.to(tl.float32) * 0.125).to(u.dtype))";
constexpr char kTilesOfLoop[] = R"(for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
        u = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < L) & (n[None, :] < N), other=0.0)
        u = (u.to(tl.float32) * 0.125).to(u.dtype))";

struct BothWays {
  const char *name, *tiles, *products;
};
constexpr BothWays kBothWaysCases[] = {
    {"in no loop", kFirstTiles, R"(
    w = tl.dot(x, u)
    v = tl.dot(w.to(u.dtype), tl.trans(u))
    acc = tl.dot(v.to(u.dtype), u))"},
    {"in a loop", kTilesOfLoop, R"(
        w = tl.dot(x, u)
        v = tl.dot(w.to(u.dtype), tl.trans(u))
        acc += tl.dot(v.to(u.dtype), u))"},
    {"made ahead of the loop", kFirstTiles, R"(
    for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
        w = tl.dot(x, u)
        v = tl.dot(w.to(u.dtype), tl.trans(u))
        acc += tl.dot(v.to(u.dtype), u))"},
    {"one product ahead of the loop", kFirstTiles, R"(
    w = tl.dot(x, u)
    for t in range(0, tl.cdiv(L, BK)):
        v = tl.dot((w * t).to(u.dtype), tl.trans(u))
        acc += tl.dot(v.to(u.dtype), u))"},
    {"one product in an inner loop", kTilesOfLoop, R"(
        v = tl.zeros((BM, BK), tl.float32)
        w = tl.dot(x, u)
        for r in range(0, 2 + L // 4096):
            v += tl.dot((w + r).to(u.dtype), tl.trans(u))
        acc += tl.dot(v.to(u.dtype), u))"},
    {"one product in a branch", kTilesOfLoop, R"(
        v = tl.zeros((BM, BK), tl.float32)
        w = tl.dot(x, u)
        if t % 2 == 0:
            v = tl.dot(w.to(u.dtype), tl.trans(u))
        acc += tl.dot(v.to(u.dtype), u))"},
    {"carried by the loop", kFirstTiles, R"(
    for t in range(0, tl.cdiv(L, BK)):
        w = tl.dot(x, u)
        v = tl.dot(w.to(u.dtype), tl.trans(u))
        acc += tl.dot(v.to(u.dtype), u)
        u = (u.to(tl.float32) * 0.5).to(u.dtype))"},
    {"behind products of a producer", kFirstTiles, R"(
    rows = tl.make_tensor_descriptor(a, [M, L], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(b, [N, L], [K, 1], [BN, BK])
    for t in range(0, tl.cdiv(L, BK)):
        y = columns.load([tl.program_id(1) * BN, t * BK])
        acc = tl.dot(rows.load([tl.program_id(0) * BM, t * BK]), y.T, acc)
    v = tl.dot(acc.to(u.dtype), tl.trans(u))
    acc = tl.dot(v.to(u.dtype), u))"},
};

/// wgmma reads words only along the dimension that it sums over: they are stored once for each, and halves once.
TEST(OperandOrders, WordsAreStoredAlongEachDimensionThatIsSummedOver) {
  for (const BothWays& form : kBothWaysCases)
    for (const DType dtype : {DType::kF32, DType::kF16})
      for (const int warps : {4, 8}) {
        const std::string text = fmt::format(kBothWays, std::string(form.tiles) + form.products);
        ProductCase c;
        c.dtype = dtype, c.warps = warps, c.block_m = 128, c.block_k = 64;
        SCOPED_TRACE(fmt::format("{}, {}, {} warps", form.name, kiln::name(dtype), warps));
        std::unique_ptr<Module> tile;
        const auto m = distributed(c, text, &tile);
        ASSERT_TRUE(m);
        EXPECT_EQ(count(*m, OpKind::kDot), 0) << ir::print(*m);
        EXPECT_EQ(count(*m, OpKind::kWgmma), 3) << ir::print(*m);
        int stores = 0;
        ir::walk(m->body(), [&](const Op* op) {
          if (op->kind != OpKind::kSharedStore) return;
          const ir::Shape& shape = op->operand(1)->type.shape;
          stores += shape[0] == c.block_k && shape[1] == c.block_n;
        });
        EXPECT_EQ(stores, dtype == DType::kF32 ? 2 : 1) << ir::print(*m);
        for (const uint64_t seed : {1, 2}) expect_equal(c, *tile, *m, seed, 2e-3);
      }
}

/// One tile may be both operands, and be brought once: by a producer, a loop's ring or the warps.
TEST(OperandOrders, ATileTimesItsTranspose) {
  constexpr const char* kForms[] = {
      R"(k = tl.arange(0, BK)
    x = tl.load(a + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
    acc = tl.dot(x, tl.trans(x)))",
      R"(for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
        acc = tl.dot(x, tl.trans(x), acc))",
      R"(rows = tl.make_tensor_descriptor(a, [M, L], [K, 1], [BM, BK])
    for t in range(0, tl.cdiv(L, BK)):
        x = rows.load([tl.program_id(0) * BM, t * BK])
        acc += tl.dot(x, x.T))",
      R"(at = tl.load(index + m, mask=m < M, other=0)
    for t in range(0, tl.cdiv(L, BK)):
        k = t * BK + tl.arange(0, BK)
        x = tl.load(a + at[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
        y = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0.0)
        acc = tl.dot(x, tl.trans(x), acc)
        acc = tl.dot(y, tl.trans(y), acc)
        acc = tl.dot(x, tl.trans(y), acc))",
  };
  for (const char* form : kForms)
    for (const int64_t rows : {16, 32, 64}) {
      SCOPED_TRACE(fmt::format("{} rows: {}", rows, form));
      ProductCase c;
      c.block_m = c.block_n = rows, c.block_k = 64;
      std::unique_ptr<Module> tile;
      const auto m = distributed(c, fmt::format(kBothWays, form), &tile);
      ASSERT_TRUE(m);
      expect_equal(c, *tile, *m, 1, 1e-5);
    }
}

/// Both count where a loop's rings get what is left of shared memory, and where products are chosen.
TEST(OperandOrders, WordsAlongBothDimensionsHaveRoom) {
  const int64_t limit = target::find("sm_90a")->shared_per_block;
  const std::string text = fmt::format(kBothWays, std::string(kBothWaysCases[1].tiles) + kBothWaysCases[1].products);
  struct Size {
    int64_t depth;
    int wgmma;
  };
  for (const Size& size : {Size{64, 3}, Size{128, 2}}) {
    ProductCase c;
    c.dtype = DType::kF32, c.stages = 9, c.block_n = 128, c.block_k = size.depth;
    SCOPED_TRACE(size.depth);
    const auto m = distributed(c, text);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kWgmma), size.wgmma) << ir::print(*m);
    EXPECT_LE(m->shared_bytes, limit) << ir::print(*m);
  }
}

/// Bytes are summed over along either dimension, too: where they cannot lie so for wgmma, mma.sync multiplies.
TEST(OperandOrders, BytesAreSummedOverBothDimensions) {
  struct Bytes {
    DType dtype;  // of what u is loaded from, where that is b
    const char *pointer, *x, *made;
    bool is_int;
    int wgmma;  // at least
  };
  constexpr char kInts[] = R"(
        w = tl.dot(x, u)
        v = tl.dot((w & 7).to(tl.int8), tl.trans(u))
        acc += tl.dot((v & 7).to(tl.int8), u).to(tl.float32))";
  constexpr char kFloats[] = R"(
        w = tl.dot(x, u) * 0.0625
        v = tl.dot(w.to(u.dtype), tl.trans(u)) * 0.015625
        acc += tl.dot(v.to(u.dtype), u))";
  constexpr Bytes kBytes[] = {
      {DType::kF16, "q", "x", "u", true, 1},
      {DType::kF16, "q", "x", "u * 3", true, 0},
      {DType::kF8E4M3, "b", "x.to(u.dtype)", "u", false, 1},
      {DType::kF8E4M3, "q", "x.to(a.dtype.element_ty)", "u.to(a.dtype.element_ty)", false, 0},
  };
  for (const Bytes& row : kBytes)
    for (const char* places : {"k[:, None] * N + n[None, :]", "k[:, None] + n[None, :] * K"})
      for (const char* steps : {"1", "tl.cdiv(L, BK)"}) {
        const std::string products =
            fmt::format(R"(for t in range(0, {}):
        k = t * BK + tl.arange(0, BK)
        x = tl.load(q + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < L), other=0)
        u = tl.load({} + {}, mask=(k[:, None] < L) & (n[None, :] < N), other=0)
        x = {}
        u = {}{})",
                        steps, row.pointer, places, row.x, row.made, row.is_int ? kInts : kFloats);
        const std::string text = fmt::format(kBothWays, products);
        SCOPED_TRACE(text);
        ProductCase c;
        c.dtype = row.dtype, c.block_n = 64, c.block_k = 64;
        std::unique_ptr<Module> tile;
        const auto m = distributed(c, text, &tile);
        ASSERT_TRUE(m);
        EXPECT_GE(count(*m, OpKind::kWgmma), row.wgmma) << ir::print(*m);
        expect_equal(c, *tile, *m, 1, row.is_int ? 0 : 1e-2);
      }
}

}  // namespace
}  // namespace kiln::passes
