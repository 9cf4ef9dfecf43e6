// Plans of named expressions, carried out on the cpu device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion::testing {
namespace {

TEST_F(PlanTest, AChainOfElementsIsOneKernel) {
  const int x = tensor(DType::kBF16, {1003}, "x"), y = tensor(DType::kBF16, {1003}, "y");
  const int sum = op(ExprOp::kAdd, {op(ExprOp::kMul, {x, number(2)}), y});
  const int out = op(ExprOp::kSub, {op(ExprOp::kMul, {op(ExprOp::kGelu, {sum}), op(ExprOp::kSigmoid, {y})}), x});
  const Plan fused = check({out});
  EXPECT_EQ(fused.groups.size(), 1u);
  EXPECT_EQ(fused.bytes(), 3 * 1003 * 2);
  EXPECT_EQ(check({out}, Variant::kUnfused).groups.size(), 6u);
}

TEST_F(PlanTest, SoftmaxIsOneKernel) {
  for (const Shape& shape : {Shape{5, 1000}, Shape{7, 33}, Shape{2, 3, 64}, Shape{3, 40000}, Shape{4, 1}}) {
    p = {};
    const int x = tensor(DType::kF32, shape, "x");
    const Plan made = check({axis(ExprOp::kSoftmax, x, {-1})});
    EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
  }
}

TEST_F(PlanTest, NormsWithResidualsGiveTwoOutputsFromOneKernel) {
  const int h = op(ExprOp::kAdd, {tensor(DType::kBF16, {6, 200}, "x"), tensor(DType::kBF16, {6, 200}, "r")});
  const int y = op(ExprOp::kLayerNorm, {h, tensor(DType::kBF16, {200}, "w"), tensor(DType::kBF16, {200}, "b")});
  const Plan made = check({y, h});
  EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
  EXPECT_EQ(made.outputs.size(), 2u);
}

TEST_F(PlanTest, LongReductionsAreSplitAndExact) {
  const int x = tensor(DType::kF32, {1, 150001}, "x");
  const Plan both = check({axis(ExprOp::kSum, x, {1}), axis(ExprOp::kMax, x, {1})});
  EXPECT_EQ(both.groups.size(), 2u) << plan_text(both);  // the parts of both share a kernel, and what joins them
  EXPECT_EQ(check({axis(ExprOp::kVar, x, {})}).groups.size(), 4u);
}

TEST_F(PlanTest, RowsGoWhereTheirOldValuesWere) {
  // Running statistics may be overwritten; what the rows' own elements are computed from may not.
  for (bool used : {false, true}) {
    p = {};
    const int x = tensor(DType::kF32, {60, 700}, "x"), running = tensor(DType::kF32, {60}, "running");
    const int mean = axis(ExprOp::kMean, x, {1});
    const int updated = op(ExprOp::kAdd, {op(ExprOp::kMul, {running, number(0.9)}), mean});
    ExprAttributes column;
    column.shape = {60, 1};
    const int centre = op(ExprOp::kReshape, {used ? op(ExprOp::kAdd, {mean, running}) : mean}, column);
    for (const Machine& machine : {host_machine(), hopper_machine()}) {
      const Plan made = check({op(ExprOp::kSub, {x, centre}), updated}, Variant::kFused, machine);
      ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
      const auto& in_place = made.groups[0].in_place;
      ASSERT_EQ(in_place.size(), used ? 0u : 1u) << plan_text(made);
      if (used) continue;
      EXPECT_EQ(in_place[0].first, made.outputs[1].value);
      EXPECT_EQ(made.values.at(static_cast<size_t>(in_place[0].second)).name, "running");
    }
  }
}

TEST_F(PlanTest, CheapValuesAreComputedAgain) {
  // A bf16 tensor as f32 is larger than itself: all three reductions read the tensor.
  const int x = tensor(DType::kBF16, {60, 70}, "x");
  ExprAttributes a;
  a.dtype = DType::kF32;
  const int e = op(ExprOp::kCast, {x}, a);
  const Plan made = check({axis(ExprOp::kSum, e, {0}), axis(ExprOp::kSum, e, {1}), axis(ExprOp::kMax, e, {0, 1})});
  for (const Value& v : made.values) EXPECT_TRUE(v.input >= 0 || v.output) << plan_text(made);
}

TEST_F(PlanTest, PlacesOfExtremesAreOneKernel) {
  for (const Shape& shape : {Shape{5, 1000}, Shape{7, 33}, Shape{2, 3, 64}, Shape{3, 40000}, Shape{4, 1}, Shape{300}})
    for (ExprOp which : {ExprOp::kArgMax, ExprOp::kArgMin}) {
      p = {};
      const int x = tensor(DType::kF32, shape, "x"), y = op(ExprOp::kNeg, {op(ExprOp::kMul, {x, number(0.75)})});
      for (const Machine& machine : {host_machine(), hopper_machine()}) {
        const Plan made = check({axis(which, y, {-1})}, Variant::kFused, machine);
        EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
        check({axis(which, y, {0}), axis(which, x, {})}, Variant::kFused, machine);
        check({axis(which, x, {-1})}, Variant::kUnfused, machine);
      }
    }
}

TEST_F(PlanTest, ChainsOfKernelsOverlapWhereTheGpuCan) {
  const int x = add_input(p, device, DType::kF32, {100000}, {1}, 0, std::vector<double>(100000, 1), "x");
  Machine ampere = hopper_machine();
  ampere.target = "sm_80";
  auto overlaps = [&](int output, const Machine& machine) {
    p.graph.outputs = {output};
    auto made = plan(p.graph, {Variant::kFused, machine});
    EXPECT_TRUE(made.ok()) << render(made.error());
    return made.ok() && made->overlaps;
  };
  const int sum = axis(ExprOp::kSum, x, {0}), away = op(ExprOp::kSub, {x, sum});  // two kernels on a GPU
  EXPECT_TRUE(overlaps(away, hopper_machine()));
  EXPECT_FALSE(overlaps(away, ampere));
  EXPECT_FALSE(overlaps(sum, hopper_machine()));
  EXPECT_FALSE(overlaps(sum, host_machine()));
  EXPECT_FALSE(overlaps(x, hopper_machine()));
}

/// Whichever program ends last adds the parts of a sum; of rows, it reduces their results.
TEST_F(PlanTest, TheLastProgramReducesWhatAllHaveMade) {
  const int x = add_input(p, device, DType::kF32, {300, 5000}, {5000, 1}, 0, std::vector<double>(1500000, 1), "x");
  const int rows = axis(ExprOp::kMax, x, {1}), all = axis(ExprOp::kSum, x, {0, 1});
  auto launches = [&](int output, Variant variant, const Machine& machine, bool joins) {
    p.graph.outputs = {output};
    PlanOptions options{variant, machine};
    options.joins_totals = joins;
    auto made = plan(p.graph, options);
    EXPECT_TRUE(made.ok()) << render(made.error());
    return made.ok() ? made->groups.size() : 0;
  };
  for (const int output : {all, axis(ExprOp::kMean, rows, {0})}) {
    EXPECT_EQ(launches(output, Variant::kFused, hopper_machine(), true), 1U);
    EXPECT_EQ(launches(output, Variant::kFused, hopper_machine(), false), 2U);
    EXPECT_EQ(launches(output, Variant::kUnfused, hopper_machine(), true), 2U);
    EXPECT_EQ(launches(output, Variant::kFused, host_machine(), true), 2U);
  }
  check({all, rows, axis(ExprOp::kMean, rows, {0})}, Variant::kFused, hopper_machine());

  // Few rows in parts: their totals ask which rows a program has.
  const int few = add_input(p, device, DType::kF32, {8, 120000}, {120000, 1}, 0, std::vector<double>(960000, 1), "few");
  for (const int output : {axis(ExprOp::kMax, few, {1}), axis(ExprOp::kMean, few, {1}, true)}) {
    EXPECT_EQ(launches(output, Variant::kFused, hopper_machine(), true), 1U);
    EXPECT_EQ(launches(output, Variant::kFused, hopper_machine(), false), 2U);
    check({output}, Variant::kFused, hopper_machine());
  }
}

/// Programs of a product that are placed among those of the kernel before it lose their neighbours on the chip.
TEST_F(PlanTest, ProductsBeginWhenTheKernelBeforeHasEnded) {
  const int w = tensor(DType::kI8, {512, 256}, "w"), x = tensor(DType::kBF16, {700, 512}, "x");
  ExprAttributes half, rows;
  half.dtype = DType::kBF16;
  rows.axes = {1};
  const int product = op(ExprOp::kMatMul, {x, op(ExprOp::kCast, {w}, half)});
  const int sum = op(ExprOp::kSum, {product}, rows);
  const Plan made = check({sum}, Variant::kFused, hopper_machine(), /*tight=*/0);
  ASSERT_EQ(made.groups.size(), 3u) << plan_text(made);
  std::vector<bool> waits;
  for (const Group& g : made.groups) waits.push_back(g.source.find("tl.extra.cuda.gdc_wait()") != std::string::npos);
  EXPECT_EQ(waits, std::vector({true, false, false})) << plan_text(made);
}

TEST_F(PlanTest, ColumnsAreReducedInALoop) {
  const int x = tensor(DType::kF32, {700, 300}, "x");
  EXPECT_EQ(check({op(ExprOp::kSub, {x, axis(ExprOp::kMean, x, {0})})}).groups.size(), 1u);
}

TEST_F(PlanTest, ProductsTakeTheirEpilogue) {
  const int xw = op(ExprOp::kMatMul, {tensor(DType::kF32, {70, 45}, "x"), tensor(DType::kF32, {45, 130}, "w")});
  const int z = op(ExprOp::kAdd, {xw, tensor(DType::kF32, {130}, "b")});
  const int y = op(ExprOp::kAdd, {op(ExprOp::kGeluTanh, {z}), tensor(DType::kF32, {70, 130}, "r")});
  EXPECT_EQ(check({y, z}).groups.size(), 1u);
  EXPECT_EQ(check({y, z}, Variant::kUnfused).groups.size(), 4u);
}

TEST_F(PlanTest, ProductsOfNoRowsHaveNoElements) {
  const int w = tensor(DType::kF32, {3, 2}, "w");
  const int none = op(ExprOp::kTanh, {tensor(DType::kF32, {0, 3}, "x")});
  check({op(ExprOp::kMatMul, {none, w})});
  check({op(ExprOp::kMatMul, {tensor(DType::kF32, {1, 3}, "v"), tensor(DType::kF32, {3, 0}, "n")})});
}

/// Exact divisions and roots of a whole tile cost a small product more than a second kernel does.
TEST_F(PlanTest, HeavyEpiloguesAreKernelsOfTheirOwn) {
  const int xw = op(ExprOp::kMatMul, {tensor(DType::kBF16, {96, 80}, "x"), tensor(DType::kBF16, {80, 64}, "w")});
  const int v = op(ExprOp::kMul, {xw, xw});
  const int root = op(ExprOp::kSqrt, {v});
  const int y = op(ExprOp::kDiv, {xw, op(ExprOp::kAdd, {root, number(1)})});
  EXPECT_EQ(check({y}, Variant::kFused, hopper_machine()).groups.size(), 2u);
  EXPECT_EQ(check({root}, Variant::kFused, hopper_machine()).groups.size(), 1u);
  EXPECT_EQ(check({y}).groups.size(), 1u);  // of the host
}

/// On Hopper a product whose tiles leave processors idle is summed in parts, which the epilogue's kernel adds.
TEST_F(PlanTest, LongProductsAreSplit) {
  struct Shapes {
    Shape x, w;
    bool blocks;  // of halves: rows that descriptors can describe; else by element
  };
  for (const Shapes& s : {Shapes{{20, 1600}, {1600, 40}, true}, Shapes{{20, 1602}, {1602, 37}, false},
                          Shapes{{3, 20, 1600}, {3, 1600, 40}, true}, Shapes{{3, 20, 1601}, {1601, 40}, false}}) {
    const DType dtype = s.blocks ? DType::kBF16 : DType::kF32;
    p = {};
    const int64_t n = s.w.back();
    const int xw = op(ExprOp::kMatMul, {tensor(dtype, s.x, "x"), tensor(dtype, s.w, "w")});
    const int y = op(ExprOp::kGeluTanh, {op(ExprOp::kAdd, {xw, tensor(dtype, {n}, "b")})});
    const Plan made = check({y}, Variant::kFused, hopper_machine());
    ASSERT_EQ(made.groups.size(), 2u);
    EXPECT_EQ(made.groups[0].descriptors, s.blocks);
    EXPECT_NE(made.groups[0].source.find("SPLITS"), std::string::npos) << made.groups[0].source;
    check({y, xw}, Variant::kUnfused, hopper_machine());
  }
}

/// Each operand may be one matrix for the whole batch, lie transposed, or have several dimensions in front.
TEST_F(PlanTest, ProductsOfBatchesAreReadInBlocks) {
  for (const auto& [x, w] : {std::pair<Shape, Shape>{{5, 70, 64}, {5, 64, 48}},
                             {{2, 3, 40, 64}, {2, 3, 64, 24}},
                             {{2, 3, 40, 64}, {2, 1, 64, 24}},
                             {{7, 2, 64}, {7, 64, 8}}}) {
    p = {};
    const int left = tensor(DType::kF16, x, "x"), right = tensor(DType::kF16, w, "w");
    const Plan made = check({op(ExprOp::kMatMul, {left, right})}, Variant::kFused, hopper_machine());
    ASSERT_EQ(made.groups.size(), 1u);
    EXPECT_TRUE(made.groups[0].descriptors);
    EXPECT_NE(made.groups[0].source.find(".reshape("), std::string::npos) << made.groups[0].source;
  }
  p = {};  // many tiles: programs stay
  const int x = tensor(DType::kF16, {150, 16, 64}, "x"), w = tensor(DType::kF16, {150, 64, 16}, "w");
  const Plan made = check({op(ExprOp::kRelu, {op(ExprOp::kMatMul, {x, w})})}, Variant::kFused, hopper_machine());
  EXPECT_EQ(made.groups.at(0).grid[0], 132);
}

/// Rows that begin at odd addresses are copied first where the product is large, and so is what lies across k for tf32.
TEST_F(PlanTest, OperandsAreCopiedIntoRowsForTheTensorCores) {
  struct Case {
    DType dtype;
    bool tf32;
    Shape x, x_strides, w, w_strides;
    int copies;
  };
  const Case cases[] = {
      {DType::kBF16, false, {1000, 901}, {901, 1}, {901, 1010}, {1, 901}, 2},
      {DType::kF16, false, {1002, 602}, {1, 1002}, {602, 1255}, {1255, 1}, 2},
      {DType::kF16, false, {3, 930, 608}, {930 * 608, 608, 1}, {3, 608, 955}, {608 * 955, 955, 1}, 1},
      {DType::kF16, false, {3, 930, 608}, {930 * 608, 608, 1}, {3, 608, 955}, {0, 955, 1}, 1},
      {DType::kF32, true, {900, 1024}, {1024, 1}, {1024, 960}, {960, 1}, 1},
      {DType::kF16, false, {200, 301}, {301, 1}, {301, 310}, {1, 301}, 0},  // too small to pay
      {DType::kF32, false, {200, 301}, {301, 1}, {301, 310}, {310, 1}, 0},
  };
  for (const Case& c : cases) {
    p = {};
    ExprAttributes a;
    a.tf32 = c.tf32;
    const int xw =
        op(ExprOp::kMatMul, {tensor(c.dtype, c.x, "x", c.x_strides), tensor(c.dtype, c.w, "w", c.w_strides)}, a);
    const Plan made = check({op(ExprOp::kRelu, {xw})}, Variant::kFused, hopper_machine());
    const auto copies =
        static_cast<int>(std::ranges::count_if(made.groups, [](const Group& g) { return g.name == "copy_rows"; }));
    EXPECT_EQ(copies, c.copies) << plan_text(made);
    EXPECT_EQ(made.groups[static_cast<size_t>(copies)].descriptors, copies > 0) << plan_text(made);
  }
}

/// A variance of few long rows reads them once: parts with means of their own, of equal length where the row has such.
TEST_F(PlanTest, VariancesAreReadOnce) {
  struct Case {
    Shape shape;
    std::vector<int> axes;
    int64_t parts;
    size_t launches;
  };
  for (const Case& c : {Case{{640, 24}, {0}, 5, 1}, Case{{3, 70000}, {1}, 35, 1}, Case{{2, 500, 30, 7}, {0, 1}, 4, 2},
                        Case{{40, 5, 60, 30}, {0, 2, 3}, 20, 1}, Case{{40, 100, 31, 31}, {0, 2, 3}, 5, 2}}) {
    p = {};
    const int x = op(ExprOp::kAdd, {tensor(DType::kF32, c.shape, "x"), number(20)});
    ExprAttributes a;
    a.axes = c.axes;
    a.keepdim = true;
    const int var = op(ExprOp::kVar, {x}, a), mean = op(ExprOp::kMean, {x}, a);
    const Plan made = check({var, mean}, Variant::kFused, hopper_machine());
    EXPECT_EQ(kernels_apart(hopper_machine()), 2u) << to_string(c.shape);
    EXPECT_EQ(made.groups.size(), c.launches) << to_string(c.shape);  // of few parts the last program makes the whole
    const auto parts = std::ranges::find(made.values, "squares_of_part", &Value::name);
    ASSERT_NE(parts, made.values.end()) << to_string(c.shape);
    EXPECT_EQ(numel(parts->shape) / numel(made.values[static_cast<size_t>(made.outputs[0].value)].shape), c.parts);
  }
}

/// Columns that fill the machine without parts, but of which the L2 does not hold what programs read at a time.
TEST_F(PlanTest, VariancesOfManyColumnsAreReadOnce) {
  struct Case {
    Shape shape;
    bool parts;
  };
  for (const Case& c : {Case{{2639, 12624}, true}, Case{{900, 50000}, true}, Case{{300, 12624}, false}}) {
    p = {};
    ExprAttributes a;
    a.axes = {0};
    p.graph.nodes.push_back(input(DType::kF32, c.shape, row_major(c.shape), 16, "x"));
    p.graph.outputs = {op(ExprOp::kVar, {0}, a)};
    const Plan made = *plan(p.graph, {Variant::kFused, hopper_machine()});
    const bool parts = std::ranges::find(made.values, "squares_of_part", &Value::name) != made.values.end();
    EXPECT_EQ(parts, c.parts) << plan_text(made);
    EXPECT_EQ(made.groups[0].source.find(" in range(") == std::string::npos, c.parts) << made.groups[0].source;
  }
}

/// A part of a column sums its own elements, also where a block is as long as the column.
TEST_F(PlanTest, SumsOfColumnsOfAllLengths) {
  for (const Shape& s : {Shape{512, 1024}, Shape{256, 3000}, Shape{300, 512}, Shape{1024, 640}, Shape{130, 1500}}) {
    p = {};
    ExprAttributes a;
    a.axes = {0};
    const int x = tensor(DType::kBF16, s, "x"), y = tensor(DType::kBF16, s, "y"),
              r = tensor(DType::kF32, {s[0], 1}, "r");
    check({op(ExprOp::kSum, {op(ExprOp::kMul, {op(ExprOp::kMul, {x, y}), r})}, a)}, Variant::kFused, hopper_machine(),
          /*tight=*/0.3);
  }
}

/// What no number of equal parts fits leaves a short part behind them.
TEST_F(PlanTest, VariancesOfOddLengthsAreReadOnce) {
  struct Case {
    Shape shape;
    int axis;
    bool has_rest;
  };
  for (const Case& c :
       {Case{{2003, 40}, 0, true}, Case{{3, 100003}, 1, true}, Case{{2000, 40}, 0, false}, Case{{640, 24}, 0, false}}) {
    p = {};
    ExprAttributes a;
    a.axes = {c.axis};
    const int var = op(ExprOp::kVar, {tensor(DType::kBF16, c.shape, "x")}, a);
    const Plan made = check({var}, Variant::kFused, hopper_machine());
    const auto parts = std::ranges::count(made.values, "squares_of_part", &Value::name);
    EXPECT_EQ(parts == 2, c.has_rest) << to_string(c.shape) << plan_text(made);
    EXPECT_EQ(kernels_apart(hopper_machine()), c.has_rest ? 3u : 2u) << to_string(c.shape) << plan_text(made);
    EXPECT_EQ(made.groups.size(), 1u) << to_string(c.shape) << plan_text(made);
  }
}

/// So does what is computed: its slices are, from slices of what it is computed from. Parts are runs of memory: 64 of
/// one column each would divide these rows, and read a line of memory for each element.
TEST_F(PlanTest, VariancesOfOddLengthsOfComputedValues) {
  for (const int64_t rows : {4007, 641}) {
    p = {};
    const Shape shape = {rows, 64};
    ExprAttributes all;
    all.axes = {0, 1};
    all.keepdim = true;
    const int x = op(ExprOp::kMul, {tensor(DType::kF32, shape, "x"), tensor(DType::kF32, {1, 64}, "w")});
    const int away = op(ExprOp::kSub, {x, op(ExprOp::kMean, {x}, all)});
    const Plan made = check({op(ExprOp::kDiv, {away, op(ExprOp::kVar, {x}, all)})}, Variant::kFused, hopper_machine());
    EXPECT_EQ(std::ranges::count(made.values, "squares_of_part", &Value::name), 2) << plan_text(made);
    const auto parts = std::ranges::find(made.values, "squares_of_part", &Value::name);
    ASSERT_NE(parts, made.values.end());
    EXPECT_EQ(numel(parts->shape), rows == 4007 ? 125 : 21) << plan_text(made);
    EXPECT_EQ(kernels_apart(hopper_machine()), 4u) << plan_text(made);
    EXPECT_EQ(made.groups.size(), 2u) << plan_text(made);
  }
}

/// A value beyond the L2 that another kernel reads is computed there again where that reads as much as writing and
/// reading it; its inputs count once, and what its rows share is stored instead.
TEST_F(PlanTest, LargeCheapValuesAreComputedAgain) {
  ExprAttributes rows, columns;
  rows.axes = {1}, rows.keepdim = true;
  columns.axes = {0};
  for (int64_t n : {512, 13000}) {
    p = {};
    const int u = tensor(DType::kF32, {n, 1024}, "u"), c = tensor(DType::kF32, {n, 1024}, "c");
    const int y = op(ExprOp::kAdd, {u, op(ExprOp::kMul, {op(ExprOp::kSub, {c, u}), number(7.5)})});
    const int scaled = op(ExprOp::kMul, {y, op(ExprOp::kSum, {op(ExprOp::kVar, {y}, columns)})});
    p.graph.outputs = {scaled};
    const auto planned = plan(p.graph, {Variant::kFused, hopper_machine()});
    ASSERT_TRUE(planned.ok()) << render(planned.error());
    const Plan& made = *planned;
    const auto reads_u = std::ranges::count_if(made.groups, [&](const Group& g) {
      return std::ranges::any_of(g.arguments, [](const Argument& a) { return a.name == "u_ptr"; });
    });
    EXPECT_EQ(reads_u > 1, n > 512) << plan_text(made);
  }
  // What all elements share is no kernel of its own: it is computed with them.
  p = {};
  const int t = tensor(DType::kF32, {601, 1}, "t"), u = tensor(DType::kF32, {1, 601}, "u");
  const int slope = op(ExprOp::kNeg, {tensor(DType::kF32, {1, 1}, "slope")});
  const int apart = op(ExprOp::kSub, {t, u});
  const int decay = op(ExprOp::kWhere, {op(ExprOp::kGe, {apart, number(0)}),
                                        op(ExprOp::kExp, {op(ExprOp::kMul, {apart, slope})}), number(0)});
  const int scores = op(ExprOp::kMatMul, {tensor(DType::kF32, {601, 64}, "q"), tensor(DType::kF32, {64, 601}, "k")});
  const Plan product = check({op(ExprOp::kMul, {scores, decay})}, Variant::kFused, hopper_machine());
  for (const Group& g : product.groups) EXPECT_NE(g.name, "neg") << plan_text(product);

  p = {};
  const int x = tensor(DType::kBF16, {512, 1024}, "x"), dy = tensor(DType::kBF16, {512, 1024}, "dy");
  ExprAttributes f32;
  f32.dtype = DType::kF32;
  const int wide = op(ExprOp::kCast, {x}, f32);
  const int norm = op(ExprOp::kRsqrt, {op(ExprOp::kMean, {op(ExprOp::kMul, {wide, wide})}, rows)});
  const int scaled = op(ExprOp::kMul, {wide, norm});
  const int weight = op(ExprOp::kSum, {op(ExprOp::kMul, {op(ExprOp::kCast, {dy}, f32), scaled})}, columns);
  const Plan made = check({op(ExprOp::kMul, {scaled, number(2)}), weight}, Variant::kFused, hopper_machine());
  for (const Value& v : made.values) EXPECT_TRUE(v.slot < 0 || numel(v.shape) < 512 * 1024) << plan_text(made);
}

/// What all rows share is computed by each kernel of rows that reads it, and stored by none: all programs would store
/// it.
TEST_F(PlanTest, NoProgramStoresWhatItsRowsShare) {
  ExprAttributes rows, f32;
  rows.axes = {1};
  f32.dtype = DType::kF32;
  const int g = op(ExprOp::kCast, {tensor(DType::kBF16, {4096, 64}, "g")}, f32), square = op(ExprOp::kMul, {g, g});
  const int columns = op(ExprOp::kAdd, {axis(ExprOp::kMean, square, {0}), number(1)});
  const int scaled = op(ExprOp::kMul, {op(ExprOp::kRsqrt, {columns}), g});
  const int norms = op(ExprOp::kSum, {op(ExprOp::kMul, {scaled, scaled})}, rows);
  const int update = op(ExprOp::kDiv, {scaled, op(ExprOp::kSum, {norms}, {})});
  const Plan made = check({columns, update}, Variant::kFused, hopper_machine());
  for (const Value& v : made.values) EXPECT_TRUE(v.slot < 0 || v.shape != Shape{64}) << plan_text(made);
}

/// A small tensor that two kernels read is computed in both once they are one.
TEST_F(PlanTest, WhatJoinedKernelsReadJoinsThem) {
  const int dt = op(ExprOp::kAdd, {tensor(DType::kF32, {6, 1536}, "dt"), tensor(DType::kF32, {1536}, "bias")});
  ExprAttributes wide;
  wide.shape = {6, 1536, 1};
  const int plus = op(ExprOp::kLog1p, {op(ExprOp::kExp, {dt})});
  const int soft = op(ExprOp::kReshape, {op(ExprOp::kWhere, {op(ExprOp::kGt, {dt, number(20)}), dt, plus})}, wide);
  const int a = op(ExprOp::kNeg, {op(ExprOp::kExp, {tensor(DType::kF32, {1536, 16}, "a")})});
  const int b = tensor(DType::kF32, {6, 1, 16}, "b"), x = tensor(DType::kF32, {6, 1536, 1}, "x");
  const Plan made =
      check({op(ExprOp::kExp, {op(ExprOp::kMul, {soft, a})}), op(ExprOp::kMul, {op(ExprOp::kMul, {soft, b}), x})},
            Variant::kFused, hopper_machine());
  EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
}

/// The loss and what is computed beside it from the same tensors are one kernel of a GPU. On a CPU an element would
/// divide its place for the time that it shares with others.
TEST_F(PlanTest, ATotalAndItsReadersAreOneKernel) {
  const int x = tensor(DType::kBF16, {60, 3, 32, 32}, "x"), y = tensor(DType::kBF16, {60, 3, 32, 32}, "y");
  const int time = tensor(DType::kBF16, {60, 1, 1, 1}, "time");
  const int moved = op(ExprOp::kAdd, {op(ExprOp::kMul, {time, x}), y}), apart = op(ExprOp::kSub, {x, y});
  const int loss = op(ExprOp::kMean, {op(ExprOp::kMul, {apart, apart})});
  EXPECT_EQ(check({moved, loss}, Variant::kFused, hopper_machine()).groups.size(), 1u);
  const Plan made = check({moved, loss});
  EXPECT_TRUE(std::ranges::any_of(made.groups, [](const Group& g) { return g.shape.ends_with("elements"); }))
      << plan_text(made);
}

/// The loops over a wide row read what the first of them stored, not again what it is the sum of.
TEST_F(PlanTest, WideRowsReadBackWhatTheyStored) {
  for (int64_t columns : {14336, 14344}) {
    p = {};
    const int x = tensor(DType::kF32, {140, columns}, "x"), r = tensor(DType::kF32, {140, columns}, "r");
    const int sum = op(ExprOp::kAdd, {x, r});
    const int away = op(ExprOp::kSub, {sum, axis(ExprOp::kMean, sum, {1}, true)});
    const int norm = op(ExprOp::kRsqrt, {axis(ExprOp::kMean, op(ExprOp::kMul, {away, away}), {1}, true)});
    const Plan made = check({sum, op(ExprOp::kMul, {away, norm})}, Variant::kFused, hopper_machine());
    ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
    const std::string& source = made.groups[0].source;
    const size_t first = source.find("tl.load(x_ptr");
    EXPECT_NE(first, std::string::npos) << source;
    EXPECT_EQ(source.find("tl.load(x_ptr", first + 1), std::string::npos) << source;
    EXPECT_NE(source.find("tl.debug_barrier()"), std::string::npos) << source;
  }
}

/// Small products through pointers, and sums of columns, have programs or warps for every processor.
TEST_F(PlanTest, CoordinatesThatAreReadApartJoinTheirReaders) {
  // Of a grid of points, as an affine one is made: x and y are slices of what is computed for both.
  const int turn = tensor(DType::kF32, {6, 1, 2}, "turn"), shift = tensor(DType::kF32, {6, 1, 2}, "shift");
  const int along = tensor(DType::kF32, {56, 1}, "along"), image = tensor(DType::kF32, {6, 3, 56}, "image");
  const int grid = op(ExprOp::kAdd, {op(ExprOp::kMul, {along, turn}), shift});
  std::vector<int> axes;
  for (int64_t c : {0, 1}) {
    ExprAttributes a, shaped;
    a.shape = {6, 56, 1}, a.starts = {0, 0, c}, a.steps = {1, 1, 1};
    shaped.shape = {6, 1, 56};
    axes.push_back(op(ExprOp::kReshape, {op(ExprOp::kSlice, {grid}, a)}, shaped));
  }
  const int inside =
      op(ExprOp::kLogicalAnd, {op(ExprOp::kGe, {axes[0], number(0)}), op(ExprOp::kLt, {axes[1], image})});
  const int weight = op(ExprOp::kMul, {op(ExprOp::kFloor, {axes[0]}), axes[1]});
  const Plan made = check({op(ExprOp::kWhere, {inside, op(ExprOp::kMul, {image, weight}), axes[0]})}, Variant::kFused,
                          hopper_machine());
  EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
}

TEST_F(PlanTest, ClassesAreCountedTogether) {
  for (int64_t n : {3, 8, 60, 128, 300}) {
    p = {};
    const int x = tensor(DType::kI64, {4001, 2, 1}, "x");
    ExprAttributes counts, i64;
    counts.shape = {n}, i64.dtype = DType::kI64;
    const int hot = op(ExprOp::kCast, {op(ExprOp::kEq, {x, op(ExprOp::kIota, {}, counts)})}, i64);
    const Plan made = check({axis(ExprOp::kSum, hot, {0, 1})}, Variant::kFused, hopper_machine());
    EXPECT_LT(made.groups[0].grid[0], 1000) << plan_text(made);
  }
}

TEST_F(PlanTest, FewLookedUpRowsAreAddedUpWhereTheyAreRead) {
  for (int64_t k : {2, 4, 8}) {
    p = {};
    const int table = tensor(DType::kF16, {50, 32}, "table"), places = tensor(DType::kI32, {300, k}, "places");
    const int weights = tensor(DType::kF32, {300, k, 1}, "weights");
    const int bags = axis(ExprOp::kSum, op(ExprOp::kMul, {take_rows(table, places), weights}), {1});
    const int total = op(ExprOp::kMaximum, {axis(ExprOp::kSum, weights, {1}), number(1)});
    const Plan made = check({op(ExprOp::kDiv, {bags, total})}, Variant::kFused, hopper_machine());
    EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
  }
}

TEST_F(PlanTest, SmallWorkIsSharedOut) {
  for (const Shape& s : {Shape{200, 301, 310}, Shape{64, 2627, 640}, Shape{576, 1163, 3}}) {
    p = {};
    const int xw =
        op(ExprOp::kMatMul, {tensor(DType::kBF16, {s[0], s[1]}, "x"), tensor(DType::kBF16, {s[1], s[2]}, "w")});
    const Plan made = check({xw}, Variant::kFused, hopper_machine());
    const Group& product = made.groups[0];
    EXPECT_GE(product.grid[0], hopper_machine().multiprocessors) << product.shape;
  }
  p = {};
  ExprAttributes a;
  a.axes = {1};
  const int sum = op(ExprOp::kSum, {tensor(DType::kBF16, {13, 576, 768}, "x")}, a);
  const Plan made = check({sum}, Variant::kFused, hopper_machine());
  const Group& rows = made.groups[0];
  EXPECT_GE(rows.grid[0] * rows.num_warps, 16 * hopper_machine().multiprocessors);
}

/// On a GPU whole tiles of an odd number of elements are accessed without a mask, and the rest behind a branch.
TEST_F(PlanTest, OddNumbersOfElementsHaveWholeTiles) {
  for (int64_t n : {140001, 300002, 131080}) {
    p = {};
    const int x = tensor(DType::kF32, {n}, "x"), y = tensor(DType::kBF16, {n}, "y");
    const int z = op(ExprOp::kMul, {op(ExprOp::kExp, {x}), y});
    auto first_source = [&](std::vector<int> outputs) {
      return check(std::move(outputs), Variant::kFused, hopper_machine()).groups[0].source;
    };
    EXPECT_NE(first_source({op(ExprOp::kAdd, {z, x}), z}).find("    else:\n"), std::string::npos);
    EXPECT_NE(first_source({axis(ExprOp::kSum, z, {}), axis(ExprOp::kMax, x, {})}).find("end - BLOCK + 1, BLOCK)"),
              std::string::npos);
    check({z, axis(ExprOp::kSum, z, {}), axis(ExprOp::kCumSum, x, {0})}, Variant::kFused, hopper_machine());
  }
}

/// Of a row that fills little more than half of its block, the rest is known to be outside.
TEST_F(PlanTest, RowsFarFromPowersOfTwoHoldNoMore) {
  for (int64_t columns : {1030, 2300, 5120, 8440, 11008}) {
    p = {};
    const int x = tensor(DType::kF32, {3, columns}, "x");
    const Plan made = check({op(ExprOp::kSub, {x, axis(ExprOp::kMean, x, {-1}, true)}), axis(ExprOp::kMax, x, {-1})},
                            Variant::kFused, hopper_machine());
    ASSERT_EQ(made.groups.size(), 1u);
    EXPECT_NE(made.groups[0].source.find("HELD"), std::string::npos) << made.groups[0].source;
  }
}

/// Every finite number of 16 bits.
TEST_F(PlanTest, GeluOfHalvesHasTheirPrecision) {
  for (DType dtype : {DType::kF16, DType::kBF16})
    for (ExprOp which : {ExprOp::kGelu, ExprOp::kGeluTanh}) {
      p = {};
      std::vector<uint16_t> bits;
      const unsigned infinity = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
      for (unsigned sign : {0u, 0x8000u})
        for (unsigned i = 0; i <= infinity; ++i) bits.push_back(static_cast<uint16_t>(sign | i));
      const Shape shape{static_cast<int64_t>(bits.size())};
      const std::vector<double> in =
          *Tensor::from_host(device, dtype, shape, bits.data(), 2 * bits.size())->to_doubles();
      p.graph.outputs = {op(which, {add_input(p, device, dtype, shape, row_major(shape), 0, in)})};
      auto made = plan(p.graph, {Variant::kFused, host_machine()});
      ASSERT_TRUE(made.ok()) << render(made.error());
      EXPECT_NE(made->groups.at(0).source.find("_of_half("), std::string::npos) << made->groups[0].source;
      auto ran = run(*made, p, device);
      ASSERT_TRUE(ran.ok()) << render(ran.error());
      const std::vector<double> out = *ran->at(0).to_doubles();
      const double roundoff = std::ldexp(1, dtype == DType::kF16 ? -11 : -8),
                   least = std::ldexp(1, dtype == DType::kF16 ? -25 : -127);
      for (size_t i = 0; i < in.size(); ++i) {
        const double x = in[i];
        if (std::isinf(x)) {
          if (x > 0)
            EXPECT_EQ(out[i], x);
          else
            EXPECT_TRUE(std::isnan(out[i]));  // -inf * 0, as in PyTorch
          continue;
        }
        const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
        // The sigmoid of 2u loses nothing where x is negative.
        const double y = which == ExprOp::kGelu ? 0.5 * x * std::erfc(-x / std::sqrt(2.0)) : x / (1 + std::exp(-2 * u));
        const double bound = (roundoff + std::ldexp(1, -14)) * std::fabs(y) + std::ldexp(std::fabs(x), -24) + least;
        ASSERT_LE(std::fabs(out[i] - y), bound) << name(which) << " of " << x;
      }
    }
}

TEST_F(PlanTest, BatchesOfProducts) {
  for (int64_t rows : {1, 20}) {
    p = {};
    ExprAttributes swap;
    swap.axes = {0, 1, 3, 2};
    const int q = tensor(DType::kF32, {2, 3, rows, 16}, "q"), k = tensor(DType::kF32, {2, 1, 30, 16}, "k");
    const int s = op(ExprOp::kMul, {op(ExprOp::kMatMul, {q, op(ExprOp::kPermute, {k}, swap)}), number(0.25)});
    check({axis(ExprOp::kSoftmax, s, {-1})});
    check({op(ExprOp::kAdd, {s, tensor(DType::kF32, {30}, "b")})});
  }
}

TEST_F(PlanTest, OneRowOrColumnOfAProduct) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 70}, {70, 1}, {1, 1}}) {
    p = {};
    const int xw = op(ExprOp::kMatMul, {tensor(DType::kF32, {m, 45}, "x"), tensor(DType::kF32, {45, n}, "w")});
    check({op(ExprOp::kTanh, {op(ExprOp::kAdd, {xw, tensor(DType::kF32, {n}, "b")})}), xw});
  }
}

TEST_F(PlanTest, CalledFunctionsAreInlined) {
  ExprAttributes a;
  a.function = std::make_shared<ExprFunction>(
      ExprFunction{"mix", "@triton.jit\ndef mix(a, b):\n    return 2.0 * a + b\n", {"mix"}});
  const int x = tensor(DType::kBF16, {9, 33}, "x"), y = tensor(DType::kBF16, {33}, "y");
  const int z = op(ExprOp::kCall, {op(ExprOp::kExp, {x}), y}, a);
  EXPECT_EQ(check({axis(ExprOp::kSum, z, {1})}).groups.size(), 1u);
}

TEST_F(PlanTest, IntegerPowersAndDivisions) {
  const int x = tensor(DType::kI32, {100}, "x"), e = op(ExprOp::kAbs, {tensor(DType::kI32, {100}, "e")});
  p.graph.nodes.push_back(scalar(int64_t{5}));
  p.tensors.resize(p.graph.nodes.size());
  p.elements.resize(p.graph.nodes.size());
  const int five = static_cast<int>(p.graph.nodes.size()) - 1;
  check({op(ExprOp::kPow, {x, e}), op(ExprOp::kPow, {x, five}), op(ExprOp::kFloorDiv, {x, five}),
         op(ExprOp::kMod, {x, five})});
}

TEST_F(PlanTest, ViewsOfResultsNeedNoKernel) {
  const int x = tensor(DType::kF32, {6, 8}, "x");
  ExprAttributes swap;
  swap.axes = {1, 0};
  const int t = op(ExprOp::kPermute, {x}, swap);
  EXPECT_TRUE(check({t}).groups.empty());
  EXPECT_EQ(check({op(ExprOp::kPermute, {op(ExprOp::kExp, {x})}, swap)}).groups.size(), 1u);
  EXPECT_EQ(check({op(ExprOp::kMul, {op(ExprOp::kPermute, {op(ExprOp::kExp, {x})}, swap), t})}).groups.size(), 1u);
}

TEST_F(PlanTest, ConfigurationsComputeTheSame) {
  const int x = tensor(DType::kF32, {70, 1000}, "x"), y = tensor(DType::kBF16, {5003}, "y");
  const int long_rows = tensor(DType::kF32, {2, 33000}, "z"), b = tensor(DType::kF32, {1000}, "b");
  p.graph.outputs = {op(ExprOp::kRelu, {op(ExprOp::kAdd, {x, b})}), op(ExprOp::kTanh, {y}),
                     axis(ExprOp::kSoftmax, x, {1}), axis(ExprOp::kSoftmax, long_rows, {1}),
                     axis(ExprOp::kSum, x, {0})};
  const int a = tensor(DType::kBF16, {200, 64}, "a"), w = tensor(DType::kBF16, {64, 264}, "w");
  p.graph.outputs.push_back(op(ExprOp::kSilu, {op(ExprOp::kMatMul, {a, w})}));
  p.graph.outputs.push_back(
      op(ExprOp::kMatMul, {tensor(DType::kF32, {130, 20}, "c"), tensor(DType::kF32, {20, 70}, "d")}));
  int tried = 0;
  const std::vector<Elements> want = evaluate(p.graph, p.elements);
  for (const Machine& machine : {host_machine(), hopper_machine()}) {
    auto made = plan(p.graph, {Variant::kFused, machine});
    ASSERT_TRUE(made.ok()) << render(made.error());
    for (size_t g = 0; g < made->groups.size(); ++g)
      for (const Configuration& c : made->groups[g].configurations) {
        const Plan other = configured(*made, g, c);
        SCOPED_TRACE(other.groups[g].source + plan_text(other));
        auto ran = run(other, p, device);
        ASSERT_TRUE(ran.ok()) << render(ran.error());
        expect_close(p, want, *ran, "configured");
        ++tried;
      }
  }
  EXPECT_GT(tried, 15);
}

/// A product with a vector is a sum where the matrix lies along k, and on a GPU where k is short.
TEST_F(PlanTest, ProductsWithVectorsAreSums) {
  struct Shapes {
    Shape x, w;
    bool on_gpu, on_host;
  };
  for (const Shapes& s : {Shapes{{70, 96}, {96, 1}, true, true}, Shapes{{1, 96}, {96, 40}, true, false},
                          Shapes{{96}, {96, 40}, true, false}, Shapes{{70, 1200}, {1200}, true, true},
                          Shapes{{5, 1, 64}, {5, 64, 33}, true, false}, Shapes{{2, 3, 20, 64}, {64, 1}, true, true},
                          Shapes{{1, 1200}, {1200, 40}, false, false}, Shapes{{2, 96}, {96, 40}, false, false}}) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      for (const bool gpu : {true, false}) {
        p = {};
        const int x = tensor(dtype, s.x, "x"), w = tensor(dtype, s.w, "w");
        const int y = op(ExprOp::kRelu, {op(ExprOp::kMatMul, {x, w})});
        const Plan made = check({y}, Variant::kFused, gpu ? hopper_machine() : host_machine());
        EXPECT_EQ(made.groups[0].source.find("tl.dot") == std::string::npos, gpu ? s.on_gpu : s.on_host)
            << made.groups[0].source;
      }
    }
  }
}

TEST_F(PlanTest, LongChainsAreCutIntoKernels) {
  int x = tensor(DType::kF32, {10}, "x");
  const int y = tensor(DType::kF32, {10}, "y");
  for (int i = 0; i < 1000; ++i) x = op(i % 2 ? ExprOp::kSub : ExprOp::kMaximum, {x, y});
  p.graph.outputs = {x};
  auto made = plan(p.graph, {Variant::kFused, host_machine()});
  ASSERT_TRUE(made.ok()) << render(made.error());
  EXPECT_EQ(made->groups.size(), 6u);
  EXPECT_NE(made->boundaries.at(0).cause.find("more than 192 operations"), std::string::npos);
}

TEST_F(PlanTest, PlansForAGpuComputeTheSame) {
  const int x = tensor(DType::kF32, {90, 40001}, "x");
  const Plan rows =
      check({axis(ExprOp::kSoftmax, x, {1}), axis(ExprOp::kLogSoftmax, x, {1})}, Variant::kFused, hopper_machine());
  EXPECT_NE(rows.groups.at(0).source.find("higher"), std::string::npos) << rows.groups[0].source;
  p = {};
  const int all = tensor(DType::kF32, {300, 999}, "x");
  check({axis(ExprOp::kMean, all, {}), axis(ExprOp::kVar, all, {0})}, Variant::kFused, hopper_machine());
  for (int64_t m : {2, 16, 200}) {
    p = {};
    const int a = tensor(DType::kBF16, {m, 136}, "a"), w = tensor(DType::kBF16, {136, 264}, "w");
    const int z = op(ExprOp::kAdd, {op(ExprOp::kMatMul, {a, w}), tensor(DType::kBF16, {264}, "b")});
    const Plan made = check({op(ExprOp::kGelu, {z}), op(ExprOp::kMul, {z, tensor(DType::kBF16, {m, 264}, "r")})},
                            Variant::kFused, hopper_machine());
    EXPECT_EQ(made.groups.size(), 1u);
    EXPECT_NE(made.groups[0].source.find("make_tensor_descriptor"), std::string::npos);
  }
}

/// A dimension of no elements has the stride of the one behind it.
TEST_F(PlanTest, OperandsWithoutElementsAreNotMade) {
  const int a = tensor(DType::kF32, {5, 4, 0}, "a"), b = tensor(DType::kF32, {5, 0, 7}, "b");
  p.graph.outputs = {op(ExprOp::kMatMul, {a, op(ExprOp::kMul, {b, b})})};
  EXPECT_TRUE(plan(p.graph, {Variant::kFused, hopper_machine()}).ok());
}

TEST_F(PlanTest, NamesOfTensorsStayApartFromIndices) {
  const int x = tensor(DType::kF32, {3, 65537}, "i_1"), scale = tensor(DType::kF32, {3, 1}, "first"),
            shift = tensor(DType::kF32, {3, 1}, "run");
  check({op(ExprOp::kAdd, {op(ExprOp::kMul, {x, scale}), shift})}, Variant::kFused, hopper_machine());
}

TEST_F(PlanTest, SmallAndCostlyTensorsAreComputedAgainWhereAKernelTakesLonger) {
  auto kernels = [&](int64_t rows) {
    p = {};
    const int x = tensor(DType::kF32, {rows, 1}, "x");
    int y = x;
    for (int i = 0; i < 3; ++i) y = op(ExprOp::kGelu, {op(ExprOp::kAdd, {y, x})});
    ExprAttributes expanded;
    expanded.shape = {rows, 9};
    p.graph.outputs = {op(ExprOp::kAdd, {op(ExprOp::kExpand, {y}, expanded), tensor(DType::kF32, {9}, "by_column")})};
    auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
    EXPECT_TRUE(made.ok()) << render(made.error());
    return made.ok() ? made->groups.size() : 0;
  };
  EXPECT_EQ(kernels(18112), 1u);
  EXPECT_EQ(kernels(1 << 20), 2u);
}

TEST_F(PlanTest, NansAndInfinitiesGoThroughAsInTorch) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const int x = add_input(p, device, DType::kF32, {3, 4}, {4, 1}, 0,
                          {1, nan, 3, 4, -inf, 2, -inf, 1, -inf, -inf, -inf, -inf}, "x");
  p.graph.outputs = {axis(ExprOp::kMax, x, {1}), op(ExprOp::kRelu, {x}), op(ExprOp::kMaximum, {x, number(0)}),
                     axis(ExprOp::kSoftmax, x, {1}), axis(ExprOp::kSum, op(ExprOp::kIsNan, {x}), {})};
  for (const Machine& machine : {host_machine(), hopper_machine()}) {
    auto made = plan(p.graph, {Variant::kFused, machine});
    ASSERT_TRUE(made.ok()) << render(made.error());
    auto ran = run(*made, p, device);
    ASSERT_TRUE(ran.ok()) << render(ran.error());
    auto element = [&](size_t output, size_t i) { return (*(*ran)[output].to_doubles())[i]; };
    EXPECT_TRUE(std::isnan(element(0, 0)));
    EXPECT_EQ(element(0, 1), 2);
    EXPECT_EQ(element(0, 2), -inf);
    EXPECT_TRUE(std::isnan(element(1, 1)));
    EXPECT_EQ(element(1, 4), 0);
    EXPECT_TRUE(std::isnan(element(2, 1)));
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(std::isnan(element(3, i))) << "a row with a NaN";
      EXPECT_TRUE(std::isnan(element(3, 8 + i))) << "a row of -inf";
    }
    EXPECT_NEAR(element(3, 5), 1 / (1 + std::exp(-1)), 1e-6);
    EXPECT_EQ(element(3, 4), 0);
    EXPECT_EQ(element(4, 0), 1);
  }
}

TEST_F(PlanTest, ConstantsOfTwoUpdatesJoinNothing) {
  // The first step of an optimizer: sums of zeros, of which all parameters share what is made of them.
  ExprAttributes zeros;
  zeros.value = 0.0;
  zeros.shape = {64, 96};
  zeros.dtype = DType::kBF16;
  const int decayed = op(ExprOp::kMul, {op(ExprOp::kFull, {}, zeros), number(0.9)});
  auto updated = [&](int g) { return op(ExprOp::kAdd, {decayed, op(ExprOp::kMul, {g, number(0.1)})}); };
  const int a = tensor(DType::kBF16, {64, 32}, "a"), b = tensor(DType::kBF16, {32, 96}, "b");
  const int behind_product = updated(op(ExprOp::kMatMul, {a, b}));
  const int other = updated(tensor(DType::kBF16, {64, 96}, "other"));
  const Plan made = check({behind_product, other}, Variant::kFused, hopper_machine(), 0.5);
  ASSERT_EQ(made.groups.size(), 2u) << plan_text(made);
  for (const Group& g : made.groups) EXPECT_EQ(g.writes.size(), 1u) << plan_text(made);
}

TEST_F(PlanTest, LongEpiloguesAreKernelsOfTheirOwn) {
  for (const int count : {8, 40}) {
    p = {};
    int x = op(ExprOp::kMatMul, {tensor(DType::kBF16, {256, 64}, "a"), tensor(DType::kBF16, {64, 256}, "b")});
    const int bias = tensor(DType::kBF16, {256}, "bias");
    for (int i = 0; i < count; ++i) x = op(i % 2 ? ExprOp::kMul : ExprOp::kAdd, {x, bias});
    const Plan made = check({x}, Variant::kFused, hopper_machine(), 0.1);
    EXPECT_EQ(made.groups.size(), count == 8 ? 1u : 2u) << plan_text(made);
  }
}

TEST_F(PlanTest, RefusalsSayWhy) {
  p.graph.nodes.push_back(scalar(1.0));
  const int two = number(2);
  auto sum = append(p.graph, ExprOp::kAdd, std::vector<int>{0, two});
  ASSERT_TRUE(sum.ok());
  p.graph.outputs = {*sum};
  auto made = plan(p.graph, {Variant::kFused, host_machine()});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kUnsupported);
  p = {};
  p.graph.outputs = {op(ExprOp::kExp, {tensor(DType::kF32, {8}, "x")})};
  made = plan(p.graph, {Variant::kLibrary, host_machine()});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("no product"), std::string::npos);
}

}  // namespace
}  // namespace kiln::fusion::testing
