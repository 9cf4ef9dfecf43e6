// Reductions of columns, and of tensors whose dimensions lie in another order than their view has.
#include <algorithm>

#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {

namespace {

class ColumnsTest : public PlanTest {
 protected:
  int permuted(int x, std::vector<int> axes) {
    ExprAttributes a;
    a.axes = std::move(axes);
    return op(ExprOp::kPermute, {x}, std::move(a));
  }
  /// Sinkhorn's steps on the transpose of x: rows and columns take turns to sum to one.
  int balanced(int x, int steps) {
    int q = permuted(op(ExprOp::kExp, {x}), {1, 0});
    for (int i = 0; i < steps; ++i)
      for (int d : {1, 0}) q = op(ExprOp::kDiv, {q, axis(ExprOp::kSum, q, {d}, /*keepdim=*/true)});
    return q;
  }
};

/// Rows of a transposed matrix are its columns: few programs take them in parts, as they do where nothing is
/// transposed.
TEST_F(ColumnsTest, RowsOfATransposedMatrixAreItsColumns) {
  const Machine gpu = hopper_machine();
  for (const Shape& s : {Shape{2142, 512}, Shape{1027, 131}, Shape{700, 67}}) {
    p = {};
    const int x = tensor(DType::kF32, s, "x");
    const Plan as_it_lies = check({axis(ExprOp::kSum, op(ExprOp::kExp, {x}), {0})}, Variant::kFused, gpu);
    p = {};
    const int y = tensor(DType::kF32, s, "x");
    const Plan made = check({axis(ExprOp::kSum, op(ExprOp::kExp, {permuted(y, {1, 0})}), {1})}, Variant::kFused, gpu);
    ASSERT_EQ(made.groups.size(), as_it_lies.groups.size()) << plan_text(made);
    EXPECT_EQ(made.groups[0].grid, as_it_lies.groups[0].grid) << plan_text(made);
    EXPECT_EQ(made.groups[0].source, as_it_lies.groups[0].source);
  }
}

/// Temporaries lie as what they are computed from does, and so does a result whose view is row-major then.
TEST_F(ColumnsTest, TemporariesLieAsTheirInputs) {
  for (const Machine& machine : {hopper_machine(), host_machine()})
    for (const Shape& s : {Shape{1155, 512}, Shape{333, 1029}, Shape{61, 100}}) {
      p = {};
      const int q = balanced(tensor(DType::kF32, s, "x"), 3);
      const Plan made = check({permuted(op(ExprOp::kMul, {q, number(3)}), {1, 0})}, Variant::kFused, machine);
      for (const Value& v : made.values) {
        if (numel(v.shape) == numel(s)) {
          EXPECT_EQ(v.shape, s) << plan_text(made);
        }
      }
      EXPECT_EQ(made.outputs[0].strides, row_major(s));
    }
}

/// What is only seen in another order lies as what it is computed from does: its last kernel stores rows that it has.
TEST_F(ColumnsTest, ResultsOfAnyOrderLieAsTheirInputs) {
  for (const Machine& machine : {hopper_machine(), host_machine()})
    for (const Shape& s : {Shape{1155, 512}, Shape{333, 1029}, Shape{61, 100}}) {
      p = {};
      const int scaled = op(ExprOp::kMul, {balanced(tensor(DType::kF32, s, "x"), 2), number(3)});
      p.graph.any_order = {true};
      const Plan made = check({scaled}, Variant::kFused, machine);
      EXPECT_EQ(made.outputs[0].shape, (Shape{s[1], s[0]}));
      EXPECT_EQ(made.outputs[0].strides, (Shape{1, s[1]}));
    }
}

/// Each pair of a row's and a column's value has a register for its sum: blocks end with the columns, where 200 of them
/// would be two blocks of 128.
TEST_F(ColumnsTest, PairsHaveBlocksThatEndWithTheirColumns) {
  const int x = tensor(DType::kF32, {690, 192, 1}, "x"), y = tensor(DType::kF32, {690, 1, 200}, "y");
  p.graph.outputs = {axis(ExprOp::kMean, op(ExprOp::kSub, {y, x}), {2})};
  const auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
  ASSERT_TRUE(made.ok()) << render(made.error());
  ASSERT_EQ(made->groups.size(), 1u) << plan_text(*made);
  const auto block = std::ranges::find(made->groups[0].arguments, "BLOCK", &Argument::name);
  ASSERT_NE(block, made->groups[0].arguments.end());
  EXPECT_EQ(std::get<int64_t>(block->value), 32);
}

/// A result keeps the order of its dimensions, whatever it is computed from.
TEST_F(ColumnsTest, ResultsStayRowMajor) {
  for (const Machine& machine : {hopper_machine(), host_machine()})
    for (const Shape& s : {Shape{1155, 512}, Shape{61, 100}}) {
      p = {};
      const Plan made = check({balanced(tensor(DType::kF32, s, "x"), 2)}, Variant::kFused, machine);
      EXPECT_EQ(made.outputs[0].strides, row_major(made.outputs[0].shape));
    }
}

/// Several dimensions are kept or reduced, in any order, of what is read by others as well.
TEST_F(ColumnsTest, DimensionsInAnyOrder) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    for (const std::vector<int>& axes : {std::vector<int>{0}, {3}, {1, 3}, {0, 2}, {0, 1, 2}})
      for (const Machine& machine : {hopper_machine(), host_machine()}) {
        p = {};
        const int x = tensor(DType::kF32, {5, 7, 6, 33}, "x");
        const int y = op(ExprOp::kMul, {permuted(x, order), number(2)});
        const int sum = axis(ExprOp::kSum, y, axes, /*keepdim=*/true), least = axis(ExprOp::kMin, y, axes);
        check({op(ExprOp::kSub, {y, sum}), op(ExprOp::kExp, {sum}), least}, Variant::kFused, machine, /*tight=*/0.5);
      }
  } while (std::ranges::next_permutation(order).found);
}

/// Of columns in parts, whichever program of those with the same ones does: they are more than a program reduces.
TEST_F(ColumnsTest, TheLastProgramOfColumnsReducesTheirParts) {
  struct Case {
    Shape shape;
    bool joins;
  };
  for (const Case& c : {Case{{2142, 512}, true}, Case{{1300, 1003}, true}, Case{{700, 4097}, true},
                        Case{{3, 1040, 520}, true}, Case{{1024, 20000}, false}}) {
    p = {};
    const int columns = static_cast<int>(c.shape.size()) - 2;
    const int x = tensor(DType::kF32, c.shape, "x"), scale = tensor(DType::kF32, {c.shape.back()}, "scale");
    const int sum = axis(ExprOp::kSum, op(ExprOp::kMul, {x, x}), {columns});
    const Plan made = check({op(ExprOp::kMul, {sum, scale})}, Variant::kFused, hopper_machine(), /*tight=*/0.3);
    EXPECT_EQ(made.groups[0].ends_by_rows, c.joins) << plan_text(made);
    if (!c.joins) continue;
    EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
    EXPECT_EQ(kernels_apart(hopper_machine()), 2u);
  }
}

}  // namespace

}  // namespace kiln::fusion::testing
