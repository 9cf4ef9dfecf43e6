// What expressions mean, computed on the host: floats in float64, integers in int64. Neither fast nor clever.
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

/// The value of an expression. Floats are rounded by casts only. kMemory when it does not fit, kValue for an integer
/// division by zero. `with_error`: also how far a kernel per operation may be off, as host_error.h estimates it.
Result<HostArray> evaluate(const ExprNode& root, bool with_error = false);

/// As a tensor of that dtype, rounded.
Result<Tensor> host_tensor(const Device& device, DType dtype, const HostArray& x);

/// Multiplications, additions and functions that evaluate() would do.
double evaluation_cost(const ExprNode& root);

/// Rows [start, start + count) along the first dimension, with as little of the rest as the operations allow.
Result<Expr> rows_of(const Expr& expr, int64_t start, int64_t count);

}  // namespace kiln::runtime
