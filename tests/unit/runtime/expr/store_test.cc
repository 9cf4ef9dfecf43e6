// Values that go into tensors that are there: what is read is the old elements, wherever they are written.
#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

Tensor tensor_of(const std::vector<double>& values, const Shape& shape) {
  std::vector<float> floats(values.begin(), values.end());
  return *Tensor::from_host(cpu(), DType::kF32, shape, floats.data(), floats.size() * sizeof(float));
}

TEST(ExprStore, ReadsBeforeItWrites) {
  const uint64_t seed = fresh_seed();
  const Shape shape = {64, 65};
  const Tensor a = random_tensor(shape, seed), b = random_tensor(shape, seed + 1);
  const std::vector<double> was_a = numbers(a), was_b = numbers(b);
  // In place, and crosswise: each reads what the other overwrites.
  const Expr twice = op(ExprOp::kMul, {a, Expr::scalar(int64_t{2})});
  const ExprStore crosswise[] = {{op(ExprOp::kAdd, {twice, b}), a}, {op(ExprOp::kSub, {b, a}), b}};
  ASSERT_TRUE(run_into(crosswise).ok());
  const std::vector<double> now_a = numbers(a), now_b = numbers(b);
  for (size_t i = 0; i < was_a.size(); ++i) {
    EXPECT_EQ(static_cast<float>(now_a[i]), static_cast<float>(2 * was_a[i]) + static_cast<float>(was_b[i]));
    EXPECT_EQ(static_cast<float>(now_b[i]), static_cast<float>(was_b[i]) - static_cast<float>(was_a[i]));
  }
}

TEST(ExprStore, KeepsWhatIsReadElsewhere) {
  // Each element goes where another one is still to be read.
  const Tensor a = tensor_of({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  const Expr turned = op(ExprOp::kPermute, {a}, along({1, 0}));
  const ExprStore sum[] = {{op(ExprOp::kAdd, {turned, Expr::scalar(int64_t{10})}), a}};
  ASSERT_TRUE(run_into(sum).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{11, 14, 17, 12, 15, 18, 13, 16, 19}));
  // A view alone is a copy.
  const ExprStore view[] = {{op(ExprOp::kPermute, {a}, along({1, 0})), a}};
  ASSERT_TRUE(run_into(view).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{11, 12, 13, 14, 15, 16, 17, 18, 19}));
  // Rows are read as wholes.
  const Expr mean = op(ExprOp::kMean, {a}, along({1}, true));
  const ExprStore centred[] = {{op(ExprOp::kSub, {a, mean}), a}};
  ASSERT_TRUE(run_into(centred).ok());
  EXPECT_EQ(numbers(a), (std::vector<double>{-1, 0, 1, -1, 0, 1, -1, 0, 1}));
}

TEST(ExprStore, CountsLeaves) {
  const Tensor a = random_tensor({8, 8}, 1), b = random_tensor({8, 8}, 2);
  const Expr left(a), right(a), sum = op(ExprOp::kAdd, {op(ExprOp::kMul, {left, right}), b});
  const Expr exprs[] = {sum, op(ExprOp::kExp, {left})};
  EXPECT_EQ(count_leaves(exprs, a.storage().get()), 2);
  EXPECT_EQ(count_leaves(exprs, b.storage().get()), 1);
}

/// Running sums down matrices of few columns are scanned in parts, whose ends tiles have to meet.
TEST(ExprPlan, ScansColumnsInParts) {
  for (const Shape& shape : {Shape{16384, 64}, {5000, 7}, {100000, 3}, {20000, 200}, {70001, 1}, {1025, 65}}) {
    const Tensor x = *Tensor::empty(cpu(), DType::kI64, shape);
    auto made = plan_for(op(ExprOp::kCumSum, {x}, along({0})), "sm_90a");
    ASSERT_TRUE(made.ok()) << made.error().message;
    if (shape[0] == 16384) EXPECT_EQ(made->plan.groups.size(), 2u) << "totals of parts, and the parts";
  }
}

}  // namespace
}  // namespace kiln
