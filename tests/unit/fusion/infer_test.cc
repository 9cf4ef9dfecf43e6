// torch's dtype and shape rules.
#include "compiler/fusion/infer.h"

#include <gtest/gtest.h>

namespace kiln::fusion {
namespace {

Node tensor(DType dtype, const Shape& shape) { return input(dtype, shape, row_major(shape), 16); }

Result<Node> made(ExprOp op, const std::vector<Node>& inputs, ExprAttributes a = {}) {
  std::vector<const Node*> nodes;
  std::vector<int> positions;
  for (const Node& n : inputs) {
    positions.push_back(static_cast<int>(positions.size()));
    nodes.push_back(&n);
  }
  return infer(op, nodes, positions, std::move(a));
}

DType dtype(ExprOp op, const std::vector<Node>& inputs) {
  auto n = made(op, inputs);
  EXPECT_TRUE(n.ok()) << render(n.error());
  return n.ok() ? n->dtype : DType::kF8E5M2;
}

std::string message(Result<Node> n) { return n.ok() ? "no error" : render(n.error()); }

TEST(Infer, DTypesFollowTorch) {
  const Node f16 = tensor(DType::kF16, {4}), bf16 = tensor(DType::kBF16, {4}), f32 = tensor(DType::kF32, {4}),
             i32 = tensor(DType::kI32, {4}), u8 = tensor(DType::kU8, {4}), i8 = tensor(DType::kI8, {4}),
             boolean = tensor(DType::kI1, {4}), f64_0 = tensor(DType::kF64, {}), i64_0 = tensor(DType::kI64, {});
  EXPECT_EQ(dtype(ExprOp::kAdd, {f16, bf16}), DType::kF32);
  EXPECT_EQ(dtype(ExprOp::kAdd, {f16, i32}), DType::kF16);
  EXPECT_EQ(dtype(ExprOp::kAdd, {u8, i8}), DType::kI16);
  EXPECT_EQ(dtype(ExprOp::kAdd, {f16, f64_0}), DType::kF16) << "a 0-d tensor follows";
  EXPECT_EQ(dtype(ExprOp::kAdd, {i32, f64_0}), DType::kF64) << "unless it is of a higher kind";
  EXPECT_EQ(dtype(ExprOp::kAdd, {i8, i64_0}), DType::kI8);
  EXPECT_EQ(dtype(ExprOp::kMul, {bf16, scalar(2.5)}), DType::kBF16);
  EXPECT_EQ(dtype(ExprOp::kMul, {i8, scalar(int64_t{1000})}), DType::kI8);
  EXPECT_EQ(dtype(ExprOp::kMul, {i8, scalar(2.5)}), DType::kF32);
  EXPECT_EQ(dtype(ExprOp::kAdd, {boolean, scalar(int64_t{1})}), DType::kI64);
  EXPECT_EQ(dtype(ExprOp::kDiv, {i32, i32}), DType::kF32);
  EXPECT_EQ(dtype(ExprOp::kExp, {i32}), DType::kF32);
  EXPECT_EQ(dtype(ExprOp::kLt, {f16, i32}), DType::kI1);
  EXPECT_EQ(dtype(ExprOp::kWhere, {boolean, f16, scalar(0.0)}), DType::kF16);
  EXPECT_EQ(dtype(ExprOp::kSum, {u8}), DType::kI64);
  EXPECT_EQ(dtype(ExprOp::kMax, {u8}), DType::kU8);
  EXPECT_EQ(dtype(ExprOp::kMean, {bf16}), DType::kBF16);
}

TEST(Infer, ShapesFollowTorch) {
  const Node x = tensor(DType::kF32, {5, 1, 7});
  auto shape = [](Result<Node> n) { return n.ok() ? to_string(n->shape) : render(n.error()); };
  ExprAttributes a;
  EXPECT_EQ(shape(made(ExprOp::kAdd, {x, tensor(DType::kF32, {3, 1})})), "[5, 3, 7]");
  a.axes = {-1};
  EXPECT_EQ(shape(made(ExprOp::kSum, {x}, a)), "[5, 1]");
  a.keepdim = true;
  EXPECT_EQ(shape(made(ExprOp::kSum, {x}, a)), "[5, 1, 1]");
  EXPECT_EQ(shape(made(ExprOp::kSum, {x})), "[]");
  a = {};
  a.shape = {-1, 7};
  EXPECT_EQ(shape(made(ExprOp::kReshape, {x}, a)), "[5, 7]");
  a.shape = {2, -1, 4, 7};
  EXPECT_EQ(shape(made(ExprOp::kExpand, {x}, a)), "[2, 5, 4, 7]");
  const Node m = tensor(DType::kF32, {6, 3, 4});
  EXPECT_EQ(shape(made(ExprOp::kMatMul, {m, tensor(DType::kF32, {4, 9})})), "[6, 3, 9]");
  EXPECT_EQ(shape(made(ExprOp::kMatMul, {tensor(DType::kF32, {4}), tensor(DType::kF32, {4})})), "[]");
  EXPECT_EQ(shape(made(ExprOp::kMatMul, {m, tensor(DType::kF32, {4})})), "[6, 3]");
}

TEST(Infer, ErrorsNameBothShapes) {
  const Node x = tensor(DType::kF32, {4, 5}), y = tensor(DType::kF32, {4, 6});
  EXPECT_EQ(message(made(ExprOp::kAdd, {x, y})),
            "error: add: the shapes [4, 5] and [4, 6] do not broadcast: dimension -1 is 5 and 6\n");
  EXPECT_EQ(message(made(ExprOp::kMatMul, {x, y})),
            "error: matmul of [4, 5] and [4, 6]: the inner dimensions are 5 and 4\n");
  EXPECT_NE(message(made(ExprOp::kMatMul, {x, tensor(DType::kF16, {5, 6})})).find("the dtypes differ"),
            std::string::npos);
  EXPECT_NE(message(made(ExprOp::kBitAnd, {x, x})).find("does not apply to tensors of float32"), std::string::npos);
  EXPECT_NE(message(made(ExprOp::kMean, {tensor(DType::kI32, {4})})).find(".float()"), std::string::npos);
  ExprAttributes a;
  a.axes = {2};
  EXPECT_NE(message(made(ExprOp::kSum, {x}, a)).find("dimension 2 of a tensor that has 2"), std::string::npos);
  a.axes = {};
  // 2^64 elements, which are none in 64 bits.
  a.shape = {4, int64_t{1} << 62};
  EXPECT_EQ(message(made(ExprOp::kReshape, {tensor(DType::kF32, {0})}, a)),
            "error: reshape: [0] has 0 elements and cannot become [4, 4611686018427387904]\n");
  a.shape = {};
  EXPECT_NE(message(made(ExprOp::kLayerNorm, {x, tensor(DType::kF32, {4})}, a)).find("must have [5]"),
            std::string::npos);
  a.shape = {int64_t{1} << 40, int64_t{1} << 30, 4, 5};
  EXPECT_NE(message(made(ExprOp::kExpand, {x}, a)).find("elements"), std::string::npos);
  a.shape = {3, 7};
  EXPECT_NE(message(made(ExprOp::kReshape, {x}, a)).find("20 elements"), std::string::npos);
}

TEST(ExprOps, EveryRowSaysHowItIsWritten) {
  for (const ExprOpInfo& row : kExprOps) {
    EXPECT_EQ(parse_expr_op(row.name), static_cast<ExprOp>(&row - kExprOps));
    EXPECT_TRUE(row.kind != ExprKind::kPointwise || row.name == "cast" || !row.text.empty()) << row.name;
    for (int i = 0; i < row.arity && row.kind == ExprKind::kPointwise && row.name != "cast"; ++i)
      EXPECT_NE(row.text.find("{" + std::to_string(i) + "}"), std::string_view::npos) << row.name;
  }
}

}  // namespace
}  // namespace kiln::fusion
