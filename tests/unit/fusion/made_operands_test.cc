// Products that compute an operand where they read it.
#include <algorithm>

#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

/// What is read once by one program is made where it is read: along k, m and n, of odd sizes, and in parts of a sum.
TEST_F(PlanTest, OperandsOfProductsAreMadeWhereTheyAreRead) {
  ExprAttributes shape;
  for (const auto& [m, batch, channels, wide] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{16, 3, 24, 321}, {5, 1, 700, 37}, {64, 2, 64, 256}})
    for (DType dtype : {DType::kBF16, DType::kF32}) {
      p = {};
      const int filters = tensor(dtype, {m, 3 * channels}, "w");
      const int x = tensor(dtype, {batch, 3 * channels, wide}, "x"), low = tensor(dtype, {1, 3 * channels, 1}, "low");
      // Elements in the order of [batch, 3, channels, wide]: k is two dimensions of what is multiplied.
      shape.shape = {batch, 3, channels, wide};
      const int apart = op(ExprOp::kReshape, {op(ExprOp::kSub, {x, low})}, shape);
      shape.shape = {batch, 3 * channels, wide};
      const int made = op(ExprOp::kReshape, {op(ExprOp::kMul, {apart, apart})}, shape);
      const Plan right =
          check({op(ExprOp::kRelu, {op(ExprOp::kMatMul, {filters, made})})}, Variant::kFused, hopper_machine(), -1);
      EXPECT_LE(right.groups.size(), 2u) << "the product, and the sum of its parts";
      p = {};
      const int a = tensor(dtype, {wide * 9, channels}, "a"), b = tensor(dtype, {channels, m}, "b");
      const Plan left =
          check({op(ExprOp::kMatMul, {op(ExprOp::kMul, {a, a}), b})}, Variant::kFused, hopper_machine(), -1);
      if (wide * 9 * channels >= 65536) {
        EXPECT_LE(left.groups.size(), 2u);
      }
    }
}

/// Where steps along k divide the innermost dimension of a made operand, what it counts along outside of that is a
/// number of the step, as the tap of a window is where channels are innermost.
TEST_F(PlanTest, OuterDimensionsOfMadeOperandsAreNumbersOfAStep) {
  for (const auto& [dtype, channels, is_whole] : {std::tuple{DType::kBF16, int64_t{128}, true},
                                                  {DType::kF32, int64_t{32}, true},
                                                  {DType::kBF16, int64_t{72}, false}}) {
    p = {};
    const int filters = tensor(dtype, {40, 3 * channels}, "filters");
    const int x = tensor(dtype, {3, channels, 1, 258}, "x"), taps = tensor(dtype, {3, 1, 3, 1, 1}, "taps");
    ExprAttributes shape;
    shape.shape = {3, 1, 1, channels, 258};
    const int apart = op(ExprOp::kMul, {op(ExprOp::kReshape, {x}, shape), taps});
    shape.shape = {3, 3 * channels, 258};
    const int made = op(ExprOp::kReshape, {apart}, shape);
    ExprAttributes tf32;
    tf32.tf32 = dtype == DType::kF32;
    const Plan plan = check({op(ExprOp::kMatMul, {filters, made}, tf32)}, Variant::kFused, hopper_machine(), -1);
    const std::string& source = plan.groups[0].source;
    EXPECT_NE(source.find("tl.dot("), std::string::npos) << plan_text(plan);
    EXPECT_EQ(source.find("step * BLOCK_K // " + std::to_string(channels)) != std::string::npos, is_whole) << source;
  }
}

/// Numbers that share bytes, which a product takes: each byte is loaded once, and its parts are interleaved along k. As
/// the left operand and the right one, of odd sizes, and in parts of a sum.
TEST_F(PlanTest, PartsOfBytesAreMadeForProducts) {
  ExprAttributes shape, counts;
  for (const auto& [m, wide, bytes, of_byte] : {std::tuple<int64_t, int64_t, int64_t, int64_t>{32, 512, 544, 2},
                                                {5, 700, 37, 4},
                                                {16, 2049, 33, 2},
                                                {64, 300, 256, 4}})
    for (bool is_left : {false, true}) {
      p = {};
      const int64_t k = bytes * of_byte;
      counts.shape = {of_byte}, counts.dtype = DType::kI32;
      const int which = op(ExprOp::kIota, {}, counts);
      auto shaped = [&](int x, Shape to) {
        shape.shape = std::move(to);
        return op(ExprOp::kReshape, {x}, shape);
      };
      const int packed = tensor(DType::kU8, {wide, bytes, 1}, "packed");
      int parts = -1;
      for (int64_t i = of_byte; i-- > 0;) {
        const int part = op(ExprOp::kAdd, {packed, number(static_cast<double>(i))});
        parts = parts < 0
                    ? part
                    : op(ExprOp::kWhere, {op(ExprOp::kLt, {which, number(static_cast<double>(i + 1))}), part, parts});
      }
      ExprAttributes half, turned;
      half.dtype = DType::kBF16, turned.axes = {1, 0};
      const int scale = tensor(DType::kBF16, {wide, 1}, "scale");
      const int weight = op(ExprOp::kMul, {op(ExprOp::kCast, {shaped(parts, {wide, k})}, half), scale});
      const int x = tensor(DType::kBF16, {m, k}, "x");
      const int result = is_left ? op(ExprOp::kMatMul, {weight, op(ExprOp::kPermute, {x}, turned)})
                                 : op(ExprOp::kMatMul, {x, op(ExprOp::kPermute, {weight}, turned)});
      const Plan made = check({result}, Variant::kFused, hopper_machine(), -1);
      EXPECT_TRUE(std::ranges::any_of(made.groups, [](const Group& g) {
        return g.source.find("tl.join(") != std::string::npos && g.source.find("tl.dot(") != std::string::npos;
      })) << plan_text(made);
    }
}

/// Where a tensor lies along the innermost two, halves of it would be read with a gap behind each element.
TEST_F(PlanTest, PairsOfATensorAreMadeAsTheyLie) {
  const int x = tensor(DType::kBF16, {32, 1088}, "x"), w = tensor(DType::kBF16, {512, 544, 2}, "w");
  const int of_pair = tensor(DType::kBF16, {2}, "of_pair");
  ExprAttributes flat, turned;
  flat.shape = {512, 1088}, turned.axes = {1, 0};
  const int weight = op(ExprOp::kReshape, {op(ExprOp::kMul, {w, of_pair})}, flat);
  const Plan made =
      check({op(ExprOp::kMatMul, {x, op(ExprOp::kPermute, {weight}, turned)})}, Variant::kFused, hopper_machine(), -1);
  ASSERT_LE(made.groups.size(), 2u) << plan_text(made);
  EXPECT_EQ(made.groups[0].source.find("tl.join("), std::string::npos) << made.groups[0].source;
}

}  // namespace
}  // namespace kiln::fusion::testing
