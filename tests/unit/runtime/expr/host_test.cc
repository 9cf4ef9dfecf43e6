// What expressions mean on the host, against formulas written out.
#include "runtime/expr/host.h"

#include <algorithm>
#include <cmath>

#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

TEST(ExprHost, FunctionsOfFloats) {
  const uint64_t seed = fresh_seed();
  Tensor x = random_tensor({37}, seed, DType::kF64);
  const std::vector<double> in = *x.to_doubles();
  struct Row {
    ExprOp op;
    double (*expected)(double);
  };
  const Row rows[] = {
      {ExprOp::kNeg, [](double v) { return -v; }},
      {ExprOp::kAbs, [](double v) { return v < 0 ? -v : v; }},
      {ExprOp::kReciprocal, [](double v) { return 1 / v; }},
      {ExprOp::kExp, [](double v) { return std::exp(v); }},
      {ExprOp::kExpm1, [](double v) { return std::expm1(v); }},
      {ExprOp::kTanh, [](double v) { return std::tanh(v); }},
      {ExprOp::kErf, [](double v) { return std::erf(v); }},
      {ExprOp::kSigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {ExprOp::kSilu, [](double v) { return v / (1 + std::exp(-v)); }},
      {ExprOp::kRelu, [](double v) { return v > 0 ? v : 0; }},
      {ExprOp::kGelu, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); }},
      {ExprOp::kFloor, [](double v) { return std::floor(v); }},
      {ExprOp::kTrunc, [](double v) { return std::trunc(v); }},
      {ExprOp::kLogicalNot, [](double v) { return v == 0 ? 1.0 : 0.0; }},
      {ExprOp::kIsNan, [](double) { return 0.0; }},
  };
  for (const Row& row : rows) {
    std::vector<double> got = numbers(run_on_host(op(row.op, {x})));
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_NEAR(got[i], row.expected(in[i]), 1e-14 * (1 + std::fabs(got[i]))) << name(row.op) << " of " << in[i];
  }
  EXPECT_NEAR(numbers(run_on_host(op(ExprOp::kGeluTanh, {x})))[0], numbers(run_on_host(op(ExprOp::kGelu, {x})))[0],
              5e-4);
}

/// Printing and size never change a value: what is computed at once and what is computed later are the same bits.
TEST(ExprHost, SumsAreTheKernels) {
  for (const Shape& shape : {Shape{3}, Shape{1000}, Shape{37, 91}, Shape{64, 63}}) {
    const Tensor x = random_tensor(shape, fresh_seed(), DType::kF32);
    ExprAttributes last;
    last.axes = {-1};
    auto expressions = [&] {
      std::vector<Expr> out = {op(ExprOp::kSum, {x}),          op(ExprOp::kMean, {x}, last),
                               op(ExprOp::kVar, {x}, last),    op(ExprOp::kSoftmax, {x}, last),
                               op(ExprOp::kCumSum, {x}, last), op(ExprOp::kRmsNorm, {x}, last)};
      if (shape.size() == 2) {
        ExprAttributes turn, first;
        turn.axes = {1, 0};
        first.axes = {0};
        const Expr turned = op(ExprOp::kPermute, {x}, turn);
        out.push_back(op(ExprOp::kSum, {x}, first));
        out.push_back(op(ExprOp::kMatMul, {x, turned}));
      }
      return out;
    };
    const std::vector<Expr> now = expressions(), later = expressions();
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_EQ(numbers(run_on_host(now[i])), numbers(run(later[i]))) << "expression " << i << " of " << shape.size();
  }
}

TEST(ExprHost, IntegersWrapAndDivideLikePython) {
  int8_t a[] = {100, -100, 7, -7}, b[] = {100, -100, 2, 2};
  Tensor x = *Tensor::from_host(cpu(), DType::kI8, Shape{4}, a, 4),
         y = *Tensor::from_host(cpu(), DType::kI8, Shape{4}, b, 4);
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kAdd, {x, y}))), (std::vector<double>{-56, 56, 9, -5}));
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kFloorDiv, {x, y}))), (std::vector<double>{1, 1, 3, -4}));
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kMod, {x, y}))), (std::vector<double>{0, 0, 1, 1}));
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kSum, {x}))), (std::vector<double>{0})) << "a sum of integers is of int64";
  auto zero = apply(ExprOp::kFloorDiv, {x, Expr::scalar(int64_t{0})});
  ASSERT_FALSE(zero.ok());
  EXPECT_EQ(zero.error().message, "division by zero of a tensor of integers");
  auto inverse = apply(ExprOp::kPow, {x, Expr::scalar(int64_t{-1})});
  ASSERT_FALSE(inverse.ok());
  EXPECT_EQ(inverse.error().message, "integers cannot be raised to a negative power");
  uint64_t big[] = {~uint64_t{0}, 1};
  Tensor u = *Tensor::from_host(cpu(), DType::kU64, Shape{2}, big, 16);
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kGt, {u, *u.as_strided(Shape{1}, Shape{1}, 1)}))),
            (std::vector<double>{1, 0}));
}

/// A number that its dtype does not have is the constant of a kernel here too.
TEST(ExprHost, ConstantsBeyondTheirDtype) {
  for (DType dtype : {DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kF16, DType::kF64})
    for (double value : {1e30, -1e30, 300.5, -1.5, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      auto sum = [&] {
        return op(ExprOp::kMaximum, {Expr::full(cpu(), {4}, value, dtype), Expr::full(cpu(), {4}, int64_t{0}, dtype)});
      };
      const std::vector<double> now = numbers(run_on_host(sum())), later = numbers(run(sum()));
      ASSERT_EQ(now.size(), 4u);
      for (size_t i = 0; i < 4; ++i)
        EXPECT_TRUE(now[i] == later[i] || (std::isnan(now[i]) && std::isnan(later[i])))
            << value << " as " << name(dtype) << ": " << now[i] << " and " << later[i];
      if (dtype == DType::kI64 && !std::isnan(value)) {
        EXPECT_EQ(now[0], std::clamp(std::trunc(value), 0.0, 0x1p63)) << value;
      }
    }
}

TEST(ExprHost, RoundsEachOperation) {
  float third = 1.0f / 3;
  Tensor x = *Tensor::from_host(cpu(), DType::kF32, Shape{1}, &third, 4);
  ExprAttributes half, single;
  half.dtype = DType::kF16;
  single.dtype = DType::kF32;
  const Expr rounded = op(ExprOp::kCast, {op(ExprOp::kCast, {x}, half)}, single);
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kMul, {rounded, Expr::scalar(3.0)})))[0], 0.999755859375);
  const Expr tiny = Expr::scalar(0x1p-30), one = Expr(*Tensor::full(cpu(), DType::kF32, Shape{1}, 1));
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kSub, {op(ExprOp::kAdd, {one, tiny}), Expr::scalar(1.0)})))[0], 0.0);
  const Tensor w = *Tensor::full(cpu(), DType::kF16, Shape{1}, 300);
  const Expr large = op(ExprOp::kCast, {op(ExprOp::kMul, {w, Expr::scalar(300.0)})}, single);
  EXPECT_EQ(numbers(run_on_host(large))[0], INFINITY);
  EXPECT_EQ(reference(large)->slabs[0].values[0], INFINITY);
}

TEST(ExprHost, ReductionsAlongAnyAxes) {
  Tensor x = random_tensor({3, 4, 5}, fresh_seed(), DType::kF64);
  const std::vector<double> v = *x.to_doubles();
  std::vector<double> sum = numbers(run_on_host(op(ExprOp::kSum, {x}, along({0, 2}))));
  ASSERT_EQ(sum.size(), 4u);
  for (size_t j = 0; j < 4; ++j) {
    double want = 0, square = 0;
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 5; ++k) want += v[i * 20 + j * 5 + k];
    EXPECT_NEAR(sum[j], want, 1e-12);
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 5; ++k) square += std::pow(v[i * 20 + j * 5 + k] - want / 15, 2);
    EXPECT_NEAR(numbers(run_on_host(op(ExprOp::kVar, {x}, along({0, 2}))))[j], square / 14, 1e-12);
  }
  Expr kept = op(ExprOp::kMax, {x}, along({1}, true));
  EXPECT_EQ(Shape(kept.shape().begin(), kept.shape().end()), (Shape{3, 1, 5}));
  std::vector<double> columns = numbers(run_on_host(op(ExprOp::kSoftmax, {x}, along({1}))));
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < 5; ++k) {
      double total = 0, scale = 0;
      for (size_t j = 0; j < 4; ++j) total += columns[i * 20 + j * 5 + k], scale += std::exp(v[i * 20 + j * 5 + k]);
      EXPECT_NEAR(total, 1, 1e-12);
      EXPECT_NEAR(columns[i * 20 + k], std::exp(v[i * 20 + k]) / scale, 1e-12);
    }
}

// torch's rules: the first of equal elements, and a NaN is both the greatest and the least. On the host and by kernels.
TEST(ExprHost, PlacesOfExtremes) {
  const float nan = NAN, inf = INFINITY;
  const std::vector<float> v = {1, 5, 5, -2, -2, nan, 3, nan, -inf, -inf, -inf, -inf, 7, 7, inf, inf};
  const Tensor x = *Tensor::from_host(cpu(), DType::kF32, Shape{4, 4}, v.data(), v.size() * 4);
  const Tensor halves = *x.to(DType::kF16);
  const std::vector<int64_t> whole = {3, -1, 3, -1, 0, 9, -9, 9};
  const Tensor i = *Tensor::from_host(cpu(), DType::kI64, Shape{2, 4}, whole.data(), whole.size() * 8);
  const Tensor bools = *Tensor::from_host(cpu(), DType::kI1, Shape{4}, "\0\1\0\1", 4);
  struct Case {
    Tensor x;
    ExprOp which;
    ExprAttributes along;
    std::vector<double> want;
  };
  const Case cases[] = {
      {x, ExprOp::kArgMax, along({1}), {1, 1, 0, 2}},
      {x, ExprOp::kArgMin, along({-1}), {3, 1, 0, 0}},
      {x, ExprOp::kArgMax, along({0}), {3, 1, 3, 1}},
      {x, ExprOp::kArgMin, along({0}, true), {2, 1, 2, 1}},
      {x, ExprOp::kArgMax, {}, {5}},
      {halves, ExprOp::kArgMax, along({1}), {1, 1, 0, 2}},
      {i, ExprOp::kArgMax, along({1}), {0, 1}},
      {i, ExprOp::kArgMin, along({1}), {1, 2}},
      {i, ExprOp::kArgMin, {}, {6}},
      {bools, ExprOp::kArgMax, along({0}), {1}},
      {bools, ExprOp::kArgMin, along({0}), {0}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(name(c.which)) + " of " + std::string(name(c.x.dtype())));
    EXPECT_EQ(numbers(run_on_host(op(c.which, {c.x}, c.along))), c.want);
    for (ExprVariant variant : {ExprVariant::kUnfused, ExprVariant::kFused}) {
      const Expr e = op(c.which, {c.x}, c.along);
      EXPECT_EQ(e.dtype(), DType::kI64);
      EXPECT_EQ(numbers(run(e, variant)), c.want) << name(variant);
    }
  }
  auto none = apply(ExprOp::kArgMax, {Expr(*Tensor::zeros(cpu(), DType::kF32, Shape{3, 0}))}, along({1}));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "argmax of no elements");
  auto two = apply(ExprOp::kArgMin, {Expr(random_tensor({2, 3, 4}, 1))}, along({0, 2}));
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().message, "argmin takes one dimension, or none for all of them");
}

TEST(ExprHost, RunningSums) {
  const std::vector<int64_t> v = {1, 2, 3, 100, 27, 1, -3, 4, 5};
  const Tensor x = *Tensor::from_host(cpu(), DType::kI64, Shape{3, 3}, v.data(), v.size() * 8),
               bytes = *x.to(DType::kI8), halves = *x.to(DType::kF16), bools = *x.to(DType::kI1);
  ExprAttributes as_byte = along({1});
  as_byte.dtype = DType::kI8;
  struct Case {
    Tensor x;
    ExprOp which;
    ExprAttributes along;
    DType dtype;
    std::vector<double> want;
  };
  const Case cases[] = {
      {x, ExprOp::kCumSum, along({1}), DType::kI64, {1, 3, 6, 100, 127, 128, -3, 1, 6}},
      {bytes, ExprOp::kCumSum, along({-1}), DType::kI64, {1, 3, 6, 100, 127, 128, -3, 1, 6}},
      {x, ExprOp::kCumSum, as_byte, DType::kI8, {1, 3, 6, 100, 127, -128, -3, 1, 6}},
      {halves, ExprOp::kCumSum, along({0}), DType::kF16, {1, 2, 3, 101, 29, 4, 98, 33, 9}},
      {bools, ExprOp::kCumSum, along({0}), DType::kI64, {1, 1, 1, 2, 2, 2, 3, 3, 3}},
      {x, ExprOp::kCumProd, along({1}), DType::kI64, {1, 2, 6, 100, 2700, 2700, -3, -12, -60}},
      {halves, ExprOp::kCumProd, along({1}), DType::kF16, {1, 2, 6, 100, 2700, 2700, -3, -12, -60}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(name(c.which)) + " of " + std::string(name(c.x.dtype())));
    EXPECT_EQ(numbers(run_on_host(op(c.which, {c.x}, c.along))), c.want);
    for (ExprVariant variant : {ExprVariant::kUnfused, ExprVariant::kFused}) {
      const Expr e = op(c.which, {c.x}, c.along);
      EXPECT_EQ(e.dtype(), c.dtype);
      EXPECT_EQ(numbers(run(e, variant)), c.want) << name(variant);
    }
  }
  auto two = apply(ExprOp::kCumSum, {Expr(random_tensor({2, 3}, 1))}, along({0, 1}));
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().message, "cumsum takes one tensor and one dimension");
}

TEST(ExprHost, ProductsBroadcastTheirBatches) {
  const uint64_t seed = fresh_seed();
  Tensor a = random_tensor({2, 1, 3, 4}, seed, DType::kF64), b = random_tensor({5, 4, 2}, seed + 1, DType::kF64);
  Expr e = op(ExprOp::kMatMul, {a, b});
  ASSERT_EQ(Shape(e.shape().begin(), e.shape().end()), (Shape{2, 5, 3, 2}));
  std::vector<double> got = numbers(run_on_host(e)), x = *a.to_doubles(), y = *b.to_doubles();
  for (size_t p = 0; p < 2; ++p)
    for (size_t q = 0; q < 5; ++q)
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 2; ++j) {
          double want = 0;
          for (size_t k = 0; k < 4; ++k) want += x[p * 12 + i * 4 + k] * y[q * 8 + k * 2 + j];
          EXPECT_NEAR(got[((p * 5 + q) * 3 + i) * 2 + j], want, 1e-12);
        }
  Tensor v = random_tensor({4}, seed + 2, DType::kF64);
  EXPECT_EQ(numbers(run_on_host(op(ExprOp::kMatMul, {v, v}))).size(), 1u);
}

TEST(ExprHost, RowsOfAnExpressionAreItsRows) {
  const uint64_t seed = fresh_seed();
  Tensor x = random_tensor({9, 6}, seed), w = random_tensor({6, 7}, seed + 1), bias = random_tensor({7}, seed + 2),
         column = random_tensor({9, 1}, seed + 3);
  Expr hidden = op(ExprOp::kGelu, {op(ExprOp::kAdd, {op(ExprOp::kMatMul, {x, w}), bias})});
  Expr normal = op(ExprOp::kLayerNorm, {op(ExprOp::kMul, {hidden, column})}, along({1}));
  Expr mixed = op(ExprOp::kSub, {normal, op(ExprOp::kMean, {normal}, along({1}, true))});
  const Expr cases[] = {mixed, op(ExprOp::kPermute, {mixed}, along({1, 0})), op(ExprOp::kSum, {mixed}, along({1})),
                        op(ExprOp::kSoftmax, {mixed}, along({0}))};
  for (const Expr& e : cases) {
    auto whole = runtime::evaluate(*e.node());
    ASSERT_TRUE(whole.ok());
    const int64_t rows = e.shape()[0], row = e.numel() / rows;
    for (int64_t start : {int64_t{0}, rows - 2}) {
      auto part = runtime::rows_of(e, start, 2);
      ASSERT_TRUE(part.ok()) << part.error().message;
      auto values = runtime::evaluate(*part->node());
      ASSERT_TRUE(values.ok());
      ASSERT_EQ(values->floats.size(), static_cast<size_t>(2 * row));
      for (size_t i = 0; i < values->floats.size(); ++i)
        EXPECT_NEAR(values->floats[i], whole->floats[static_cast<size_t>(start * row) + i], 1e-12);
    }
  }
  auto few = runtime::rows_of(mixed, 3, 1);
  EXPECT_LT(runtime::evaluation_cost(*few->node()), 0.5 * runtime::evaluation_cost(*mixed.node()));
}

}  // namespace
}  // namespace kiln
