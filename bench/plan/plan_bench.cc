// How long it takes from an expression to its plan and sources: plan_bench [operations] [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "bench/argument.h"
#include "compiler/fusion/infer.h"
#include "compiler/fusion/plan.h"

namespace {

using namespace kiln;
using namespace kiln::fusion;

int add(Graph& g, ExprOp op, std::vector<int> inputs) {
  auto n = append(g, op, inputs);
  if (!n.ok()) {
    fmt::print(stderr, "{}", render(n.error()));
    std::exit(1);
  }
  return *n;
}

/// Layers as of a transformer: a product, a bias and a GELU, a residual, a norm; six operations each.
Graph layers(int operations) {
  Graph g;
  auto tensor = [&](Shape shape) {
    Shape strides = row_major(shape);
    g.nodes.push_back(input(DType::kBF16, std::move(shape), std::move(strides), 16));
    return static_cast<int>(g.nodes.size()) - 1;
  };
  int x = tensor({512, 1024});
  for (int done = 0; done < operations; done += 6) {
    const int y = add(g, ExprOp::kGelu,
                      {add(g, ExprOp::kAdd, {add(g, ExprOp::kMatMul, {x, tensor({1024, 1024})}), tensor({1024})})});
    // A scalar constant, as code has it between layers: it must not end a fused group.
    g.nodes.push_back(scalar(0.5));
    const int half = add(g, ExprOp::kMul, {y, static_cast<int>(g.nodes.size()) - 1});
    x = add(g, ExprOp::kLayerNorm, {add(g, ExprOp::kAdd, {half, x}), tensor({1024}), tensor({1024})});
  }
  g.outputs = {x};
  return g;
}

}  // namespace

int main(int argc, char** argv) {
  const auto operations = static_cast<int>(bench::whole_argument(argc, argv, 1, 50));
  const auto rounds = static_cast<int>(bench::whole_argument(argc, argv, 2, 200));
  if (operations <= 0 || rounds <= 0) {
    fmt::print(stderr, "usage: plan_bench [operations] [rounds]\n");
    return 2;
  }
  const Graph g = layers(operations);
  for (Variant variant : {Variant::kUnfused, Variant::kFused}) {
    std::vector<double> times;
    size_t groups = 0, characters = 0;
    for (int i = 0; i < rounds; ++i) {
      const auto start = std::chrono::steady_clock::now();
      // An H100's name, multiprocessors and shared memory, so that the plan is the same on any machine.
      auto made = plan(g, {variant, {"sm_90a", 132, 227 << 10}});
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      if (!made.ok()) {
        fmt::print(stderr, "{}", render(made.error()));
        return 1;
      }
      groups = made->groups.size();
      characters = 0;
      for (const Group& group : made->groups) characters += group.source.size();
    }
    std::sort(times.begin(), times.end());
    fmt::print("{:9} {} operations: {} kernels, {} characters of source, median {:.3f} ms, best {:.3f} ms\n",
               name(variant), operations, groups, characters, times[times.size() / 2], times[0]);
  }
}
