// Plans of named expressions, carried out on the cpu device.
#include "compiler/fusion/plan.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/fusion/infer.h"
#include "tests/unit/fusion/run_plan.h"

namespace kiln::fusion::testing {
namespace {

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device = *Device::open("cpu");
    seed = std::random_device{}();
    random.seed(seed);
    printf("seed %u\n", seed);
  }

  int tensor(DType dtype, const Shape& shape, std::string name = {}, Shape strides = {}, int64_t offset = 0) {
    if (strides.empty()) strides = row_major(shape);
    std::vector<double> v(static_cast<size_t>(numel(shape)));
    for (double& x : v)
      x = is_float(dtype) ? normal(random)
                          : static_cast<double>(static_cast<int>(random() % 7)) - (is_signed(dtype) ? 3 : 0);
    return add_input(p, device, dtype, shape, strides, offset, v, std::move(name));
  }
  int number(double v) {
    p.graph.nodes.push_back(scalar(v));
    p.tensors.resize(p.graph.nodes.size());
    p.elements.resize(p.graph.nodes.size());
    return static_cast<int>(p.graph.nodes.size()) - 1;
  }
  int op(ExprOp which, std::vector<int> inputs, ExprAttributes a = {}) {
    auto n = append(p.graph, which, inputs, std::move(a));
    EXPECT_TRUE(n.ok()) << render(n.error());
    p.tensors.resize(p.graph.nodes.size());
    p.elements.resize(p.graph.nodes.size());
    return *n;
  }
  int axis(ExprOp which, int x, std::vector<int> axes, bool keepdim = false) {
    ExprAttributes a;
    a.axes = std::move(axes);
    a.keepdim = keepdim;
    return op(which, {x}, std::move(a));
  }

  /// Plans, runs and checks the outputs; gives the plan.
  Plan check(std::vector<int> outputs, Variant variant = Variant::kFused) {
    p.graph.outputs = std::move(outputs);
    auto made = plan(p.graph, {variant, host_machine()});
    EXPECT_TRUE(made.ok()) << render(made.error());
    if (!made.ok()) return {};
    std::string sources = to_string(p.graph) + plan_text(*made);
    for (const Group& g : made->groups) sources += g.source;
    SCOPED_TRACE(sources);
    auto ran = run(*made, p, device);
    EXPECT_TRUE(ran.ok()) << render(ran.error());
    if (!ran.ok()) return std::move(*made);
    EXPECT_GT(expect_close(p, *ran, std::string(name(variant))), 0.9);
    return std::move(*made);
  }

  Device device;
  unsigned seed = 0;
  std::mt19937 random;
  std::normal_distribution<double> normal;
  Problem p;
};

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
  for (Shape shape : {Shape{5, 1000}, Shape{7, 33}, Shape{2, 3, 64}, Shape{3, 40000}, Shape{4, 1}}) {
    p = {};
    const int x = tensor(DType::kF32, shape, "x");
    const Plan made = check({axis(ExprOp::kSoftmax, x, {-1})});
    EXPECT_EQ(made.groups.size(), 1u) << plan_text(made);
  }
}

}  // namespace
}  // namespace kiln::fusion::testing
