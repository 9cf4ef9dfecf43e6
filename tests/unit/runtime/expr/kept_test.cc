// What is stored beside results, since it would be computed once more by what comes later.
#include "runtime/expr/node.h"
#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

Expr product(const Expr& a, const Expr& b) { return op(ExprOp::kMatMul, {a, b}); }

/// One residual block of a model.
Expr block(const Expr& x, const Tensor& w) { return op(ExprOp::kAdd, {x, product(op(ExprOp::kTanh, {x}), w)}); }

TEST(ExprKept, WhatTheNextBlockAddsToIsStoredOnce) {
  const Tensor w = random_tensor({32, 32}, 1), q = random_tensor({32, 8}, 2);
  Expr x = block(Expr(random_tensor({96, 32}, 3)), w);
  for (int i = 0; i < 4; ++i) {
    // As attention does, each block computes something of what it begins with, which the next one needs as well.
    const Expr query = product(x, q);
    ASSERT_TRUE(run_and_keep({&query, 1}).ok());
    EXPECT_TRUE(query.tensor());
    EXPECT_TRUE(x.tensor()) << "the next block would compute all those before it";
    x = block(x, w);
    EXPECT_EQ(x.operations(), 3);
  }
}

TEST(ExprKept, WhatNobodyHoldsIsNotStored) {
  const Tensor a = random_tensor({96, 32}, 1), w = random_tensor({32, 32}, 2);
  const Expr sum = op(ExprOp::kTanh, {op(ExprOp::kAdd, {product(a, w), Expr::scalar(1.0)})});
  const Expr cheap = op(ExprOp::kMul, {a, Expr::scalar(2.0)});
  const Expr result = op(ExprOp::kAdd, {sum, cheap});
  ASSERT_TRUE(run_and_keep({&result, 1}).ok());
  EXPECT_TRUE(sum.tensor()) << "a variable holds it, and there is a product in it";
  EXPECT_FALSE(cheap.tensor()) << "to compute it again is no more than to read it";
  EXPECT_TRUE(cheap.was_part());
}

/// As with run(): to look for what is kept must not count as another holder of what the view sees.
TEST(ExprKept, WhatOneViewSeesLiesAsItsInput) {
  ExprAttributes swapped;
  swapped.axes = {1, 0};
  const Expr x = op(ExprOp::kPermute, {random_tensor({61, 83}, 1)}, swapped);
  const Expr view = op(ExprOp::kPermute, {op(ExprOp::kExp, {x})}, swapped);
  ASSERT_TRUE(run_and_keep({&view, 1}).ok());
  EXPECT_TRUE(view.tensor()->is_contiguous());
  const Expr held = op(ExprOp::kExp, {x}), view_of_held = op(ExprOp::kPermute, {held}, swapped);
  ASSERT_TRUE(run_and_keep({&view_of_held, 1}).ok());
  EXPECT_TRUE(held.tensor()->is_contiguous());
}

TEST(ExprKept, GradientsReadWhatTheyNeedOfProducts) {
  const GradScope scope;
  const Expr x = *scope.variable(Expr(random_tensor({96, 32}, 1))),
             w = *scope.variable(Expr(random_tensor({32, 32}, 2)));
  auto count = [&](ExprOp behind) {
    // Nobody holds the product here but what is made of it, which records.
    const Expr result = product(op(behind, {op(ExprOp::kAdd, {product(x, w), Expr(random_tensor({32}, 3))})}), w);
    EXPECT_TRUE(run_and_keep({&result, 1}).ok());
    int stored = 0;
    for (const auto* n = result.node(); !n->operands.empty(); n = n->operands[0].get()) stored += bool(n->value);
    return stored;
  };
  EXPECT_EQ(count(ExprOp::kTanh), 2) << "the result, and that of tanh, of which its gradient is made";
  EXPECT_EQ(count(ExprOp::kGelu), 3) << "and what gelu was computed from";
}

TEST(ExprKept, OperationsAreBoundedWithoutAWalk) {
  Expr x(random_tensor({4}, 1));
  for (int i = 1; i <= 60; ++i) {
    x = op(ExprOp::kAdd, {x, x});
    EXPECT_TRUE(x.has_operations(i));
    EXPECT_FALSE(x.has_operations(i + 1)) << "what both operands have in common counts once";
  }
}

}  // namespace
}  // namespace kiln
