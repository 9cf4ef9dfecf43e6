// What is computed again for each of its readers, and what is stored instead: by what either takes on an H200.
#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

/// A product's large tile leaves no registers for tensors that come element by element.
TEST_F(PlanTest, OddRowsBesideAProductAreReadByAKernelOfTheirOwn) {
  constexpr int64_t rows = 1000;
  Machine few = hopper_machine();
  few.multiprocessors = 8;
  for (const auto& [columns, groups, machine] :
       {std::tuple<int64_t, size_t, Machine>{432, 1, few}, {429, 2, few}, {429, 1, hopper_machine()}}) {
    p = {};
    const Shape shape = {rows, columns};
    const int x = tensor(DType::kF16, {rows, 64}, "x"), w = tensor(DType::kF16, {64, columns}, "w", {1, 64});
    const int xw = op(ExprOp::kAdd, {op(ExprOp::kMatMul, {x, w}), tensor(DType::kF16, {columns}, "b")});
    const int y = op(ExprOp::kMul, {xw, tensor(DType::kF16, shape, "y")});
    const int z = op(ExprOp::kAdd, {y, tensor(DType::kF16, shape, "z")});
    const Plan made = check({z}, Variant::kFused, machine);
    EXPECT_EQ(made.groups.size(), groups) << columns;
    if (groups == 2) {
      EXPECT_EQ(made.groups[1].source.find("b_ptr"), std::string::npos) << "the bias stays with the product";
    }
    EXPECT_EQ(check({xw}, Variant::kFused, machine).groups.size(), 1u) << "a bias is a row";
  }
}

/// A launch costs more than the roots of a graph's nodes for each of its edges.
TEST_F(PlanTest, FewElementsAreComputedWhereTheyAreLookedUp) {
  const int nodes = tensor(DType::kF32, {33, 1}, "nodes"), edges = tensor(DType::kI64, {700}, "edges");
  const int root = op(ExprOp::kExp, {nodes});
  EXPECT_EQ(check({take_rows(root, edges)}, Variant::kFused, hopper_machine()).groups.size(), 1u);
  p = {};  // what follows a sum is in the kernel of the sum
  const int rows = tensor(DType::kF32, {33, 500}, "rows"), many = tensor(DType::kI64, {5000}, "edges");
  const int sums = op(ExprOp::kExp, {axis(ExprOp::kMean, rows, {1}, true)});
  const Plan made = check({take_rows(sums, many)}, Variant::kFused, hopper_machine());
  ASSERT_EQ(made.groups.size(), 2u);
  EXPECT_EQ(made.groups[1].source.find("tl.exp"), std::string::npos) << made.groups[1].source;
}

/// A table of many instructions for each of its elements is stored where many repeat it.
TEST_F(PlanTest, CostlyTablesAreStoredForThoseWhoRepeatThem) {
  for (const auto& [batch, groups] : {std::pair<int64_t, size_t>{2, 1}, {16, 2}}) {
    p = {};
    int t = op(ExprOp::kAdd, {tensor(DType::kF32, {256, 1}, "a"), tensor(DType::kF32, {1, 256}, "b")});
    for (int i = 0; i < 6; ++i) t = op(ExprOp::kDiv, {number(3), op(ExprOp::kAdd, {op(ExprOp::kAbs, {t}), number(1)})});
    const int y = op(ExprOp::kAdd, {tensor(DType::kF32, {batch, 256, 256}, "y"), op(ExprOp::kLog, {t})});
    EXPECT_EQ(check({y}, Variant::kFused, hopper_machine()).groups.size(), groups);
  }
}

/// What eight rows share is read from the caches: a thread has as many elements as the others fill words with.
TEST_F(PlanTest, SharedRowsDoNotMakeProgramsSmall) {
  const int shared = op(ExprOp::kCast, {tensor(DType::kF32, {256, 1, 512}, "shared")}, [] {
    ExprAttributes a;
    a.dtype = DType::kF16;
    return a;
  }());
  const int y = op(ExprOp::kAdd, {shared, tensor(DType::kF16, {256, 8, 512}, "y")});
  EXPECT_EQ(check({y}, Variant::kFused, hopper_machine()).groups.at(0).grid[0], 1024);
}

/// A processor stores a sector for each element of a row that goes across: few such rows are in parts.
TEST_F(PlanTest, FewRowsThatAreStoredAcrossHaveParts) {
  for (const bool transposed : {false, true}) {
    p = {};
    const int x = tensor(DType::kF32, {5, 128, 101}, "x");
    const int top = axis(ExprOp::kMax, x, {1, 2}, true);
    int y = op(ExprOp::kMaximum, {x, op(ExprOp::kSub, {top, number(3)})});
    ExprAttributes order;
    order.axes = {0, 2, 1};
    if (transposed) y = op(ExprOp::kPermute, {y}, order);
    if (transposed) y = op(ExprOp::kMatMul, {y, tensor(DType::kF32, {128, 40}, "w")});
    const Plan made = check({y}, Variant::kFused, hopper_machine());
    EXPECT_EQ(made.groups.at(0).grid[0] > 5, transposed) << plan_text(made);
  }
}

}  // namespace
}  // namespace kiln::fusion::testing
