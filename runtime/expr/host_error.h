// How far rounding takes the elements of an expression from what they are without it: estimates of first order, for a
// kernel per operation that rounds each result to its dtype and computes halves in float32. Roundings count as
// independent of each other where many meet in a sum.
#pragma once
#include <span>
#include <vector>

#include "runtime/expr/host.h"

namespace kiln::runtime {

/// Of `out`, made of `in` (converted and broadcast to its shape) by a pointwise operation of floats.
std::vector<double> pointwise_error(ExprOp op, std::span<const HostArray> in, const HostArray& out);
/// Adds what rounding `x` to its dtype does.
void add_rounding(HostArray& x);

/// A line along the axes of a reduction or row operation: elements, and their errors (null: they are exact).
struct HostLine {
  const double *v, *e;
  size_t n;
  DType dtype;  // of the result, which decides the precision of sums
};
/// Of the line's sum, mean, variance or extreme, which is `value`.
double reduce_error(ExprOp op, const HostLine& x, double value, double correction);
/// How far from `place` another element is that rounding may make the extreme; 0 where the elements are exact.
double place_error(ExprOp op, const HostLine& x, double place);
/// Of running sums or products `y` of the line.
void scan_error(ExprOp op, const HostLine& x, const double* y, double* out);
/// Of the elements `y` that a row operation made of the line; weight and bias may be null, and so may their errors.
void row_error(ExprOp op, const HostLine& x, const double* y, const HostLine& weight, const HostLine& bias, double eps,
               double* out);
/// Of the product y [m, n] of a row-major [m, k] and b [k, n], whose errors may be null.
void product_error(const double* y, const double* a, const double* ea, const double* b, const double* eb, int64_t m,
                   int64_t k, int64_t n, DType dtype, bool tf32, double* out);

}  // namespace kiln::runtime
