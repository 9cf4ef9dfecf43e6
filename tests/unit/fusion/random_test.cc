// Random expressions, fused and unfused, against the float64 evaluation on the cpu device; and the same sources to PTX.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/fusion/random_graph.h"
#include "tests/unit/open_device.h"

namespace kiln::fusion::testing {
namespace {

unsigned fresh_seed() {
  const char* given = std::getenv("KILN_FUZZ_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  printf("seed %u (KILN_FUZZ_SEED)\n", seed);
  return seed;
}

std::string describe(const Problem& p, const Plan& plan) {
  std::string out = to_string(p.graph) + plan_text(plan);
  for (const Group& g : plan.groups) out += g.source;
  return out;
}

/// No temporary is overwritten while a later group still reads it.
void expect_lives_apart(const Plan& plan) {
  for (size_t i = 0; i < plan.values.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Value &a = plan.values[i], &b = plan.values[j];
      if (a.slot < 0 || a.slot != b.slot) continue;
      EXPECT_TRUE(a.last_group < b.first_group || b.last_group < a.first_group) << a.name << " and " << b.name;
    }
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (int v : plan.groups[g].reads) {
      const Value& value = plan.values[static_cast<size_t>(v)];
      EXPECT_TRUE(value.input >= 0 || value.first_group < static_cast<int>(g)) << value.name;
    }
}

TEST(RandomExpressions, PlansMatchTheEvaluation) {
  const unsigned seed = fresh_seed();
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  const int count = std::getenv("KILN_FUZZ_COUNT") ? std::atoi(std::getenv("KILN_FUZZ_COUNT")) : 40;
  double tight = 0;
  int plans = 0;
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    std::mt19937 random(seed + static_cast<unsigned>(i));
    Problem p = random_problem(random, *device, 3 + static_cast<int>(random() % 12));
    const std::vector<Elements> want = evaluate(p.graph, p.elements);
    // What is planned for a GPU computes the same on the cpu device. Few multiprocessors make small shapes large.
    Machine small = hopper_machine();
    small.multiprocessors = 1 + static_cast<int>(random() % 64);
    for (const auto& [variant, machine] : {std::pair(Variant::kUnfused, host_machine()),
                                           {Variant::kFused, host_machine()},
                                           {Variant::kFused, hopper_machine()},
                                           {Variant::kFused, small}}) {
      auto made = plan(p.graph, {variant, machine});
      ASSERT_TRUE(made.ok()) << render(made.error()) << to_string(p.graph);
      SCOPED_TRACE("KILN_FUZZ_SEED=" + std::to_string(seed + static_cast<unsigned>(i)) + "\n" + describe(p, *made));
      expect_lives_apart(*made);
      auto outputs = run(*made, p, *device);
      ASSERT_TRUE(outputs.ok()) << render(outputs.error());
      tight += expect_close(p, want, *outputs, std::string(name(variant)) + " for " + machine.target);
      ++plans;
    }
  }
  EXPECT_TRUE(HasFailure() || tight / plans > 0.7) << "the bounds say too little: " << tight / plans;
}

TEST(RandomExpressions, SourcesCompileForHopper) {
  const unsigned seed = fresh_seed();
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  for (int i = 0; i < 10; ++i) {
    std::mt19937 random(seed + static_cast<unsigned>(i));
    Problem p = random_problem(random, *device, 3 + static_cast<int>(random() % 12));
    auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
    ASSERT_TRUE(made.ok()) << render(made.error());
    SCOPED_TRACE("KILN_FUZZ_SEED=" + std::to_string(seed + static_cast<unsigned>(i)) + "\n" + describe(p, *made));
    std::vector<Tensor> values;
    for (const Value& v : made->values) {
      if (v.input >= 0) {
        values.push_back(p.tensors[static_cast<size_t>(v.input)]);
        continue;
      }
      auto t = Tensor::empty(*device, v.dtype, v.shape);
      ASSERT_TRUE(t.ok());
      values.push_back(*t);
    }
    for (const Group& g : made->groups) {
      auto kernel = Kernel::from_source(g.source, g.name + ".py", g.kernel);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      LaunchOptions options;
      options.num_warps = g.num_warps;
      options.num_stages = g.num_stages;
      options.num_ctas = g.num_ctas;
      auto compiled = kernel->compile(arguments(g, values), options, "sm_90a");
      ASSERT_TRUE(compiled.ok()) << render(compiled.error());
      EXPECT_NE(compiled->ptx.find(".visible .entry"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kiln::fusion::testing
