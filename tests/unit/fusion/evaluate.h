// What an expression is, in float64, with a bound on what rounding may do to it: the reference of every plan.
#pragma once
#include <vector>

#include "compiler/fusion/graph.h"

namespace kiln::fusion::testing {

/// A tensor's elements in row-major order; `error` bounds how far a computation in the nodes' dtypes may be off.
struct Elements {
  Shape shape;
  std::vector<double> value, error;
};

/// The outputs. `inputs` has the row-major elements of each input node, at its position.
std::vector<Elements> evaluate(const Graph& graph, const std::vector<std::vector<double>>& inputs);

}  // namespace kiln::fusion::testing
