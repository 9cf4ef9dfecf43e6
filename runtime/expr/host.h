// What expressions mean, computed on the host: for small tensors, and in float64 to check kernels. Neither fast nor
// clever.
#pragma once
#include <vector>

#include "kiln/result.h"
#include "runtime/expr/node.h"

namespace kiln::runtime {

/// Row-major elements: `floats` of a float dtype, `ints` of others (wrapped to the dtype).
struct HostArray {
  DType dtype = DType::kF32;
  fusion::Shape shape;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  // When asked for: how far rounding may take each float, and each place of an extreme; empty: not at all.
  std::vector<double> error = {};
  bool is_float() const { return kiln::is_float(dtype); }
};

/// The value of an expression, each operation rounded to its dtype, with the bits of the kernels for large tensors:
/// functions, sums, rows and products are computed by kernels. kMemory when it does not fit.
/// `with_error`: a reference instead. All is computed in float64, rounded where kernels round (KILN_EXACT), and with it
/// comes how far a kernel per operation may be off, as host_error.h estimates it.
Result<HostArray> evaluate(const ExprNode& root, bool with_error = false);

/// As a tensor of that dtype, rounded.
Result<Tensor> host_tensor(const Device& device, DType dtype, const HostArray& x);

/// Multiplications, additions and functions that evaluate() would do.
double evaluation_cost(const ExprNode& root);

/// Rows [start, start + count) along the first dimension, with as little of the rest as the operations allow.
Result<Expr> rows_of(const Expr& expr, int64_t start, int64_t count);

}  // namespace kiln::runtime
