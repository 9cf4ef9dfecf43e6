// Plans of running sums: what joins their kernel, long rows in parts, and those that go from the end.
#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

class ScanTest : public PlanTest {
 protected:
  int flip(int x, int axis) {
    const Shape shape = p.graph.nodes[static_cast<size_t>(x)].shape;
    const auto d = static_cast<size_t>(axis);
    ExprAttributes counts, shaped, taken;
    counts.shape = {shape[d]};
    shaped.shape.assign(shape.size(), 1), shaped.shape[d] = shape[d];
    taken.axes = {axis};
    const int last = integer(shape[d] - 1);
    const int places = op(ExprOp::kReshape, {op(ExprOp::kSub, {last, op(ExprOp::kIota, {}, counts)})}, shaped);
    return op(ExprOp::kTake, {x, places}, taken);
  }
  int integer(int64_t v) {
    p.graph.nodes.push_back(scalar(v));
    p.tensors.resize(p.graph.nodes.size());
    p.elements.resize(p.graph.nodes.size());
    return static_cast<int>(p.graph.nodes.size()) - 1;
  }
};

TEST_F(ScanTest, RunningSumsTakeWhatIsAroundThem) {
  for (const Shape& shape :
       {Shape{5, 1000}, Shape{7, 33}, Shape{2, 3, 64}, Shape{3, 9001}, Shape{4, 1}, Shape{0, 3}, Shape{70}})
    for (ExprOp which : {ExprOp::kCumSum, ExprOp::kCumProd}) {
      p = {};
      const int x = tensor(DType::kF32, shape, "x"), y = op(ExprOp::kAbs, {op(ExprOp::kTanh, {x})});
      for (int along : {-1, 0}) {
        const int sums = axis(which, y, {along});
        const int after = op(ExprOp::kMul, {sums, x});
        for (const Machine& machine : {host_machine(), hopper_machine()}) {
          const Plan made = check({after, sums}, Variant::kFused, machine);
          EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
          check({after}, Variant::kUnfused, machine);
        }
      }
    }
}

TEST_F(ScanTest, WholeRowsAreReducedAndScannedInOneKernel) {
  for (const Machine& machine : {host_machine(), hopper_machine()})
    for (const Shape& shape : {Shape{300, 77}, {5, 1000}, {3, 20, 4096}}) {
      p = {};
      const int last = static_cast<int>(shape.size()) - 1;
      const int x = tensor(DType::kF32, shape, "x");
      // What is reduced is scanned, and what is scanned reduced and read by the elements again.
      const int sums = axis(ExprOp::kCumSum, axis(ExprOp::kSoftmax, x, {last}), {last});
      const int peaks = axis(ExprOp::kCumMax, x, {last}), below = op(ExprOp::kSub, {x, peaks});
      const int worst = axis(ExprOp::kMin, below, {last}, true);
      const Plan made = check({op(ExprOp::kAdd, {sums, worst}), worst, op(ExprOp::kMul, {worst, worst})},
                              Variant::kFused, machine, 0.5);
      EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
    }
  // Beyond what a program has at once, each has its loop.
  p = {};
  const int x = tensor(DType::kF32, {40, 4097}, "x");
  EXPECT_GT(check({axis(ExprOp::kMin, axis(ExprOp::kCumMax, x, {1}), {1})}).groups.size(), 1u);
}

TEST_F(ScanTest, PartsOfVeryLongRowsTellEachOtherTheirTotals) {
  struct Case {
    DType dtype;
    Shape shape;
    ExprOp op;
  };
  // One and several rows, totals of one word and of two, one group of parts and several; whole tiles and others.
  for (const Case& c :
       {Case{DType::kF32, {2, 2100000}, ExprOp::kCumSum}, Case{DType::kBF16, {8500001}, ExprOp::kCumMax},
        Case{DType::kI64, {3, 1, 704512}, ExprOp::kCumSum}, Case{DType::kF64, {2200000}, ExprOp::kCumMin},
        Case{DType::kU8, {2200001}, ExprOp::kCumSum}}) {
    p = {};
    const int x = tensor(c.dtype, c.shape, "x");
    const int sums = axis(c.op, x, {static_cast<int>(c.shape.size()) - 1});
    const Plan made = check({op(ExprOp::kAdd, {sums, x})}, Variant::kFused, hopper_machine());
    ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
    EXPECT_NE(made.groups[0].source.find("told_totals("), std::string::npos) << made.groups[0].source;
    // Wide sums of narrow elements are made before the wait.
    EXPECT_EQ(made.groups[0].source.find("look_at_totals(") != std::string::npos, c.dtype != DType::kU8);
  }
  // Totals of two words where all tensors are narrow.
  p = {};
  ExprAttributes narrow;
  narrow.dtype = DType::kI32;
  const int sums = axis(ExprOp::kCumSum, tensor(DType::kI32, {2200000}, "x"), {0});
  const Plan made = check({op(ExprOp::kCast, {sums}, narrow)}, Variant::kFused, hopper_machine());
  EXPECT_NE(made.groups[0].source.find("look_at_totals("), std::string::npos) << made.groups[0].source;
  // Two sums of one tensor have totals of their own.
  p = {};
  const int x = tensor(DType::kF32, {4200000}, "x"), y = op(ExprOp::kMul, {x, x});
  check({axis(ExprOp::kCumSum, x, {0}), axis(ExprOp::kCumSum, y, {0})}, Variant::kFused, hopper_machine());
}

TEST_F(ScanTest, ScansOfScansShareALoop) {
  // Running maxima and where they are; in loops along rows and down columns, held whole, and in parts that look back.
  for (const Shape& shape : {Shape{300, 6000}, {2000, 600}, {900, 300}, {4200001}, {2, 2100000}})
    for (const Machine& machine : {host_machine(), hopper_machine()}) {
      p = {};
      const int along = shape[0] == 2000 || shape[0] == 900 ? 0 : static_cast<int>(shape.size()) - 1;
      const int x = tensor(DType::kI32, shape, "x");  // of floats a comparison has no error to be checked by
      ExprAttributes counts, shaped, narrow, wide;
      counts.shape = {shape[static_cast<size_t>(along)]};
      shaped.shape.assign(shape.size(), 1), shaped.shape[static_cast<size_t>(along)] = counts.shape[0];
      narrow.dtype = DType::kI32, wide.dtype = DType::kI64;
      const int place = op(ExprOp::kReshape, {op(ExprOp::kCast, {op(ExprOp::kIota, {}, counts)}, narrow)}, shaped);
      const int peaks = axis(ExprOp::kCumMax, x, {along});
      const int found = op(ExprOp::kWhere, {op(ExprOp::kEq, {x, peaks}), place, integer(0)});
      const int places = op(ExprOp::kCast, {axis(ExprOp::kCumMax, found, {along})}, wide);
      const Plan made = check({peaks, places}, Variant::kFused, machine);
      EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
    }
}

TEST_F(ScanTest, FewLongColumnsAreManyParts) {
  p = {};
  const int x = tensor(DType::kF32, {100000, 3}, "x");
  const Plan made = check({axis(ExprOp::kCumSum, x, {0})}, Variant::kFused, hopper_machine());
  ASSERT_EQ(made.groups.size(), 2u);
  EXPECT_GE(made.groups[1].grid[0], 195) << "whole tiles of 512";
}

TEST_F(ScanTest, RunningSumsOfLongRowsAreSplit) {
  struct Case {
    Shape shape, strides;
    int along;
  };
  for (const Case& c : {Case{{150001}, {}, 0}, Case{{16 * 4096}, {}, 0}, Case{{3, 70001}, {}, 1},
                        Case{{3, 70001}, {1, 3}, 1}, Case{{2, 1, 66000, 1}, {}, 2}}) {
    p = {};
    const int x = tensor(DType::kF32, c.shape, "x", c.strides);
    // Products near 1, so that they stay numbers.
    const int y = op(ExprOp::kAdd, {op(ExprOp::kMul, {op(ExprOp::kTanh, {x}), number(0.0001)}), number(1)});
    const int sums = axis(ExprOp::kCumSum, x, {c.along}), products = axis(ExprOp::kCumProd, y, {c.along});
    const Plan made = check({op(ExprOp::kMul, {sums, x})}, Variant::kFused, hopper_machine());
    ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
    EXPECT_NE(made.groups[0].source.find("told_totals("), std::string::npos) << made.groups[0].source;
    EXPECT_GE(made.groups.back().grid[0], 16 * numel(c.shape) / c.shape[static_cast<size_t>(c.along)]);
    check({products, sums, axis(ExprOp::kSum, x, {c.along})}, Variant::kFused, hopper_machine());
    if (c.shape.size() > 1) continue;
    p.graph.outputs = {op(ExprOp::kMul, {sums, x})};
    for (const Configuration& other : made.groups.back().configurations) {
      auto ran = run(configured(made, made.groups.size() - 1, other), p, device);
      ASSERT_TRUE(ran.ok()) << render(ran.error());
      expect_close(p, *ran, "another configuration");
    }
    check({op(ExprOp::kExp, {products}), y}, Variant::kUnfused, hopper_machine());
    EXPECT_EQ(check({sums}).groups.size(), 1u);
  }
  // Totals of less than a word are reduced before.
  for (DType dtype : {DType::kU8, DType::kI16}) {
    p = {};
    const int peaks = axis(ExprOp::kCumMax, tensor(dtype, {150001}, "x"), {0});
    EXPECT_EQ(check({peaks}, Variant::kFused, hopper_machine()).groups.size(), 2u);
  }
}

TEST_F(ScanTest, SplitRunningSumsTakeWhatTheyScanFromOthers) {
  constexpr int64_t kCount = 70000;
  const int x = tensor(DType::kF64, {kCount}, "x");
  const int sums = axis(ExprOp::kCumSum, x, {0});
  const int again = axis(ExprOp::kCumSum, op(ExprOp::kAdd, {op(ExprOp::kMul, {sums, number(1e-3)}), x}), {0});
  EXPECT_EQ(check({again, sums}, Variant::kFused, hopper_machine()).groups.size(), 1u);
  // A tensor that is repeated along the row; of integers, since the sum of one float is rounded the same way every
  // time.
  ExprAttributes a;
  a.shape = {3, kCount};
  const int same = op(ExprOp::kExpand, {tensor(DType::kI32, {3, 1}, "y")}, a);
  check({axis(ExprOp::kCumSum, same, {1})}, Variant::kFused, hopper_machine());
}

TEST_F(ScanTest, RunningSumsOfSplitRowsAreExactForIntegers) {
  constexpr size_t kCount = 200003;
  std::vector<double> v(kCount);
  for (double& e : v) e = static_cast<double>(random() % 2000001) - 1e6;
  const int x = add_input(p, device, DType::kI32, {kCount}, {1}, 0, v, "x");
  const Plan made = check({axis(ExprOp::kCumSum, x, {0})}, Variant::kFused, hopper_machine());
  ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
  auto ran = run(made, p, device);
  ASSERT_TRUE(ran.ok()) << render(ran.error());
  const std::vector<double> got = *ran->at(0).to_doubles();
  double sum = 0;
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i], sum += v[i]) << i;
}

TEST_F(ScanTest, InfinitiesStayBehindTheirPlaceInSplitRunningSums) {
  constexpr size_t kCount = 100000, kInfinite = 40000, kNan = 80000;
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> v(kCount, 1);
  v[kInfinite] = inf, v[kNan] = std::numeric_limits<double>::quiet_NaN();
  const int x = add_input(p, device, DType::kF32, {kCount}, {1}, 0, v, "x");
  p.graph.outputs = {axis(ExprOp::kCumSum, x, {0}), axis(ExprOp::kCumProd, x, {0})};
  auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
  ASSERT_TRUE(made.ok()) << render(made.error());
  auto ran = run(*made, p, device);
  ASSERT_TRUE(ran.ok()) << render(ran.error());
  const std::vector<double> sums = *ran->at(0).to_doubles(), products = *ran->at(1).to_doubles();
  for (size_t i = 0; i < kCount; ++i) {
    SCOPED_TRACE(i);
    if (i < kInfinite) {
      ASSERT_EQ(sums[i], static_cast<double>(i + 1));
      ASSERT_EQ(products[i], 1);
    } else if (i < kNan) {
      ASSERT_EQ(sums[i], inf);
      ASSERT_EQ(products[i], inf);
    } else {
      ASSERT_TRUE(std::isnan(sums[i]) && std::isnan(products[i]));
    }
  }
}

TEST_F(ScanTest, RowsThatBeginAnywhereTakeNothingOfOthers) {
  // Whole and in parts, of several types; an infinity begins a row and a NaN ends one.
  constexpr size_t kInfinite = 77, kNan = 20;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& shape : {Shape{140, 1027}, Shape{140, 5001}, Shape{141, 9001}})
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI64, DType::kU8}) {
      SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(shape[1]));
      const bool floats = dtype != DType::kI64 && dtype != DType::kU8;
      const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
      std::vector<double> v(rows * columns);
      for (double& e : v) e = random() % 64 == 0 ? 1 : 0;  // whose sums are exact in halves
      if (floats) v[kInfinite * columns] = inf, v[kNan * columns + columns - 1] = nan;
      p = {};
      const int x = add_input(p, device, dtype, shape, {shape[1], 1}, 0, v, "x");
      p.graph.outputs = {axis(ExprOp::kCumSum, x, {1})};
      auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
      ASSERT_TRUE(made.ok()) << render(made.error());
      ASSERT_EQ(made->groups.size(), 1u) << plan_text(*made);
      if (dtype == DType::kF32 || dtype == DType::kBF16) {
        EXPECT_NE(made->groups[0].source.find("load_in_runs("), std::string::npos) << made->groups[0].source;
      }
      // Wide sums of narrow elements are whole up to half as many.
      EXPECT_EQ(made->groups[0].source.find("told_totals(") != std::string::npos,
                shape[1] > (dtype == DType::kU8 ? 4096 : 8192));
      auto ran = run(*made, p, device);
      ASSERT_TRUE(ran.ok()) << render(ran.error());
      const std::vector<double> got = *ran->at(0).to_doubles();
      for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t i = r * columns; i < (r + 1) * columns; ++i) {
          sum += v[i];
          ASSERT_TRUE(got[i] == sum || (std::isnan(got[i]) && std::isnan(sum))) << r << " " << i << ": " << got[i];
        }
      }
    }
}

TEST_F(ScanTest, ThoseBetweenTwoFlipsGoBackwards) {
  for (const Machine& machine : {host_machine(), hopper_machine()})
    for (const Shape& shape : {Shape{300, 77}, {33, 256}, {200, 5000}, {3, 9001}, {5, 1}, {4, 1000, 3}, {70}})
      for (ExprOp which : {ExprOp::kCumSum, ExprOp::kCumProd, ExprOp::kCumMax, ExprOp::kCumMin})
        for (size_t d = 0; d < shape.size(); ++d) {
          p = {};
          const int along = static_cast<int>(d);
          const int x = tensor(DType::kF32, shape, "x"), y = op(ExprOp::kTanh, {x});
          const int back = flip(axis(which, flip(y, along), {along}), along);
          const Plan made = check({op(ExprOp::kSub, {back, x}), back}, Variant::kFused, machine);
          EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
          if (shape[0] != 300) continue;
          // Both ways, the inner flip read by others too, and a flip of another dimension.
          const int turned = flip(y, along), sums = axis(which, turned, {along});
          check({op(ExprOp::kAdd, {axis(which, y, {along}), flip(sums, along)}), turned}, Variant::kFused, machine);
          check({flip(axis(which, turned, {1 - along}), along)}, Variant::kFused, machine);
          check({flip(sums, along), sums}, Variant::kFused, machine);
        }
  // Parts of long rows add up those before them: the flips stay.
  p = {};
  const int x = tensor(DType::kI32, {200003}, "x");
  check({flip(axis(ExprOp::kCumSum, flip(x, 0), {0}), 0)}, Variant::kFused, hopper_machine());
}

TEST_F(ScanTest, OfWhichTheEndsAloneAreReadAreReductions) {
  for (const Machine& machine : {host_machine(), hopper_machine()})
    for (const Shape& shape : {Shape{300, 77}, {2, 9001}, {4, 1000, 3}, {5, 1}, {70}})
      for (ExprOp which : {ExprOp::kCumSum, ExprOp::kCumProd, ExprOp::kCumMax, ExprOp::kCumMin})
        for (size_t d = 0; d < shape.size(); ++d) {
          p = {};
          const int x = tensor(DType::kF32, shape, "x"), y = op(ExprOp::kTanh, {x});
          const int scan = axis(which, y, {static_cast<int>(d)});
          ExprAttributes end, flat;
          end.shape = shape, end.starts.assign(shape.size(), 0), end.steps.assign(shape.size(), 1);
          end.shape[d] = 1, end.starts[d] = shape[d] - 1;
          flat.shape = {numel(end.shape)};
          const int last = op(ExprOp::kSlice, {scan}, end), doubled = op(ExprOp::kAdd, {last, last});
          const Plan made = check({doubled, op(ExprOp::kReshape, {last}, flat), op(ExprOp::kMul, {last, y})},
                                  Variant::kFused, machine);
          EXPECT_EQ(plan_text(made).find("running"), std::string::npos) << plan_text(made);
          check({doubled}, Variant::kUnfused, machine);
          // Others read all of it, or the end but one.
          check({doubled, scan}, Variant::kFused, machine);
          if (shape[d] == 1) continue;
          end.shape[d] = 2, end.starts[d] = shape[d] - 2;
          check({op(ExprOp::kSlice, {scan}, end)}, Variant::kFused, machine);
          end.shape[d] = 1;
          check({op(ExprOp::kSlice, {scan}, end)}, Variant::kFused, machine);
        }
}

}  // namespace
}  // namespace kiln::fusion::testing
