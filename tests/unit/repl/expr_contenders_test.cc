// The variants of an expression as a comparison takes them.
#include "repl/expr_contenders.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/diag.h"

namespace kiln::repl {
namespace {

struct Made {
  std::unique_ptr<script::Session> session;
  ContenderSet set;
};

Made contenders_of(const std::string& setup, const std::string& text, const VariantOptions& options) {
  Made made;
  made.session = std::make_unique<script::Session>(
      script::Options{.output = [](std::string_view) {}, .argv = {}, .device = *Device::open("cpu")});
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

TEST(ExprContenders, WhatIsNoExpressionHasNoVariants) {
  script::Session session({.output = [](std::string_view) {}, .argv = {}, .device = *Device::open("cpu")});
  ASSERT_TRUE(session.run("x = randn(30, 30)", "setup.py").ok());
  EXPECT_FALSE((*expression_contenders(session, "print(1)")).has_value());
  EXPECT_FALSE(expression_contenders(session, "x").ok());
  EXPECT_FALSE((*expression_contenders(session, "x + randn(7)")).has_value()) << "a statement with a problem";
}

}  // namespace
}  // namespace kiln::repl
