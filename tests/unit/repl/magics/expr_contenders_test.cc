// The variants of an expression as a comparison takes them.
#include "repl/magics/expr_contenders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln::repl {
namespace {

struct Made {
  std::unique_ptr<script::Session> session;
  ContenderSet set;
};

Made contenders_of(const std::string& setup, const std::string& text, const VariantOptions& options) {
  Made made;
  made.session = std::make_unique<script::Session>(
      script::Options{.output = [](std::string_view) {}, .argv = {}, .device = *open_device("cpu")});
  Status ready = made.session->run(setup, "setup.py");
  KILN_ASSERT(ready.ok(), "{}", ready.ok() ? "" : ready.error().message);
  auto expr = made.session->expression(text);
  KILN_ASSERT(expr.ok() && *expr, "{}", expr.ok() ? "no expression" : expr.error().message);
  auto set = variant_contenders(**expr, made.session->tensor_names(), options);
  KILN_ASSERT(set.ok(), "{}", set.ok() ? "" : set.error().message);
  made.set = *std::move(set);
  return made;
}

std::vector<std::string> names_of(const ContenderSet& set) {
  std::vector<std::string> out;
  for (const auto& c : set.contenders) out.push_back(c.name);
  return out;
}

constexpr const char* kLayer = "x, w, b = randn(65, 33), randn(33, 47), randn(47)";

TEST(ExprContenders, EachComputesTheExpression) {
  Made made = contenders_of(kLayer, "gelu(x @ w + b)", {.tuning_s = 0});
  std::vector<std::string> names = names_of(made.set);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names, (std::vector<std::string>{"unfused", "fused", "openblas"}));
  for (size_t i = 0; i < made.set.contenders.size(); ++i) {
    const profiler::Contender& c = made.set.contenders[i];
    if (c.name == "openblas" && !c.problem.ok()) continue;  // not installed: the row says so
    ASSERT_TRUE(c.problem.ok()) << c.name << ": " << c.problem.error().message;
    EXPECT_FALSE(c.facts.kernels.empty());
    EXPECT_GT(c.facts.bytes, 0);
    ASSERT_TRUE(c.facts.graph) << c.name;
    for (bool as_graph : {false, true}) {
      ASSERT_TRUE(c.poison().ok());
      auto check = made.set.check(i, *c.output());
      EXPECT_FALSE(check->ok()) << c.name << ": a launch that writes nothing is found out";
      ASSERT_TRUE((as_graph ? c.facts.graph() : c.launch()).ok());
      check = made.set.check(i, *c.output());
      ASSERT_TRUE(check.ok());
      EXPECT_TRUE(check->ok()) << c.name << " " << check->max_rel << " of " << check->tolerance;
      EXPECT_EQ(check->checked, 65 * 47);
    }
  }
  EXPECT_EQ(made.set.contenders[1].facts.kernels.size(), 1u) << "one kernel when fused";
  EXPECT_EQ(made.set.contenders[0].facts.kernels.size(), 3u);
}

TEST(ExprContenders, WhereNothingIsFusedTheRowSaysWhy) {
  auto note = [](const char* text) {
    return contenders_of("x, w = randn(50, 60), randn(60, 70)", text, {.tuning_s = 0}).set.contenders[1].facts.note;
  };
  EXPECT_EQ(note("exp(x)"), "nothing is fused: it is one kernel as it stands");
  EXPECT_EQ(note("gelu(x) @ w"),
            "nothing is fused: a product reads each element of its operands many times, so they are computed once and "
            "stored");
  EXPECT_EQ(note("gelu(x @ w)"), "");
}

TEST(ExprContenders, TheBaselineIsTheUnfusedVariantWithoutAProduct) {
  Made made = contenders_of("x = randn(50, 60)", "exp(x) + 1", {.tuning_s = 0});
  EXPECT_EQ(names_of(made.set), (std::vector<std::string>{"unfused", "fused"}));
  EXPECT_EQ(made.set.baseline, 0u);
}

TEST(ExprContenders, AnEditThatFailsKeepsItsRow) {
  ExpressionEdit broken;
  broken.as.source = "import triton\n";
  broken.as.kernel = "none";
  broken.name = "edited 1";
  Made made = contenders_of("x = randn(50, 60)", "exp(x) + 1", {.edits = {&broken, 1}, .tuning_s = 0});
  ASSERT_EQ(names_of(made.set).back(), "edited 1");
  EXPECT_FALSE(made.set.contenders.back().problem.ok());
}

TEST(ExprContenders, TunedIsAnotherConfigurationOrNone) {
  Made made = contenders_of(kLayer, "gelu(x @ w + b)", {.tuning_s = 1});
  std::vector<std::string> names = names_of(made.set);
  auto tuned = std::find(names.begin(), names.end(), "fused+tuned");
  if (tuned == names.end()) return;  // the planner's own choice was the fastest
  const profiler::Contender& c = made.set.contenders[static_cast<size_t>(tuned - names.begin())];
  ASSERT_TRUE(c.problem.ok()) << c.problem.error().message;
  ASSERT_TRUE(c.poison().ok());
  ASSERT_TRUE(c.launch().ok());
  EXPECT_TRUE(made.set.check(static_cast<size_t>(tuned - names.begin()), *c.output())->ok());
  EXPECT_FALSE(c.facts.note.empty());
}

TEST(ExprContenders, WithoutTheUnfusedVariantTheOthersStand) {
  // Ten elements of a tensor that no memory holds: fused, only those are computed.
  Expr x = *Tensor::full(*open_device("cpu"), DType::kF32, std::vector<int64_t>{1}, 2.0);
  ExprAttributes large, few;
  large.shape = {int64_t{1} << 42};
  few.shape = {10};
  few.starts = {7};
  Expr scaled = *apply(ExprOp::kMul, {*apply(ExprOp::kExpand, {x}, large), Expr::scalar(3.5)});
  Expr sum = *apply(ExprOp::kAdd, {*apply(ExprOp::kSlice, {scaled}, few), Expr::scalar(0.75)});
  auto set = variant_contenders(sum, {}, {.tuning_s = 0});
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(names_of(*set), (std::vector<std::string>{"unfused", "fused"}));
  ASSERT_FALSE(set->contenders[0].problem.ok());
  EXPECT_EQ(set->contenders[0].problem.error().kind, ErrorKind::kMemory);
  EXPECT_NE(set->contenders[0].problem.error().message.find("16.0 TiB"), std::string::npos);
  ASSERT_TRUE(set->contenders[1].problem.ok());
  EXPECT_EQ(set->baseline, 1u);
  ASSERT_TRUE(set->contenders[1].launch().ok());
  EXPECT_EQ(*set->contenders[1].output()->to_doubles(), std::vector<double>(10, 7.75));
}

TEST(ExprContenders, InAListTheyKnowTheirPlans) {
  script::Session session({.output = [](std::string_view) {}, .argv = {}, .device = *open_device("cpu")});
  ASSERT_TRUE(session
                  .run("x = randn(100, 100)\ny = gelu(x) * 3.5\ndef f():\n    return exp(x) + 0.3\n"
                       "def two():\n    z = (x * 7.0).run()\n    return z + 0.3\n",
                       "setup.py")
                  .ok());
  auto contender = [&](const std::string& text) {
    auto c = statement_contender(session, text, {});
    KILN_ASSERT(c.ok(), "{}", c.ok() ? "" : c.error().message);
    return *std::move(c);
  };
  // The name of a pending tensor is run anew each time, and stays pending.
  profiler::Contender lazy = contender("y");
  ASSERT_TRUE(lazy.problem.ok()) << lazy.problem.error().message;
  EXPECT_EQ(lazy.facts.kernels.size(), 1u);
  EXPECT_EQ(lazy.facts.bytes, 80000);
  EXPECT_GT(lazy.facts.flop, 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(lazy.poison().ok());
    ASSERT_TRUE(lazy.launch().ok());
    EXPECT_FALSE(std::isnan(lazy.output()->to_doubles()->at(77)));
  }
  EXPECT_TRUE(session.expression("y").ok());
  // A name in a string is no variable: y stays pending.
  EXPECT_TRUE(session.expression("x * float(len('y'))").ok());
  EXPECT_TRUE(session.expression("y").ok());
  for (const char* text : {"exp(x) + 0.3", "f"}) {
    profiler::Contender c = contender(text);
    ASSERT_TRUE(c.problem.ok()) << text;
    EXPECT_EQ(c.facts.kernels.size(), 1u) << text;
    EXPECT_EQ(c.facts.bytes, 80000) << text;
    EXPECT_TRUE(c.facts.graph) << text;
  }
  // Of two plans, or of what the host computes, the last one's facts would be half of the truth.
  EXPECT_TRUE(contender("two").facts.kernels.empty());
  EXPECT_TRUE(contender("x[:3] + 0.3").facts.kernels.empty());
  profiler::Contender computed = contender("x");
  ASSERT_FALSE(computed.problem.ok());
  EXPECT_EQ(computed.problem.error().message, "'x' is computed already: there is no expression left");
}

TEST(ExprContenders, WhatIsNoExpressionHasNoVariants) {
  script::Session session({.output = [](std::string_view) {}, .argv = {}, .device = *open_device("cpu")});
  ASSERT_TRUE(session.run("x = randn(30, 30)", "setup.py").ok());
  EXPECT_FALSE((*expression_contenders(session, "print(1)")).has_value());
  EXPECT_FALSE(expression_contenders(session, "x").ok());
  EXPECT_FALSE((*expression_contenders(session, "x + randn(7)")).has_value()) << "a statement with a problem";
}

}  // namespace
}  // namespace kiln::repl
