// The rule of each operation against central differences in float64, and what gradients() makes of whole expressions.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

using Function = std::function<Expr(const std::vector<Expr>&)>;

Tensor f64_tensor(const Shape& shape, const std::vector<double>& values) {
  return *Tensor::from_host(cpu(), DType::kF64, shape, values.data(), values.size() * sizeof(double));
}
std::vector<double> elements(const Expr& e) { return numbers(run(e)); }
double number_of(const Expr& e) { return elements(e).at(0); }
Expr total(const Expr& e) { return op(ExprOp::kSum, {e}); }

// Which operations had a case; the last test asks for the others.
std::set<ExprOp>& checked_ops() {
  static std::set<ExprOp> ops;
  return ops;
}

struct GradientCase {
  ExprOp of;
  std::string what;
  Function function;
  std::vector<Shape> shapes;
  double low = -2, high = 2;  // of the elements
};

/// Σ w · f(x), with random w, by gradients() and by differences. Where a clamp ends within the step, the gradient is
/// that of one side.
void expect_gradient(const GradientCase& c, uint64_t seed) {
  SCOPED_TRACE(std::string(name(c.of)) + " " + c.what);
  checked_ops().insert(c.of);
  std::vector<std::vector<double>> values;
  std::vector<Expr> inputs;
  for (const Shape& shape : c.shapes) {
    std::vector<double> v = *rand(cpu(), DType::kF64, shape, ++seed)->to_doubles();
    // Within the range where the function has a slope.
    for (double& x : v) x = c.low + (c.high - c.low) * x;
    inputs.emplace_back(f64_tensor(shape, v));
    values.push_back(std::move(v));
  }
  const Expr value = c.function(inputs);
  // Random weights: a sum alone has the same gradient for many wrong rules.
  const Tensor weights = *randn(cpu(), DType::kF64, value.shape(), seed + 100);
  auto weighted = [&](const std::vector<Expr>& in) { return total(op(ExprOp::kMul, {c.function(in), weights})); };
  const double here = number_of(weighted(inputs));
  auto found = gradients(weighted(inputs), inputs);
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(static_cast<bool>((*found)[i])) << "input " << i;
    EXPECT_EQ((*found)[i].dtype(), DType::kF64);
    ASSERT_EQ(Shape((*found)[i].shape().begin(), (*found)[i].shape().end()), c.shapes[i]);
    const std::vector<double> got = elements((*found)[i]);
    for (size_t k = 0; k < values[i].size(); ++k) {
      // For float64: small enough for the curvature, large enough for the roundings.
      constexpr double kStep = 1e-5;
      double slopes[2];
      for (int side : {0, 1}) {
        const double step = side == 0 ? -kStep : kStep;
        std::vector<double> moved = values[i];
        moved[k] += step;
        std::vector<Expr> in = inputs;
        in[i] = Expr(f64_tensor(c.shapes[i], moved));
        slopes[side] = (number_of(weighted(in)) - here) / step;
      }
      double expected = (slopes[0] + slopes[1]) / 2;
      // Slopes of both sides that differ: a clamp or a tie lies within the step.
      const double bend = std::abs(slopes[1] - slopes[0]);
      if (bend > 1e-2 * std::max(1e-2, std::abs(expected)))
        expected = *std::ranges::min_element(slopes, {}, [&](double s) { return std::abs(s - got[k]); });
      EXPECT_NEAR(got[k], expected, 2e-5 * std::max(1.0, std::abs(expected))) << "input " << i << " element " << k;
    }
  }
}

Function unary(ExprOp which, const ExprAttributes& attributes = {}) {
  return [=](const std::vector<Expr>& in) { return op(which, {in[0]}, attributes); };
}
Function binary(ExprOp which, const ExprAttributes& attributes = {}) {
  return [=](const std::vector<Expr>& in) { return op(which, {in[0], in[1]}, attributes); };
}
ExprAttributes shaped(Shape shape) {
  ExprAttributes a;
  a.shape = std::move(shape);
  return a;
}
Expr integers(const Shape& shape, const std::vector<int64_t>& values) {
  return Expr(*Tensor::from_host(cpu(), DType::kI64, shape, values.data(), values.size() * sizeof(int64_t)));
}

TEST(Gradients, OfPointwiseOperations) {
  const uint64_t seed = fresh_seed();
  using O = ExprOp;
  for (O o : {O::kNeg, O::kAbs, O::kExp, O::kExp2, O::kExpm1, O::kSin, O::kCos, O::kTanh, O::kErf, O::kSigmoid,
              O::kRelu, O::kSilu, O::kGelu, O::kGeluTanh})
    expect_gradient({o, "", unary(o), {{5, 3}}}, seed);
  // Away from zero, where the slopes are infinite.
  for (O o : {O::kLog, O::kLog2, O::kLog1p, O::kSqrt, O::kRsqrt, O::kReciprocal})
    expect_gradient({o, "", unary(o), {{7}}, 0.5, 3}, seed);
  for (O o : {O::kAdd, O::kSub, O::kMul, O::kMaximum, O::kMinimum}) {
    expect_gradient({o, "", binary(o), {{4, 3}, {4, 3}}}, seed);
    // Broadcast: the gradient must be summed to the operand's shape.
    expect_gradient({o, "broadcast", binary(o), {{4, 1}, {2, 1, 3}}}, seed);
    expect_gradient({o, "of a scalar", binary(o), {{}, {3}}}, seed);
  }
  for (O o : {O::kDiv, O::kPow, O::kMod}) expect_gradient({o, "broadcast", binary(o), {{3, 1}, {4}}, 0.6, 2.9}, seed);
  for (O o : {O::kMul, O::kDiv, O::kSub, O::kMaximum, O::kMinimum, O::kMod, O::kPow})
    // A power of 2 and of 3 have shorter forms, which must agree with the general one.
    for (double n : {0.7, 2.0, 3.0}) {
      const Expr number = Expr::scalar(n);
      expect_gradient({o, "with a number", [=](auto& in) { return op(o, {in[0], number}); }, {{6}}, 0.3, 2.9}, seed);
      expect_gradient({o, "of a number", [=](auto& in) { return op(o, {number, in[0]}); }, {{6}}, 0.3, 2.9}, seed);
    }
  expect_gradient({O::kClamp,
                   "by tensors",
                   [](auto& in) {
                     return op(O::kClamp, {in[0], in[1], in[2]});
                   },
                   {{40}, {1}, {40}}},
                  seed);
  const Expr low = Expr::scalar(-0.5), high = Expr::scalar(1.0);
  expect_gradient({O::kClamp, "by numbers", [=](auto& in) { return op(O::kClamp, {in[0], low, high}); }, {{20}}}, seed);
  expect_gradient({O::kWhere,
                   "",
                   [](auto& in) {
                     return op(O::kWhere, {op(O::kLt, {in[0], in[1]}), in[0], in[1]});
                   },
                   {{4, 3}, {3}}},
                  seed);
  ExprAttributes as;
  as.dtype = DType::kF64;
  expect_gradient({O::kCast, "", unary(O::kCast, as), {{4}}}, seed);
}

TEST(Gradients, OfViewsAndPlaces) {
  const uint64_t seed = fresh_seed();
  using O = ExprOp;
  expect_gradient({O::kExpand, "", unary(O::kExpand, shaped({2, 3, 4})), {{3, 1}}}, seed);
  expect_gradient({O::kReshape, "", unary(O::kReshape, shaped({3, 2})), {{2, 3}}}, seed);
  expect_gradient({O::kPermute, "", unary(O::kPermute, along({2, 0, 1})), {{2, 3, 4}}}, seed);
  // Every remainder of a start by a step.
  for (int64_t step : {1, 2, 3})
    for (int64_t start : {0, 1, 3}) {
      ExprAttributes a = shaped({3, (7 - start + step - 1) / step});
      a.starts = {0, start};
      a.steps = {1, step};
      expect_gradient({O::kSlice, "", unary(O::kSlice, a), {{3, 7}}}, seed);
    }
  ExprAttributes one = shaped({1, 2, 1});
  one.starts = {2, 1, 0};
  one.steps = {1, 2, 1};
  expect_gradient({O::kSlice, "of one", unary(O::kSlice, one), {{3, 4, 2}}}, seed);
  auto take = [](std::vector<int> axes, const std::vector<Expr>& places, bool any_outside = false) {
    ExprAttributes a;
    a.axes = std::move(axes);
    a.any_outside = any_outside;
    return [=](const std::vector<Expr>& in) {
      std::vector<Expr> operands = {in[0]};
      operands.insert(operands.end(), places.begin(), places.end());
      return *apply(O::kTake, operands, a);
    };
  };
  const Expr counted = Expr::iota(cpu(), 6);
  auto number = [](int64_t n) { return Expr::scalar(n); };
  // Numbers that are an expression, where no place needs to be read.
  expect_gradient({O::kTake, "reversed", take({0}, {op(O::kSub, {number(5), counted})}), {{6}}}, seed);
  expect_gradient({O::kTake, "rolled", take({0}, {op(O::kSub, {counted, number(2)})}), {{6}}}, seed);
  expect_gradient({O::kTake, "repeated", take({1}, {op(O::kMod, {counted, number(3)})}), {{2, 3}}}, seed);
  expect_gradient({O::kTake, "interleaved", take({0}, {op(O::kFloorDiv, {counted, number(2)})}), {{3}}}, seed);
  expect_gradient({O::kTake, "every second", take({0}, {op(O::kMul, {counted, number(2)})}), {{12}}}, seed);
  // Places of memory, some of them twice and from the end.
  expect_gradient({O::kTake, "rows", take({0}, {integers({5, 1}, {2, 0, 2, -1, 2})}), {{4, 3}}}, seed);
  expect_gradient({O::kTake, "columns of each row", take({1}, {integers({3, 2}, {0, 0, 3, 1, -4, 2})}), {{3, 4}}},
                  seed);
  expect_gradient({O::kTake, "one of each row", take({1}, {integers({3, 1}, {0, 3, -2})}), {{3, 4}}}, seed);
  expect_gradient({O::kTake,
                   "two axes",
                   take({0, 2}, {integers({4, 1, 1}, {0, 1, 1, 2}), integers({4, 1, 1}, {1, 0, 0, 1})}),
                   {{3, 2, 2}}},
                  seed);
  expect_gradient({O::kTake,
                   "with a dimension that repeats",
                   take({0}, {integers({3, 4, 1}, {0, 1, 2, 3, 3, 2, 1, 0, 4, 4, 4, 0})}),
                   {{5, 1, 2}}},
                  seed);
  // What lies outside gives any number, and counts for nothing.
  const Expr near = op(O::kSub, {counted, number(2)});
  const Expr inside = op(O::kLogicalAnd, {op(O::kGe, {near, number(0)}), op(O::kLt, {near, number(3)})});
  auto padded = [=](const std::vector<Expr>& in) {
    return op(O::kWhere, {inside, take({0}, {near}, true)(in), Expr::scalar(1.5)});
  };
  expect_gradient({O::kTake, "padded", padded, {{3}}}, seed);
}

ExprAttributes scattered(std::vector<int> axes, Shape shape, bool any_outside = false) {
  ExprAttributes a = shaped(std::move(shape));
  a.axes = std::move(axes);
  a.any_outside = any_outside;
  return a;
}

TEST(Gradients, OfScatterAdd) {
  const uint64_t seed = fresh_seed();
  auto scatter = [](const std::vector<Expr>& places, const ExprAttributes& a) {
    return [=](const std::vector<Expr>& in) {
      std::vector<Expr> operands = {in[0]};
      operands.insert(operands.end(), places.begin(), places.end());
      return *apply(ExprOp::kScatterAdd, operands, a);
    };
  };
  auto expect = [&](const char* what, const std::vector<Expr>& places, const ExprAttributes& a, const Shape& shape) {
    expect_gradient({ExprOp::kScatterAdd, what, scatter(places, a), {shape}}, seed);
  };
  // The same row twice adds up.
  expect("rows", {integers({4, 1}, {2, 0, -3, 2})}, scattered({0}, {3, 9}), {4, 9});
  expect("elements", {integers({2, 3}, {2, 0, 2, 1, 1, 0})}, scattered({1}, {2, 3}), {2, 3});
  expect("outside", {integers({3}, {-1, 1, 4})}, scattered({0}, {4}, true), {3});
  expect("two axes", {integers({3, 1, 1}, {1, 0, 1}), integers({3, 1, 1}, {0, 2, 0})}, scattered({0, 2}, {2, 2, 3}),
         {3, 2, 1});
}

TEST(Gradients, ScatterAddAgreesWithFloat64) {
  const uint64_t seed = fresh_seed();
  struct Case {
    Shape values, places, result;
    std::vector<int> axes;
  };
  // Rows, elements, a middle axis, a result that is shared by many, few places, one place for all.
  const Case cases[] = {{{3000, 40}, {3000, 1}, {77, 40}, {0}},
                        {{5, 2000}, {5, 2000}, {5, 300}, {1}},
                        {{2, 900, 3}, {900, 1}, {2, 50, 3}, {1}},
                        {{60, 50, 24}, {60, 50, 1}, {130, 1, 24}, {0}},
                        {{4000}, {4000}, {3}, {0}},
                        {{1, 700}, {1, 1}, {9, 700}, {0}}};
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64})
    for (const Case& c : cases) {
      const Tensor values = random_tensor(c.values, seed, dtype);
      const Tensor places = *randint(cpu(), DType::kI64, c.places, 0, c.result[static_cast<size_t>(c.axes[0])], seed);
      auto make = [&] {
        const Expr x = op(ExprOp::kMul, {values, Expr::scalar(0.75)});
        return op(ExprOp::kTanh, {op(ExprOp::kScatterAdd, {x, places}, scattered(c.axes, c.result))});
      };
      // By the reference in float64, with the tolerance of the dtype.
      const auto expected = reference(make());
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      const auto result = run(make());
      ASSERT_TRUE(result.ok()) << result.error().message;
      const auto error = compare(*expected, *result);
      ASSERT_TRUE(error.ok()) << error.error().message;
      EXPECT_TRUE(error->ok()) << name(dtype) << " element " << error->first_bad << " is " << error->got << ", not "
                               << error->expected;
      // On the host as by kernels.
      // Bit for bit: both add in the same order.
      EXPECT_EQ(numbers(run_on_host(make())), numbers(result)) << name(dtype);
    }
  auto wrong = apply(ExprOp::kScatterAdd, {Expr(random_tensor({4, 3}, 1)), integers({4, 1}, {0, 1, 2, 3})},
                     scattered({0}, {5, 2}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "scatter_add: [4, 3] cannot become [5, 2]");
}

/// What needs no scatter shares a plan with what the scatter needs.
TEST(Gradients, OfAnEmbeddingAreOnePlanAndAKernel) {
  const Expr table(random_tensor({90, 40}, 1)), w(random_tensor({40, 50}, 2));
  const Expr places(*randint(cpu(), DType::kI64, Shape{200, 1}, 0, 90, 3));
  const Expr h = op(ExprOp::kTanh, {op(ExprOp::kMatMul, {op(ExprOp::kTake, {table, places}, along({0})), w})});
  const Expr loss = op(ExprOp::kMean, {op(ExprOp::kMul, {h, h})});
  const Expr in[] = {table, w};
  std::vector<Expr> all = *gradients(loss, in);
  all.push_back(loss);
  const auto expected = reference(all[0]);
  const ExprCacheStats before = expr_cache_stats(cpu());
  ASSERT_TRUE(run_together(all).ok());
  // One plan for all, though the scatter runs beside it.
  EXPECT_EQ(expr_cache_stats(cpu()).planned + expr_cache_stats(cpu()).found, before.planned + before.found + 1);
  EXPECT_TRUE(compare(*expected, *all[0].tensor())->ok());
}

TEST(Gradients, AlongAxes) {
  const uint64_t seed = fresh_seed();
  using O = ExprOp;
  for (O o : {O::kSum, O::kMean, O::kVar, O::kMax, O::kMin})
    for (bool keepdim : {false, true}) {
      expect_gradient({o, "of all", unary(o, along({}, keepdim)), {{3, 5}}}, seed);
      expect_gradient({o, "of rows", unary(o, along({1}, keepdim)), {{3, 5}}}, seed);
      expect_gradient({o, "of two axes", unary(o, along({0, 2}, keepdim)), {{2, 3, 4}}}, seed);
    }
  for (O o : {O::kCumSum, O::kCumProd, O::kSoftmax, O::kLogSoftmax})
    for (int axis : {0, 1}) expect_gradient({o, "", unary(o, along({axis})), {{4, 5}}}, seed);
  // Norms with and without weights, over one axis and over two.
  for (O o : {O::kLayerNorm, O::kRmsNorm}) {
    expect_gradient({o, "", unary(o, along({1})), {{4, 5}}}, seed);
    expect_gradient({o, "with a weight", binary(o, along({1})), {{4, 5}, {5}}}, seed);
    expect_gradient({o, "of two axes", binary(o, along({1, 2})), {{2, 3, 2}, {3, 2}}}, seed);
  }
  expect_gradient({O::kLayerNorm,
                   "with a bias",
                   [](auto& in) {
                     return op(O::kLayerNorm, {in[0], in[1], in[2]});
                   },
                   {{4, 5}, {5}, {5}}},
                  seed);
}

TEST(Gradients, OfProducts) {
  const uint64_t seed = fresh_seed();
  // All combinations of vectors, matrices and batches that broadcast.
  const std::pair<Shape, Shape> shapes[] = {
      {{3, 4}, {4, 5}},    {{4}, {4, 5}},          {{3, 4}, {4}},       {{4}, {4}},
      {{2, 3, 4}, {4, 5}}, {{2, 3, 4}, {2, 4, 5}}, {{3, 4}, {2, 4, 5}}, {{2, 1, 3, 4}, {3, 4, 2}},
      {{2, 3, 4}, {4}},    {{4}, {2, 4, 3}}};
  for (const auto& [a, b] : shapes) expect_gradient({ExprOp::kMatMul, "", binary(ExprOp::kMatMul), {a, b}}, seed);
}

TEST(Gradients, EveryOperationHasARuleOrIsRefused) {
  const std::set<ExprOp> refused = {ExprOp::kFloorDiv, ExprOp::kCumMax, ExprOp::kCumMin, ExprOp::kCall};
  // Steps, whose gradient is zero, and what gives no floats.
  const std::set<ExprOp> nothing = {
      ExprOp::kFloor,  ExprOp::kCeil,   ExprOp::kRound,      ExprOp::kTrunc,     ExprOp::kInput,      ExprOp::kScalar,
      ExprOp::kIota,   ExprOp::kFull,   ExprOp::kEq,         ExprOp::kNe,        ExprOp::kLt,         ExprOp::kLe,
      ExprOp::kGt,     ExprOp::kGe,     ExprOp::kLogicalAnd, ExprOp::kLogicalOr, ExprOp::kLogicalNot, ExprOp::kBitAnd,
      ExprOp::kBitOr,  ExprOp::kBitXor, ExprOp::kBitNot,     ExprOp::kShl,       ExprOp::kShr,        ExprOp::kIsNan,
      ExprOp::kArgMax, ExprOp::kArgMin, ExprOp::kRandomWord, ExprOp::kPut};
  for (int i = 0; i < kNumExprOps; ++i) {
    const auto o = static_cast<ExprOp>(i);
    EXPECT_EQ(no_gradient_of(o).has_value(), refused.contains(o)) << name(o);
    // Every operation is in exactly one of the three.
    EXPECT_EQ(checked_ops().contains(o), !refused.contains(o) && !nothing.contains(o))
        << name(o) << " needs a case above, or a line in these lists";
  }
}

TEST(Gradients, RefusedOperationsAreNamed) {
  const Tensor x = random_tensor({5}, 1);
  const Expr e = op(ExprOp::kSum, {op(ExprOp::kFloorDiv, {x, Expr::scalar(2.0)})});
  const Expr in(x);
  auto found = gradients(e, {&in, 1});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "no gradient of floor_div: it is a step function, which torch refuses too");
}

TEST(Gradients, TiesAndNumbersThatAreNone) {
  const double inf = INFINITY, nan = NAN;
  auto of = [&](const Function& f, const std::vector<double>& at) {
    const std::vector<Expr> in = {Expr(f64_tensor({static_cast<int64_t>(at.size())}, at))};
    const Expr found = (*gradients(total(f(in)), in))[0];
    return found ? elements(found) : std::vector<double>(at.size());
  };
  // At a kink torch takes zero, on both sides of it the slope.
  EXPECT_EQ(of(unary(ExprOp::kAbs), {0.0, -0.0, nan, -2, 3}), (std::vector<double>{0, 0, 0, -1, 1}));
  EXPECT_EQ(of(unary(ExprOp::kRelu), {0.0, 1, nan, -2, inf}), (std::vector<double>{0, 1, 1, 0, 1}));
  // Equal maxima share the gradient.
  EXPECT_EQ(of(unary(ExprOp::kMax), {1, 3, 3}), (std::vector<double>{0, 0.5, 0.5}));
  EXPECT_TRUE(std::isnan(of(unary(ExprOp::kMax), {1, nan})[0]));
  const Expr zero = Expr::scalar(0.0), one = Expr::scalar(1.0);
  auto clamp = [&](auto& in) { return op(ExprOp::kClamp, {in[0], zero, one}); };
  EXPECT_EQ(of(clamp, {0, 1, nan, -2, 0.5}), (std::vector<double>{0, 0, 0, 0, 1}));
  auto power = [&](auto& in) { return op(ExprOp::kPow, {in[0], Expr::scalar(0.0)}); };
  EXPECT_EQ(of(power, {0, 1, -2}), (std::vector<double>{0, 0, 0}));
  auto products = [&](auto& in) { return op(ExprOp::kCumProd, {in[0]}, along({0})); };
  // A product with one zero has a gradient at that zero alone.
  EXPECT_EQ(of(products, {2, 0, 3, 0}), (std::vector<double>{1, 8, 0, 0}));
  EXPECT_EQ(of(products, {2, 3, 4}), (std::vector<double>{16, 10, 6}));
  // What is infinite stays where it was read.
  const Expr rows = integers({3}, {0, 1, 0});
  auto looked = [&](auto& in) {
    const Expr found = *apply(ExprOp::kTake, std::vector<Expr>{in[0], rows}, along({0}));
    return op(ExprOp::kMul, {found, Expr(f64_tensor({3}, {1, inf, 2}))});
  };
  // An infinite gradient does not spread to the rows beside it.
  EXPECT_EQ(of(looked, {1, 1, 1}), (std::vector<double>{3, inf, 0}));
}

TEST(Gradients, SumOverSeveralUsesAndKeepDtypes) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    const Tensor x = random_tensor({4, 6}, 3, dtype), w = random_tensor({6, 6}, 4, dtype), b = random_tensor({6}, 5);
    const Expr in[] = {Expr(x), Expr(w), Expr(b)};
    Expr h = op(ExprOp::kMatMul, {op(ExprOp::kTanh, {op(ExprOp::kMatMul, {in[0], in[1]})}), in[1]});
    // The sum promotes, and each gradient has its own operand's dtype.
    h = op(ExprOp::kAdd, {op(ExprOp::kAdd, {h, in[0]}), in[2]});  // float32 in the end
    auto found = *gradients(total(h), in);
    EXPECT_EQ(found[0].dtype(), dtype);
    EXPECT_EQ(found[1].dtype(), dtype);
    EXPECT_EQ(found[2].dtype(), DType::kF32);
    EXPECT_EQ(elements(found[2]), std::vector<double>(6, 4.0));
  }
}

TEST(Gradients, OfGradients) {
  const uint64_t seed = fresh_seed();
  // d/dx of (d/dx Σ f(x))²: each rule is made of operations that have rules.
  for (ExprOp o : {ExprOp::kTanh, ExprOp::kGelu, ExprOp::kSoftmax, ExprOp::kExp, ExprOp::kSilu, ExprOp::kCumProd,
                   ExprOp::kLayerNorm, ExprOp::kVar, ExprOp::kLogSoftmax, ExprOp::kErf}) {
    const auto kind = info(o).kind;
    const bool rows = kind == ExprKind::kRow || kind == ExprKind::kReduce;
    // The row functions need their axis.
    auto slope = [=](const std::vector<Expr>& in) {
      const Expr y = op(o, {in[0]}, rows ? along({1}) : ExprAttributes{});
      const std::vector<Expr> one = {in[0]};
      return (*gradients(total(op(ExprOp::kMul, {y, y})), one))[0];
    };
    expect_gradient({o, "twice", slope, {{3, 4}}, 0.3, 1.7}, seed);
  }
}

TEST(Gradients, WithoutAWayAreEmpty) {
  const Expr in[] = {Expr(random_tensor({3}, 1)), Expr(random_tensor({3}, 2)), Expr(random_tensor({3}, 3))};
  ExprAttributes whole;
  whole.dtype = DType::kI32;
  ExprAttributes back;
  back.dtype = DType::kF32;
  const Expr cut = op(ExprOp::kCast, {op(ExprOp::kCast, {in[2]}, whole)}, back);
  auto found = *gradients(total(op(ExprOp::kMul, {in[0], cut})), in);
  EXPECT_TRUE(static_cast<bool>(found[0]));
  EXPECT_FALSE(static_cast<bool>(found[1]));
  EXPECT_FALSE(static_cast<bool>(found[2]));  // integers end the way
  auto no_scalar = gradients(in[0], in);
  ASSERT_FALSE(no_scalar.ok());
  EXPECT_EQ(no_scalar.error().message, "the gradient of a value of 3 elements");
}

TEST(Gradients, VariablesRememberWhatWasComputed) {
  const Tensor x = random_tensor({8}, 1);
  const Expr plain(x);
  // What was computed outside of a scope has forgotten how.
  const Expr forgot = total(op(ExprOp::kMul, {plain, plain}));
  ASSERT_TRUE(run(forgot).ok());
  auto refused = gradients(forgot, {&plain, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "sum was computed before its gradient was asked for");
  Expr y;
  {
    GradScope scope;
    const Expr v = *scope.variable(plain);
    y = op(ExprOp::kMul, {v, v});
    ASSERT_TRUE(run(y).ok());
    EXPECT_TRUE(y.records());
    // Detached: counted as a constant, so one factor of the two gives a slope.
    const Expr z = total(op(ExprOp::kMul, {y, detached(y)}));
    auto g = *gradients(z, {&v, 1});
    const std::vector<double> at = numbers(x), got = elements(g[0]);
    for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(got[i], 2 * at[i] * at[i] * at[i], 1e-5);
    // Of an inner scope, whose result depends on the outer variable.
    GradScope inner;
    const Expr u = *inner.variable(y);
    EXPECT_EQ(count_scopes({{plain, v, y}}), 1);
    EXPECT_EQ(count_scopes({{u}}), 2);
    auto of_u = *gradients(total(op(ExprOp::kMul, {u, u})), {&u, 1});
    auto of_v = *gradients(total(of_u[0]), {&v, 1});
    const std::vector<double> twice = elements(of_v[0]);
    for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(twice[i], 4 * at[i], 1e-5);
    // Integers have no gradient, so no variable can be made of them.
    EXPECT_FALSE(scope.variable(Expr::iota(cpu(), 4)).ok());
  }
  // Without its scope nothing is remembered.
  EXPECT_FALSE(y.records());
}

// A tensor that operations did not make: its rule says what flows to the operands.
TEST(Gradients, WhatWasReleasedLetsGoOfItsOperands) {
  const Tensor x = random_tensor({3, 4}, 7);
  GradScope scope;
  const Expr v = *scope.variable(Expr(x)), w = *scope.variable(Expr(x));
  const Expr square = op(ExprOp::kMul, {v, v}), y = total(op(ExprOp::kAdd, {square, w}));
  const std::vector<Expr> found = variables_of({{y}});
  ASSERT_EQ(found.size(), 2u);
  for (const Expr& e : found) EXPECT_TRUE(e.node() == v.node() || e.node() == w.node());
  auto g = *gradients(y, {&v, 1});
  release({{y}});
  // A gradient that was asked for before can be computed, and so can the value.
  const std::vector<double> at = numbers(x), got = elements(g[0]);
  for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(got[i], 2 * at[i], 1e-5);
  ASSERT_TRUE(run(y).ok());
  EXPECT_TRUE(variables_of({{y}}).empty());
  for (const Expr& e : {y, total(square)}) {
    auto refused = gradients(e, {&v, 1});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("was released"), std::string::npos) << refused.error().message;
  }
  // What is made of the variables anew has gradients.
  EXPECT_TRUE(gradients(total(op(ExprOp::kMul, {v, w})), {&v, 1}).ok());
}

TEST(Gradients, ByARuleOfTheirOwn) {
  const Tensor x = random_tensor({8}, 1), y = random_tensor({8}, 2);
  const Tensor product = *run(op(ExprOp::kMul, {Expr(x), Expr(y)}));
  const GradientRule rule = [](const Expr& g, std::span<const Expr> of) -> Result<std::vector<Expr>> {
    return std::vector<Expr>{op(ExprOp::kMul, {g, of[1]}), {}};  // the second is a constant
  };
  EXPECT_FALSE(with_gradient(product, std::array{Expr(x), Expr(y)}, rule)->records()) << "none of them records";
  GradScope scope;
  const Expr u = *scope.variable(Expr(x)), w = *scope.variable(Expr(y));
  const Expr made = *with_gradient(product, std::array{u, w}, rule);
  EXPECT_TRUE(made.records());
  const Expr value = total(op(ExprOp::kMul, {made, made}));
  const Expr inputs[] = {u, w};
  const auto found = *gradients(value, inputs);
  // The rule gave none for the second operand.
  EXPECT_FALSE(found[1]);
  const std::vector<double> got = elements(found[0]), a = numbers(x), b = numbers(y);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(got[i], 2 * a[i] * b[i] * b[i], 1e-5);
  auto problem = [&](const GradientRule& wrong) {
    auto none = gradients(total(*with_gradient(product, std::array{u}, wrong)), {&u, 1});
    return none.ok() ? std::string() : none.error().message;
  };
  // A rule that gives the wrong number of gradients, the wrong shape, an error.
  EXPECT_EQ(problem([](const Expr&, std::span<const Expr>) { return Result<std::vector<Expr>>(std::vector<Expr>{}); }),
            "a rule gives 0 gradients of 1 operands");
  EXPECT_EQ(problem([](const Expr& g, std::span<const Expr>) -> Result<std::vector<Expr>> {
              return std::vector<Expr>{total(g)};
            }),
            "the gradient of an operand f32[8] by its rule is f32[]");
  EXPECT_EQ(problem([](const Expr&, std::span<const Expr>) -> Result<std::vector<Expr>> {
              return error(ErrorKind::kValue, "no idea");
            }),
            "no idea");
  EXPECT_FALSE(with_gradient(*Tensor::full(cpu(), DType::kI32, {{2}}, 1.0), {}, rule).ok());
}

// A rule gets a gradient that is computed. What that shares with others is kept; what only they need stays pending.
TEST(Gradients, ComputeForARuleWhatOthersReadAgain) {
  GradScope scope;
  auto variable = [&](const Shape& shape, uint32_t seed) { return *scope.variable(Expr(random_tensor(shape, seed))); };
  const Expr x = variable({67, 40}, 1), w1 = variable({40, 30}, 2), w2 = variable({30, 20}, 3);
  const Expr hidden = op(ExprOp::kTanh, {op(ExprOp::kMatMul, {x, w1})}), first = op(ExprOp::kMatMul, {hidden, w2});
  ASSERT_TRUE(run_and_keep({&first, 1}).ok());
  EXPECT_TRUE(hidden.tensor()) << "the gradient of w2 reads it";
  bool was_computed = false;
  const Expr made = *with_gradient(*first.tensor(), {&first, 1},
                                   [&](const Expr& g, std::span<const Expr>) -> Result<std::vector<Expr>> {
                                     was_computed = g.tensor() != nullptr;
                                     return std::vector<Expr>{g};
                                   });
  const Expr w3 = variable({20, 50}, 4), product = op(ExprOp::kMatMul, {made, w3});
  const Expr loss = op(ExprOp::kMean, {op(ExprOp::kMul, {product, product})}), inputs[] = {w1, w2, w3};
  const std::vector<Expr> found = *gradients(loss, inputs);
  EXPECT_TRUE(was_computed);
  EXPECT_TRUE(product.tensor()) << "the gradients of made and of w3 read it";
  EXPECT_TRUE(found[2].tensor()) << "complete: pending, it would hold what it is made of";
  const Expr plain = op(ExprOp::kMatMul, {first, w3});
  const std::vector<Expr> want = *gradients(op(ExprOp::kMean, {op(ExprOp::kMul, {plain, plain})}), inputs);
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<double> a = elements(found[i]), b = elements(want[i]);
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5) << i;
  }
}

TEST(Gradients, LongChainsAreWalked) {
  GradScope scope;
  const Expr x = *scope.variable(Expr(random_tensor({4}, 1)));
  Expr y = x;
  // Far longer than any stack would be deep.
  for (int i = 0; i < 20000; ++i) {
    y = op(ExprOp::kMul, {y, Expr::scalar(1.0001)});
    ASSERT_TRUE(run_on_host(y).ok());
  }
  const Expr value = total(y);
  const Expr one(*Tensor::full(cpu(), DType::kF32, Shape{}, 1.0));
  auto found = gradients({&value, 1}, {&one, 1}, {&x, 1}, [](const Expr& g, const auto&) {
    auto done = run_on_host(g);
    return done.ok() ? Status() : Status(std::move(done.error()));
  });
  ASSERT_TRUE(found.ok());
  // The rounding of 20000 products.
  EXPECT_NEAR(elements((*found)[0])[0], std::exp(20000 * std::log(1.0001)), 0.01);
}

/// What is computed on the way has one order, so that its plan is found again in the next step.
TEST(Gradients, GiveWhatIsUnderWayInOneOrder) {
  auto order = [&] {
    std::vector<Expr> inputs;
    Expr sum;
    for (int64_t i = 1; i <= 40; ++i) {
      inputs.emplace_back(random_tensor({i}, static_cast<uint64_t>(i)));
      const Expr part = total(op(ExprOp::kMul, {inputs.back(), inputs.back()}));
      sum = sum ? op(ExprOp::kAdd, {sum, part}) : part;
    }
    const Expr one(*Tensor::full(cpu(), DType::kF32, Shape{}, 1.0));
    std::vector<std::vector<int64_t>> sizes;
    EXPECT_TRUE(gradients({&sum, 1}, {&one, 1}, inputs, [&](const Expr&, const auto& all) {
                  for (const Expr& e : all()) sizes.emplace_back(1, e.numel());
                  return Status();
                }).ok());
    return sizes;
  };
  const auto first = order();
  std::vector<std::unique_ptr<char[]>> between;  // the nodes lie elsewhere then
  for (size_t i = 1; i < 200; ++i) between.push_back(std::make_unique<char[]>(8 * i));
  EXPECT_EQ(order(), first);
}

/// The forward and the backward of a layer are planned together.
TEST(Gradients, ShareAPlanWithTheValue) {
  const Expr in[] = {Expr(random_tensor({67, 40}, 1)), Expr(random_tensor({40, 30}, 2)), Expr(random_tensor({30}, 3))};
  const Expr h = op(ExprOp::kGelu, {op(ExprOp::kAdd, {op(ExprOp::kMatMul, {in[0], in[1]}), in[2]})});
  const Expr loss = op(ExprOp::kMean, {op(ExprOp::kMul, {h, h})});
  std::vector<Expr> all = *gradients(loss, in);
  all.push_back(loss);
  std::vector<std::vector<double>> apart;
  for (const Expr& e : all) {
    auto r = reference(e);
    ASSERT_TRUE(r.ok());
    // Each on its own, from the reference.
    apart.push_back(r->slabs.at(0).values);
  }
  const ExprCacheStats before = expr_cache_stats(cpu());
  ASSERT_TRUE(run_together(all).ok());
  EXPECT_EQ(expr_cache_stats(cpu()).planned + expr_cache_stats(cpu()).found, before.planned + before.found + 1);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<double> got = numbers(*all[i].tensor());
    for (size_t k = 0; k < apart[i].size(); ++k) ASSERT_NEAR(got[k], apart[i][k], 1e-4) << i << " " << k;
  }
}

}  // namespace
}  // namespace kiln
