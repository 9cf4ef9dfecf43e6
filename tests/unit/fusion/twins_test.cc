// Products of one left operand that share a kernel.
#include <string>

#include "compiler/target/matmul_tile.h"
#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

size_t products_of(const Group& g) {
  size_t count = 0;
  for (size_t at = g.source.find(" = tl.dot("); at != std::string::npos; at = g.source.find(" = tl.dot(", at + 1))
    ++count;
  return count;
}

/// A gate and what it gates: one kernel, with each right operand either way, of a batch, of odd sizes.
TEST_F(PlanTest, GatesShareAKernelWithWhatTheyGate) {
  ExprAttributes turned;
  turned.axes = {1, 0};
  for (const auto& [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{1100, 72, 1992}, {1601, 64, 1288}})
    for (bool transposed : {false, true}) {
      p = {};
      const int x = tensor(DType::kBF16, {m, k}, "x");
      auto right = [&](const std::string& name) {
        return transposed ? op(ExprOp::kPermute, {tensor(DType::kBF16, {n, k}, name)}, turned)
                          : tensor(DType::kBF16, {k, n}, name);
      };
      const int gate = op(ExprOp::kMatMul, {x, right("gate")}), value = op(ExprOp::kMatMul, {x, right("value")});
      const int bias = tensor(DType::kBF16, {n}, "bias");
      const Plan made = check({op(ExprOp::kMul, {op(ExprOp::kSilu, {gate}), op(ExprOp::kAdd, {value, bias})})},
                              Variant::kFused, hopper_machine(), -1);
      ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
      EXPECT_GE(products_of(made.groups[0]), 2u) << made.groups[0].source;
    }
  p = {};
  const int x = tensor(DType::kF16, {5, 404, 72}, "x");
  const int gate = op(ExprOp::kMatMul, {x, tensor(DType::kF16, {5, 72, 1000}, "gate")}),
            value = op(ExprOp::kMatMul, {x, tensor(DType::kF16, {5, 72, 1000}, "value")});
  const Plan made =
      check({op(ExprOp::kMul, {op(ExprOp::kGelu, {gate}), value})}, Variant::kFused, hopper_machine(), -1);
  EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
}

/// Few tiles with a long k: both in parts are three kernels, which take longer than one that leaves processors idle.
/// Where that would leave nearly all idle, and in other variants, they are split.
TEST_F(PlanTest, GatesOfFewTilesStayWhole) {
  auto made = [&](int64_t m, int64_t k, int64_t n, Variant variant) {
    p = {};
    const int x = tensor(DType::kBF16, {m, k}, "x");
    const int gate = op(ExprOp::kMatMul, {x, tensor(DType::kBF16, {k, n}, "gate")}),
              value = op(ExprOp::kMatMul, {x, tensor(DType::kBF16, {k, n}, "value")});
    return check({op(ExprOp::kMul, {op(ExprOp::kSilu, {gate}), value})}, variant, hopper_machine(), -1);
  };
  const Plan one = made(130, 2048, 264, Variant::kFused);
  ASSERT_EQ(one.groups.size(), 1u) << plan_text(one);
  EXPECT_GE(products_of(one.groups[0]), 2u) << one.groups[0].source;
  EXPECT_EQ(made(72, 4096, 64, Variant::kFused).groups.size(), 3u);
  EXPECT_GE(made(130, 2048, 264, Variant::kUnfused).groups.size(), 4u);
}

/// Of few rows a product is made the other way round, where wgmma takes at least 64 columns of each sum.
TEST(TilesOfPairs, AreThoseOfWgmma) {
  const ProductSize pair = {.m = 130, .n = 264, .k = 2056, .operand_bytes = 2, .result_bytes = 2, .sums = 2};
  const auto tiles = rank_tiles(pair, 132, {.most_ctas = 2, .has_tail = true});
  ASSERT_FALSE(tiles.empty());
  for (const MatmulTile& t : tiles) EXPECT_TRUE(t.m >= 64 || t.n / t.ctas >= 64) << to_string(t);
}

/// What others read too, what is of another left operand, and float32 in full precision stay apart.
TEST_F(PlanTest, OtherProductsStayApart) {
  const Shape left = {1100, 72}, right = {72, 1992};
  struct Case {
    DType dtype;
    bool is_read, has_other_left;
  };
  for (const Case& c : {Case{DType::kBF16, true, false}, {DType::kBF16, false, true}, {DType::kF32, false, false}}) {
    p = {};
    const int x = tensor(c.dtype, left, "x"), y = c.has_other_left ? tensor(c.dtype, left, "y") : x;
    const int gate = op(ExprOp::kMatMul, {x, tensor(c.dtype, right, "gate")}),
              value = op(ExprOp::kMatMul, {y, tensor(c.dtype, right, "value")});
    std::vector<int> outputs = {op(ExprOp::kMul, {op(ExprOp::kSilu, {gate}), value})};
    if (c.is_read) outputs.insert(outputs.end(), {gate, value});
    const Plan made = check(outputs, Variant::kFused, hopper_machine(), -1);
    EXPECT_EQ(made.groups.size(), 2u) << plan_text(made);
  }
}

}  // namespace
}  // namespace kiln::fusion::testing
