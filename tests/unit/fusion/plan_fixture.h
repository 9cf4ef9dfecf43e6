// Plans of expressions over random tensors, carried out on the cpu device and compared with the evaluation.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fusion/infer.h"
#include "compiler/fusion/plan.h"
#include "tests/unit/fusion/run_plan.h"
#include "tests/unit/open_device.h"

namespace kiln::fusion::testing {

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device = *open_device("cpu");
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

  int take_rows(int table, int places) {
    ExprAttributes a, first;
    const Shape rows = p.graph.nodes[static_cast<size_t>(table)].shape;
    const Shape at = p.graph.nodes[static_cast<size_t>(places)].shape;
    a.shape = at, a.shape.push_back(1);
    first.axes = {0};
    ExprAttributes wide;
    wide.shape = {rows[0], 1, rows[1]};
    return op(ExprOp::kTake, {op(ExprOp::kReshape, {table}, wide), op(ExprOp::kReshape, {places}, a)}, first);
  }

  /// Plans, runs and checks the outputs, of which a share has tight bounds; gives the plan.
  Plan check(std::vector<int> outputs, Variant variant = Variant::kFused, const Machine& machine = host_machine(),
             double tight = 0.9) {
    p.graph.outputs = std::move(outputs);
    auto made = plan(p.graph, {variant, machine});
    EXPECT_TRUE(made.ok()) << render(made.error());
    if (!made.ok()) return {};
    std::string sources = to_string(p.graph) + plan_text(*made);
    for (const Group& g : made->groups) sources += g.source;
    SCOPED_TRACE(sources);
    auto ran = run(*made, p, device);
    EXPECT_TRUE(ran.ok()) << render(ran.error());
    if (!ran.ok()) return std::move(*made);
    EXPECT_GT(expect_close(p, *ran, std::string(name(variant))), tight);
    return std::move(*made);
  }

  /// How many kernels compute the outputs of the last check() where none is joined with another.
  size_t kernels_apart(const Machine& machine) {
    auto made = plan(p.graph, {Variant::kFused, machine, /*exact=*/true, /*joins_totals=*/false});
    EXPECT_TRUE(made.ok()) << render(made.error());
    return made.ok() ? made->groups.size() : 0;
  }

  Device device;
  unsigned seed = 0;
  std::mt19937 random;
  std::normal_distribution<double> normal;
  Problem p;
};

}  // namespace kiln::fusion::testing
