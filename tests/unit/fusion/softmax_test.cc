// Plans of softmaxes and sums of exponentials of few long rows: parts with maxima of their own, and what joins them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

class SoftmaxTest : public PlanTest {
 protected:
  /// log(sum(exp(x))) along the last dimension, as torch computes it: below the maximum where that is finite.
  int logsumexp(int x, bool keepdim = false) {
    const int top = axis(ExprOp::kMax, x, {-1}, true);
    const int is_finite = op(ExprOp::kLt, {op(ExprOp::kAbs, {top}), number(std::numeric_limits<double>::infinity())});
    const int away = op(ExprOp::kWhere, {is_finite, top, number(0)});
    const int below = op(ExprOp::kExp, {op(ExprOp::kSub, {x, away})});
    const int sum = op(ExprOp::kAdd, {op(ExprOp::kLog, {axis(ExprOp::kSum, below, {-1}, true)}), away});
    return keepdim ? sum : axis(ExprOp::kSum, sum, {-1});
  }
  static bool has_parts(const Plan& plan) {
    return std::ranges::find(plan.values, "sum_of_part", &Value::name) != plan.values.end();
  }
};

TEST_F(SoftmaxTest, LongRowsAreReadOnceForTheirSums) {
  struct Case {
    DType dtype;
    Shape shape;
    bool has_rest;
  };
  for (const Case& c : {Case{DType::kF32, {3, 131072}, false}, Case{DType::kBF16, {2, 128256}, false},
                        Case{DType::kF32, {100003}, true}, Case{DType::kF64, {1, 90001}, true}}) {
    p = {};
    const int x = tensor(c.dtype, c.shape, "x");
    const Plan soft = check({axis(ExprOp::kSoftmax, x, {-1})}, Variant::kFused, hopper_machine(), 0.8);
    EXPECT_TRUE(has_parts(soft)) << plan_text(soft);
    // The parts, what joins them, and the elements; a rest is a row of its own.
    EXPECT_EQ(kernels_apart(hopper_machine()), c.has_rest ? 4U : 3U) << plan_text(soft);
    EXPECT_EQ(soft.groups.size(), 2U) << plan_text(soft);
    const Plan log = check({axis(ExprOp::kLogSoftmax, x, {-1})}, Variant::kFused, hopper_machine(), 0.8);
    EXPECT_TRUE(has_parts(log)) << plan_text(log);
    const Plan sum = check({logsumexp(x, true)}, Variant::kFused, hopper_machine(), -1);
    EXPECT_TRUE(has_parts(sum)) << plan_text(sum);
    EXPECT_EQ(kernels_apart(hopper_machine()), c.has_rest ? 3U : 2U) << plan_text(sum);
    EXPECT_EQ(sum.groups.size(), 1U) << plan_text(sum);
    check({axis(ExprOp::kSoftmax, x, {-1})}, Variant::kUnfused, hopper_machine(), 0.8);
  }
}

// Rows that are read apart: what joins the parts is stored for each row, and the rest is computed where it is read.
TEST_F(SoftmaxTest, RowsAreReadApart) {
  const int x = axis(ExprOp::kLogSoftmax, tensor(DType::kBF16, {4, 128256}, "x"), {-1});
  const auto half = [&](int64_t first) {
    ExprAttributes a;
    a.shape = {2, 128256}, a.starts = {first, 0}, a.steps = {1, 1};
    return op(ExprOp::kSlice, {x}, a);
  };
  const int a = half(0), b = half(2);
  const Plan made = check({op(ExprOp::kAdd, {op(ExprOp::kMul, {op(ExprOp::kSub, {a, b}), number(1.5)}), b})},
                          Variant::kFused, hopper_machine(), 0.8);
  EXPECT_EQ(kernels_apart(hopper_machine()), 3U) << plan_text(made);
  EXPECT_EQ(made.groups.size(), 2U) << plan_text(made);
}

TEST_F(SoftmaxTest, OtherRowsStayAsTheyWere) {
  for (const Shape& s : {Shape{600, 4096}, Shape{3, 20000}, Shape{100000, 3}}) {
    p = {};
    const int x = tensor(DType::kF32, s, "x");
    const Plan made = check({axis(ExprOp::kSoftmax, x, {s[1] == 3 ? 0 : 1})}, Variant::kFused, hopper_machine(), 0.8);
    EXPECT_FALSE(has_parts(made)) << plan_text(made);
  }
}

// Parts without a finite element add nothing, and make no NaN where the row has none.
TEST_F(SoftmaxTest, InfiniteElements) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr int64_t kColumns = 131072;
  const Shape shape = {5, kColumns};
  std::vector<double> v(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < v.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / kColumns, column = static_cast<int64_t>(i) % kColumns;
    v[i] = normal(random);
    if (row == 0 && column < 60000) v[i] = -kInf;       // whole parts
    if (row == 1) v[i] = column == 100000 ? 3 : -kInf;  // all but one
    if (row == 2 && column == 77) v[i] = kInf;          // a sum that is infinite
    if (row == 3) v[i] = -kInf;                         // no element at all
    if (row == 4 && column == 99) v[i] = std::nan("");
  }
  const int x = add_input(p, device, DType::kF32, shape, row_major(shape), 0, v, "x");
  const Plan soft = check({axis(ExprOp::kSoftmax, x, {-1}), axis(ExprOp::kLogSoftmax, x, {-1})}, Variant::kFused,
                          hopper_machine(), -1);
  EXPECT_TRUE(has_parts(soft)) << plan_text(soft);
  EXPECT_TRUE(has_parts(check({logsumexp(x)}, Variant::kFused, hopper_machine(), -1)));
}

}  // namespace
}  // namespace kiln::fusion::testing
