// Expressions planned, run and compared on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/device/device.h"
#include "support/trace.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/expr/expr_test_util.h"

namespace kiln {
namespace {

Expr gelu_layer(int64_t m, int64_t k, int64_t n, uint64_t seed, DType dtype = DType::kF32) {
  Tensor x = random_tensor({m, k}, seed, dtype), w = random_tensor({k, n}, seed + 1, dtype),
         b = random_tensor({n}, seed + 2, dtype);
  return op(ExprOp::kGelu, {op(ExprOp::kAdd, {op(ExprOp::kMatMul, {x, w}), b})});
}

TEST(Expr, KnowsShapeAndDtypeWithoutRunning) {
  Expr e = gelu_layer(5, 7, 3, 1);
  EXPECT_EQ(e.dtype(), DType::kF32);
  EXPECT_EQ(Shape(e.shape().begin(), e.shape().end()), (Shape{5, 3}));
  EXPECT_EQ(e.operations(), 3);
  EXPECT_TRUE(e.has_elements(35));
  EXPECT_FALSE(e.has_elements(36));
  EXPECT_EQ(e.tensor(), nullptr);
  EXPECT_EQ(e.device(), cpu());
}

TEST(Expr, ErrorsNameBothShapes) {
  auto sum = apply(ExprOp::kAdd, {Expr(random_tensor({2, 3}, 1)), Expr(random_tensor({4}, 2))});
  ASSERT_FALSE(sum.ok());
  EXPECT_EQ(sum.error().kind, ErrorKind::kType);
  EXPECT_NE(sum.error().message.find("[2, 3] and [4]"), std::string::npos) << sum.error().message;
  EXPECT_FALSE(apply(ExprOp::kAdd, {Expr::scalar(1.0), Expr::scalar(2.0)}).ok());
  Tensor freed = random_tensor({4}, 3);
  Expr e = op(ExprOp::kExp, {freed});
  freed.free();
  auto result = run(e);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("was freed"), std::string::npos) << result.error().message;
}

TEST(Expr, VariantsAgreeWithFloat64) {
  const uint64_t seed = fresh_seed();
  Tensor x = random_tensor({67, 129}, seed), scale = random_tensor({129}, seed + 1),
         column = random_tensor({67, 1}, seed + 2);
  const Expr chain = op(
      ExprOp::kMul, {op(ExprOp::kTanh, {op(ExprOp::kAdd, {op(ExprOp::kMul, {x, scale}), column})}), Expr::scalar(0.5)});
  struct Case {
    const char* what;
    Expr expr;
  };
  const Case cases[] = {
      {"pointwise", chain},
      {"softmax", op(ExprOp::kSoftmax, {chain}, along({1}))},
      {"layer_norm", op(ExprOp::kLayerNorm, {chain, scale, scale}, along({1}))},
      {"rms_norm", op(ExprOp::kRmsNorm, {chain, scale}, along({1}))},
      {"mean of columns", op(ExprOp::kMean, {chain}, along({0}))},
      {"variance", op(ExprOp::kVar, {chain}, along({1}))},
      {"whole sum", op(ExprOp::kSum, {chain})},
      {"places of the greatest", op(ExprOp::kArgMax, {chain}, along({1}))},
      {"places of the least of columns", op(ExprOp::kArgMin, {chain}, along({0}))},
      {"running sums", op(ExprOp::kExp, {op(ExprOp::kCumSum, {op(ExprOp::kMul, {chain, chain})}, along({0}))})},
      {"running products", op(ExprOp::kCumProd, {chain}, along({1}))},
      {"transposed", op(ExprOp::kExp, {op(ExprOp::kPermute, {chain}, along({1, 0}))})},
      {"where", op(ExprOp::kWhere, {op(ExprOp::kGt, {x, Expr::scalar(0.0)}), x, op(ExprOp::kNeg, {x})})},
      {"product", gelu_layer(67, 33, 45, seed)},
      {"product of halves", gelu_layer(33, 65, 31, seed, DType::kF16)},
      {"row of a product", op(ExprOp::kSoftmax, {gelu_layer(17, 33, 45, seed)}, along({1}))},
  };
  for (const Case& c : cases) {
    auto expected = reference(c.expr);
    ASSERT_TRUE(expected.ok()) << c.what << ": " << expected.error().message;
    EXPECT_EQ(expected->checked(), c.expr.numel());
    auto all = variants(c.expr);
    ASSERT_TRUE(all.ok()) << c.what << ": " << all.error().message;
    ASSERT_GE(all->size(), 2u);
    std::optional<ExprError> allowed;
    for (VariantPlan& v : *all) {
      if (v.name == "openblas" && !v.problem.ok()) continue;  // not installed
      ASSERT_TRUE(v.problem.ok()) << c.what << " " << v.name << ": " << v.problem.error().message;
      ASSERT_TRUE(v.poison().ok());
      ASSERT_TRUE(v.launch().ok());
      auto error = compare(*expected, *v.output(), allowed ? &*allowed : nullptr);
      ASSERT_TRUE(error.ok());
      EXPECT_TRUE(error->ok()) << c.what << " " << v.name << ": element " << error->first_bad << " is " << error->got
                               << ", not " << error->expected << "; worst " << error->max_rel << " of "
                               << error->tolerance;
      if (!allowed) allowed = *error;
      // The same as one graph.
      ASSERT_TRUE(v.poison().ok());
      auto graph = v.graph();
      ASSERT_TRUE(graph.ok()) << c.what << " " << v.name << ": " << graph.error().message;
      ASSERT_TRUE(graph->launch().ok());
      error = compare(*expected, *v.output(), &*allowed);
      EXPECT_TRUE(error->ok()) << c.what << " " << v.name << " as a graph";
    }
  }
}

/// Each variant against float64, as %compare judges them.
void expect_variants_right(const Expr& expr, const std::string& what) {
  auto expected = reference(expr);
  ASSERT_TRUE(expected.ok()) << what << ": " << expected.error().message;
  auto all = variants(expr);
  ASSERT_TRUE(all.ok()) << what << ": " << all.error().message;
  std::optional<ExprError> allowed;
  for (VariantPlan& v : *all) {
    ASSERT_TRUE(v.problem.ok()) << what << " " << v.name << ": " << v.problem.error().message;
    ASSERT_TRUE(v.poison().ok());
    ASSERT_TRUE(v.launch().ok());
    auto error = compare(*expected, *v.output(), allowed ? &*allowed : nullptr);
    ASSERT_TRUE(error.ok());
    EXPECT_TRUE(error->ok()) << what << " " << v.name << ": element " << error->first_bad << " is " << error->got
                             << ", not " << error->expected << "; worst " << error->max_rel << " of "
                             << error->tolerance;
    if (!allowed) allowed = *error;
  }
}

/// Rows about `mean` that deviate by `deviation` from it, and every third row by nothing.
Tensor narrow_rows(DType dtype, const Shape& shape, double mean, double deviation, uint64_t seed) {
  std::vector<double> v = *random_tensor(shape, seed).to_doubles();
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = mean + (static_cast<int64_t>(i) / shape.back() % 3 == 2 ? 0 : deviation * v[i]);
  return *Tensor::from_host(cpu(), DType::kF64, shape, v.data(), v.size() * sizeof(double))->to(dtype);
}

// Where a row hardly varies, its mean's last digits and the rounding of what it is made of are what a norm divides by
// next to nothing.
TEST(Expr, NormsOfRowsThatHardlyVary) {
  const uint64_t seed = fresh_seed();
  struct Rows {
    DType dtype;
    double mean, deviation;
  };
  for (const Rows& r : {Rows{DType::kF32, 1000, 0.01}, Rows{DType::kF32, -3e4, 1}, Rows{DType::kF32, 0.7, 1e-6},
                        Rows{DType::kBF16, 1, 0.01}, Rows{DType::kBF16, 300, 2}, Rows{DType::kF16, 1, 0.002},
                        Rows{DType::kF16, 500, 0.5}, Rows{DType::kF64, 1e6, 1e-5}})
    for (const Shape& shape : {Shape{31, 129}, Shape{5, 4097}, Shape{7, 1}}) {
      const std::string what = std::string(name(r.dtype)) + " rows of " + std::to_string(shape[1]) + " about " +
                               std::to_string(r.mean) + ", seed " + std::to_string(seed);
      const Tensor x = narrow_rows(r.dtype, shape, r.mean, r.deviation, seed),
                   scale = random_tensor({shape[1]}, seed + 1, r.dtype);
      const Expr made = op(ExprOp::kTanh, {op(ExprOp::kMul, {x, Expr::scalar(0.75)})});
      const Expr mean = op(ExprOp::kMean, {x}, along({1}, true)), away = op(ExprOp::kSub, {x, mean});
      const Expr var = op(ExprOp::kMean, {op(ExprOp::kMul, {away, away})}, along({1}, true));
      expect_variants_right(op(ExprOp::kLayerNorm, {x}, along({1})), "layer_norm of " + what);
      expect_variants_right(op(ExprOp::kLayerNorm, {x, scale, scale}, along({1})),
                            "layer_norm with weights of " + what);
      expect_variants_right(op(ExprOp::kLayerNorm, {made, scale}, along({1})), "layer_norm of tanh of " + what);
      if (shape[1] > 1) expect_variants_right(op(ExprOp::kVar, {x}, along({1})), "var of " + what);
      expect_variants_right(op(ExprOp::kMul, {away, op(ExprOp::kRsqrt, {op(ExprOp::kAdd, {var, Expr::scalar(1e-5)})})}),
                            "a norm in parts of " + what);
    }
}

// What rounding explains is no excuse for what it does not.
TEST(Expr, ARowThatVariesHasNoSlack) {
  const uint64_t seed = fresh_seed();
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor x = narrow_rows(dtype, {30, 257}, 10, 1, seed);
    const Expr norm = op(ExprOp::kLayerNorm, {x}, along({1}));
    auto expected = reference(norm);
    auto got = run(norm);
    ASSERT_TRUE(expected.ok() && got.ok());
    ASSERT_TRUE(compare(*expected, *got)->ok());
    std::vector<double> values = *got->to_doubles();
    const double off = dtype == DType::kF32 ? 1e-3 : 1.0;
    values[257 * 3 + 5] += off;
    const Tensor wrong =
        *Tensor::from_host(cpu(), DType::kF64, Shape{30, 257}, values.data(), values.size() * sizeof(double))
             ->to(dtype);
    auto error = compare(*expected, wrong);
    EXPECT_EQ(error->first_bad, 257 * 3 + 5)
        << name(dtype) << " worst " << error->max_rel << " of " << error->tolerance;
  }
}

TEST(Expr, PlansAreFoundByStructure) {
  const uint64_t seed = fresh_seed();
  auto expression = [&](const Tensor& x) { return op(ExprOp::kExp, {op(ExprOp::kAdd, {x, Expr::scalar(0.25)})}); };
  Tensor x = random_tensor({501, 3}, seed), y = random_tensor({501, 3}, seed + 1);
  const ExprCacheStats before = expr_cache_stats(cpu());
  ASSERT_TRUE(run(expression(x)).ok());
  auto again = run(expression(y));
  ExprCacheStats after = expr_cache_stats(cpu());
  EXPECT_EQ(after.planned - before.planned, 1);
  EXPECT_EQ(after.found - before.found, 1);
  std::vector<double> in = *y.to_doubles(), out = numbers(again);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i], std::exp(in[i] + 0.25), 1e-5 * out[i]);
  // Another stride, another alignment and another use of one tensor are other plans.
  ASSERT_TRUE(run(expression(*y.as_strided(Shape{3, 501}, Shape{1, 3}, 0))).ok());
  ASSERT_TRUE(run(expression(*y.as_strided(Shape{500, 3}, Shape{3, 1}, 1))).ok());
  EXPECT_EQ(expr_cache_stats(cpu()).planned - after.planned, 2);
  after = expr_cache_stats(cpu());
  ASSERT_TRUE(run(op(ExprOp::kMul, {x, y})).ok());
  auto square = run(op(ExprOp::kMul, {x, x}));
  EXPECT_EQ(expr_cache_stats(cpu()).planned - after.planned, 2);
  EXPECT_NEAR(numbers(square)[7], std::pow(x.to_doubles()->at(7), 2), 1e-5);
}

TEST(Expr, PlansForAGpuThatIsNotThere) {
  // A tensor of 8 GB that nothing touches: no memory is taken for what is not run.
  const int64_t shape[] = {1 << 15, 1 << 16};
  const Tensor x = *Tensor::empty(*open_device("cpu"), DType::kBF16, shape);
  const Expr e = op(ExprOp::kExp, {op(ExprOp::kMatMul, {op(ExprOp::kPermute, {x}, along({1, 0})), x})});
  Result<TargetPlan> made = plan_for(e, "sm_90a");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_EQ(made->plan.groups.size(), made->kernels.size());
  for (const KernelInfo& kernel : made->kernels) EXPECT_EQ(kernel.target, "sm_90a");
  EXPECT_NE(made->kernels[0].ptx.find("wgmma.mma_async"), std::string::npos) << "the plan is the GPU's";
  EXPECT_EQ(plan_for(e, "host").error().message, "'host' is no GPU target");
  EXPECT_EQ(plan_for({}, "sm_90a").error().kind, ErrorKind::kValue);
}

TEST(Expr, AnotherNumberPlansAndCompilesNothing) {
  const uint64_t seed = fresh_seed();
  const Tensor x = random_tensor({501, 3}, seed), d = random_tensor({77}, seed + 1, DType::kF64),
               i = *random_tensor({99}, seed + 2).to(DType::kI32);
  using Number = std::variant<bool, int64_t, double>;
  auto scaled = [](const Tensor& t, Number a, Number b) {
    return op(ExprOp::kMaximum, {op(ExprOp::kAdd, {op(ExprOp::kMul, {t, Expr::scalar(a)}), Expr::scalar(b)}), t});
  };
  auto check = [&](const Tensor& t, double a, double b, const Result<Tensor>& got) {
    const std::vector<double> in = *t.to_doubles(), out = numbers(got);
    for (size_t k = 0; k < in.size(); ++k) EXPECT_NEAR(out[k], std::max(in[k] * a + b, in[k]), 1e-5) << k;
  };
  ASSERT_TRUE(run(scaled(x, 0.3, 0.7)).ok());
  ASSERT_TRUE(run(scaled(d, 0.3, 0.7)).ok());
  ASSERT_TRUE(run(scaled(i, int64_t{3}, int64_t{7})).ok());
  const ExprCacheStats before = expr_cache_stats(cpu());
  ASSERT_TRUE(trace::start(trace::kSpans));
  auto real = run(scaled(x, -1.25, 3.5)), wide = run(scaled(d, 0.1, 1e-9)),
       whole = run(scaled(i, int64_t{48}, int64_t{-16}));
  const std::vector<trace::Event> events = trace::stop();
  EXPECT_EQ(expr_cache_stats(cpu()).planned, before.planned);
  for (const trace::Event& e : events) EXPECT_NE(e.step, trace::Step::kCompile);
  check(x, -1.25, 3.5, real);
  check(i, 48, -16, whole);
  const std::vector<double> in = *d.to_doubles(), out = numbers(wide);
  for (size_t k = 0; k < in.size(); ++k) EXPECT_DOUBLE_EQ(out[k], std::max(in[k] * 0.1 + 1e-9, in[k]));
  // Equal numbers are one argument; 1 is an identity, and an exponent belongs to the source.
  ASSERT_TRUE(run(scaled(x, 0.3, 0.3)).ok());
  ASSERT_TRUE(run(scaled(x, 1.0, 0.7)).ok());
  EXPECT_EQ(expr_cache_stats(cpu()).planned - before.planned, 2);
  check(x, 1, 0.7, run(scaled(x, 1.0, 0.7)));
  auto power = [&](double e) { return *run(op(ExprOp::kPow, {op(ExprOp::kAbs, {x}), Expr::scalar(e)})); };
  EXPECT_NEAR(power(1.7).to_doubles()->at(5), std::pow(std::abs(x.to_doubles()->at(5)), 1.7), 1e-5);
  EXPECT_NEAR(power(2.7).to_doubles()->at(5), std::pow(std::abs(x.to_doubles()->at(5)), 2.7), 1e-4);
}

// A plan keeps its steps from one run to the next, with places for tensors, and none of these.
TEST(Expr, WhatIsRunAgainHoldsNoTensorOfTheRunBefore) {
  auto run_of = [&](const Tensor& x, double factor) {
    // Parts that begin at other elements of one tensor are arguments of their own.
    const Expr a(*x.as_strided(Shape{4, 5000}, Shape{5000, 1}, 0)),
        b(*x.as_strided(Shape{4, 5000}, Shape{5000, 1}, 25000));
    return *run(op(ExprOp::kAdd, {op(ExprOp::kMul, {a, Expr::scalar(factor)}), b}));
  };
  for (const double factor : {3.25, -1.75, 7.5}) {
    const Tensor x = random_tensor({9, 5000}, static_cast<uint64_t>(100 * std::abs(factor)));
    const Tensor y = run_of(x, factor);
    EXPECT_EQ(x.holders(), 1);
    EXPECT_EQ(y.holders(), 1);
    const std::vector<double> from = *x.to_doubles(), to = *y.to_doubles();
    for (size_t i = 0; i < to.size(); i += 997) EXPECT_NEAR(to[i], from[i] * factor + from[i + 25000], 1e-5);
  }
}

/// Powers by roots are within two units in the last place, and what pow gives where it is no number.
TEST(Expr, PowersOfQuarters) {
  std::vector<double> in = {0.0, -0.0, INFINITY, -INFINITY, NAN, -1.0, 1.0, 1e-40, 3e38, 1e-45};
  std::mt19937 rng(fresh_seed());
  while (in.size() < 3000) in.push_back(std::exp(std::normal_distribution(0.0, 20.0)(rng)));
  const std::vector<float> floats(in.begin(), in.end());
  const Shape shape = {static_cast<int64_t>(in.size())};
  const Tensor x = *Tensor::from_host(cpu(), DType::kF32, shape, floats.data(), floats.size() * sizeof(float));
  const std::vector<double> given = *x.to_doubles();
  for (const double e : {0.25, 0.75, 1.5}) {
    const std::vector<double> out = numbers(run(op(ExprOp::kPow, {x, Expr::scalar(e)})));
    for (size_t k = 0; k < given.size(); ++k) {
      const double expected = static_cast<float>(std::pow(given[k], e));
      SCOPED_TRACE(fmt::format("{} to the power of {}", given[k], e));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(out[k]));
      } else if (std::isinf(expected) || expected == 0) {
        EXPECT_EQ(out[k], expected);
        EXPECT_EQ(std::signbit(out[k]), std::signbit(expected));
      } else {
        const auto value = static_cast<float>(expected);
        EXPECT_NEAR(out[k], expected, 2.0 * (std::nextafter(value, INFINITY) - value));
      }
    }
  }
}

TEST(Expr, KeepsItsResultAndLetsGoOfItsOperands) {
  Tensor x = random_tensor({100, 50}, fresh_seed());
  std::weak_ptr<runtime::Storage> memory = x.storage();
  Expr e = op(ExprOp::kExp, {x}), user = op(ExprOp::kAdd, {e, Expr::scalar(1.0)});
  EXPECT_TRUE(user.reads(x.storage().get()));
  Tensor result = *run(e);
  EXPECT_EQ(run(e)->address(), result.address());
  x = Tensor();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(user.operations(), 1);
  EXPECT_TRUE(user.reads(result.storage().get()));
  EXPECT_NEAR(numbers(run(user))[3], result.to_doubles()->at(3) + 1, 1e-6);
}

TEST(Expr, ViewsShareTheMemoryOfWhatTheyView) {
  Tensor x = random_tensor({60, 80}, fresh_seed());
  Expr e = op(ExprOp::kExp, {x}), t = op(ExprOp::kPermute, {e}, along({1, 0}));
  Tensor turned = *run(t), straight = *run(e);
  EXPECT_EQ(turned.storage(), straight.storage());
  EXPECT_EQ(turned.strides()[0], 1);
  Expr leaf = op(ExprOp::kPermute, {x}, along({1, 0}));
  EXPECT_EQ(run(leaf)->storage(), x.storage());
}

/// What is seen through one view alone lies in the order of its input, as in torch, where that order is the view's: the
/// last kernel has its rows and stores them. What others see is row-major.
TEST(Expr, WhatOneViewSeesLiesAsItsInput) {
  Tensor x = random_tensor({61, 83}, fresh_seed());
  auto made = [&] {
    const Expr t = op(ExprOp::kPermute, {op(ExprOp::kExp, {x})}, along({1, 0}));
    ExprAttributes rows = along({1});
    rows.keepdim = true;
    return op(ExprOp::kDiv, {t, op(ExprOp::kSum, {t}, rows)});
  };
  const Expr kept = made(), view_of_kept = op(ExprOp::kPermute, {kept}, along({1, 0}));
  const Tensor straight = *run(view_of_kept);
  EXPECT_EQ(straight.strides()[0], 1);
  EXPECT_TRUE(run(kept)->is_contiguous());
  const Expr only_view = op(ExprOp::kPermute, {made()}, along({1, 0}));
  const Tensor turned = *run(only_view);
  EXPECT_TRUE(turned.is_contiguous());
  const std::vector<double> got = numbers(turned), expected = numbers(straight);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << i;
  // Together with another one.
  const Expr both[] = {op(ExprOp::kPermute, {made()}, along({1, 0})), op(ExprOp::kMul, {x, Expr::scalar(2.0)})};
  ASSERT_TRUE(run_together(both).ok());
  EXPECT_TRUE(both[0].tensor()->is_contiguous());
  EXPECT_EQ(numbers(*both[0].tensor()), got);
}

TEST(Expr, SeveralResultsShareAPlan) {
  const uint64_t seed = fresh_seed();
  Tensor p = random_tensor({300, 40}, seed), g = random_tensor({300, 40}, seed + 1, DType::kF16);
  auto step = [&](Expr& m, Expr& shifted, Expr& view, Expr& sum) {
    m = op(ExprOp::kAdd, {op(ExprOp::kMul, {p, Expr::scalar(0.9)}), g});
    shifted = op(ExprOp::kSub, {p, op(ExprOp::kMul, {m, Expr::scalar(0.01)})});
    view = op(ExprOp::kPermute, {m}, along({1, 0}));
    sum = op(ExprOp::kSum, {m});
  };
  Expr m, shifted, view, sum, m1, shifted1, view1, sum1;
  step(m, shifted, view, sum);
  step(m1, shifted1, view1, sum1);
  const ExprCacheStats before = expr_cache_stats(cpu());
  const Expr together[] = {shifted, view, m, sum, m};
  ASSERT_TRUE(run_together(together).ok());
  EXPECT_EQ(expr_cache_stats(cpu()).planned, before.planned + 1);
  for (const auto& [all, alone] : {std::pair{m, m1}, {shifted, shifted1}, {view, view1}, {sum, sum1}}) {
    ASSERT_TRUE(all.tensor());
    ASSERT_TRUE(run(alone).ok());
    EXPECT_EQ(*all.tensor()->to_doubles(), *alone.tensor()->to_doubles());
  }
  EXPECT_EQ(view.tensor()->storage(), m.tensor()->storage());
  // Another order is another plan with its own outputs.
  step(m, shifted, view, sum);
  const Expr turned[] = {m, shifted};
  ASSERT_TRUE(run_together(turned).ok());
  EXPECT_EQ(*m.tensor()->to_doubles(), *m1.tensor()->to_doubles());
  EXPECT_EQ(*shifted.tensor()->to_doubles(), *shifted1.tensor()->to_doubles());
}

TEST(Expr, ALossReadsInFullWhatItsElementsRead) {
  Tensor x = random_tensor({64, 64}, 1), y = random_tensor({64, 64}, 2), row = random_tensor({64}, 3);
  const Expr apart = op(ExprOp::kSub, {op(ExprOp::kMul, {x, row}), y}), loss = op(ExprOp::kSum, {apart});
  for (const Expr& e : {apart, loss}) {
    const auto read = e.read_in_full();
    EXPECT_EQ(read.size(), 2u);
    for (const Tensor& t : {x, y}) EXPECT_NE(std::ranges::find(read, t.storage().get()), read.end());
  }
}

TEST(Expr, KnowsItsPartsAndWhatTheyCost) {
  Tensor x = random_tensor({64, 64}, 1, DType::kF16), w = random_tensor({64, 64}, 2);
  ExprAttributes wide;
  wide.dtype = DType::kF32;
  const Expr cast = op(ExprOp::kCast, {x}, wide), turned = op(ExprOp::kPermute, {cast}, along({1, 0})),
             sum = op(ExprOp::kAdd, {w, Expr(x)}), product = op(ExprOp::kMatMul, {turned, sum});
  EXPECT_TRUE(cast.is_cheap_again());  // reads half of what it has
  EXPECT_FALSE(sum.is_cheap_again());  // reads more
  EXPECT_FALSE(product.is_cheap_again());
  auto is_factor = [&](const Expr& whole, const Expr& part) {
    for (const Expr::Part& p : whole.pending_parts())
      if (p.node == part.node()) return p.is_factor;
    ADD_FAILURE() << "no part";
    return false;
  };
  EXPECT_TRUE(is_factor(product, cast) && is_factor(product, turned) && is_factor(product, sum));
  EXPECT_FALSE(is_factor(product, product));
  EXPECT_FALSE(is_factor(sum, sum));
}

TEST(Expr, EmptyTensorsLaunchNothing) {
  Tensor x = *Tensor::empty(cpu(), DType::kF32, Shape{0, 5});
  EXPECT_EQ(run(op(ExprOp::kExp, {x}))->numel(), 0);
  EXPECT_EQ(numbers(run(op(ExprOp::kSum, {x}, along({0})))), (std::vector<double>(5, 0.0)));
}

TEST(Expr, ChecksFindOneWrongElement) {
  Expr e = op(ExprOp::kMul, {random_tensor({40, 30}, fresh_seed()), Expr::scalar(3.0)});
  auto expected = reference(e);
  Tensor right = *run_on_host(e);
  EXPECT_TRUE(compare(*expected, right)->ok());
  std::vector<std::byte> bytes = *right.to_bytes();
  float wrong = 1e4f;
  std::memcpy(bytes.data() + 4 * 777, &wrong, 4);
  auto error = compare(*expected, *Tensor::from_host(cpu(), DType::kF32, Shape{40, 30}, bytes.data(), bytes.size()));
  EXPECT_EQ(error->first_bad, 777);
  EXPECT_EQ(error->got, 1e4);
  wrong = NAN;
  std::memcpy(bytes.data() + 4 * 777, &wrong, 4);
  error = compare(*expected, *Tensor::from_host(cpu(), DType::kF32, Shape{40, 30}, bytes.data(), bytes.size()));
  EXPECT_EQ(error->first_bad, 777);
  EXPECT_EQ(error->nans, 1);
  // A large one is checked in parts.
  Expr large = gelu_layer(300, 40, 50, 1);
  auto part = reference(large, 2e5);
  ASSERT_TRUE(part.ok());
  EXPECT_LT(part->checked(), large.numel());
  EXPECT_TRUE(compare(*part, *run_on_host(large))->ok());
  auto rows = reference(large, 100);  // a row of each slab, where there is time for no more
  ASSERT_TRUE(rows.ok()) << render(rows.error());
  EXPECT_LE(rows->checked(), 4 * 50);
  EXPECT_TRUE(compare(*rows, *run_on_host(large))->ok());
  EXPECT_EQ(reference(large, 50).error().kind, ErrorKind::kUnsupported);
  // Each element of this takes all rows of the operand: there are no cheaper slabs.
  Expr means = op(ExprOp::kMean, {random_tensor({64, 100}, fresh_seed())}, along({0}));
  auto all = reference(means, 1e5);
  ASSERT_TRUE(all.ok()) << render(all.error());
  EXPECT_EQ(all->checked(), 100);
  EXPECT_EQ(reference(means, 1e4).error().kind, ErrorKind::kUnsupported);
}

TEST(Expr, AnEditedSourceIsAnotherVariant) {
  Expr e = op(ExprOp::kMul, {op(ExprOp::kExp, {random_tensor({33, 65}, fresh_seed())}), Expr::scalar(2.0)});
  auto expected = reference(e);
  auto fused = variant(e, ExprVariant::kFused);
  ASSERT_TRUE(fused.ok()) << fused.error().message;
  ASSERT_TRUE(fused->problem.ok()) << fused->problem.error().message;
  ASSERT_EQ(fused->groups.size(), 1u);
  ExprGroup as = fused->groups[0];
  const size_t at = as.source.find("tl.exp(");
  ASSERT_NE(at, std::string::npos) << as.source;
  as.source.replace(at, 7, "tl.sin(");
  auto edited = fused->edited(0, as, "edited 1");
  ASSERT_TRUE(edited.ok()) << edited.error().message;
  ASSERT_TRUE(edited->launch().ok());
  EXPECT_FALSE(compare(*expected, *edited->output())->ok());
  ASSERT_TRUE(fused->launch().ok());
  EXPECT_TRUE(compare(*expected, *fused->output())->ok()) << "the original stays what it was";
  as.source = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef " + as.kernel + "(other):\n    pass\n";
  auto refused = fused->edited(0, as, "edited 2");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("must keep its parameters"), std::string::npos) << refused.error().message;
}

TEST(Expr, NoMorePlansAreKeptThanTheLimit) {
  setenv("KILN_PLAN_LIMIT", "4", 1);
  const ExprCacheStats before = expr_cache_stats(cpu());
  auto sums = [](int64_t n) {
    Tensor x = random_tensor({n, 3}, 7);
    std::vector<double> in = *x.to_doubles(), out = numbers(run(op(ExprOp::kExp, {x})));
    for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(out[i], std::exp(in[i]), 1e-5 * std::exp(in[i]));
  };
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 700; n < 710; ++n) sums(n);
  ExprCacheStats after = expr_cache_stats(cpu());
  EXPECT_GE(after.dropped - before.dropped, 16);
  EXPECT_EQ(after.planned - before.planned, 20) << "each had been dropped when it came again";
  for (int i = 0; i < 3; ++i) sums(709);
  EXPECT_EQ(expr_cache_stats(cpu()).found - after.found, 3) << "the latest stays";
  unsetenv("KILN_PLAN_LIMIT");
}

TEST(Expr, ADeviceKeepsItsOwnPlans) {
  std::weak_ptr<runtime::DeviceImpl> watched;
  {
    const Runtime a, b;
    const Device first = *a.open("cpu"), second = *b.open("cpu");
    watched = first.impl()->weak_from_this();
    for (const Device& device : {first, second}) {
      ASSERT_TRUE(run(op(ExprOp::kExp, {*randn(device, DType::kF32, Shape{501, 7}, 1)})).ok());
      EXPECT_EQ(expr_cache_stats(device).planned, 1);
      EXPECT_EQ(expr_cache_stats(device).found, 0);
    }
  }
  EXPECT_TRUE(watched.expired()) << "its plans hold code for it, and not the device";
}

TEST(Expr, UserFunctionsAreCalledOnElements) {
  auto f = std::make_shared<ExprFunction>();
  f->name = "soft_clip";
  f->defines = {"soft_clip"};
  f->text = "@triton.jit\ndef soft_clip(x, limit):\n    return x / (1 + tl.abs(x) / limit)\n";
  ExprAttributes a;
  a.function = f;
  Tensor x = random_tensor({5000}, fresh_seed());
  auto result = run(op(ExprOp::kCall, {x, Expr::scalar(2.0)}, a));
  ASSERT_TRUE(result.ok()) << result.error().message;
  std::vector<double> in = *x.to_doubles(), out = *result->to_doubles();
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i], in[i] / (1 + std::fabs(in[i]) / 2), 1e-6);
}

}  // namespace
}  // namespace kiln
