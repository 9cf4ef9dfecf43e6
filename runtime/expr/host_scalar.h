// One element of each operation on the host.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/expr_op.h"
#include "kiln/result.h"

namespace kiln::runtime {

/// out[i] = op(in[0][i], in[1][i], …), computed in T (float or double), which holds the elements; comparisons give 0
/// and 1.
template <class T>
void host_floats(ExprOp op, const double* const* in, double* out, size_t n);
/// Integers of `dtype`, not wrapped to it.
void host_ints(ExprOp op, DType dtype, const int64_t* const* in, int64_t* out, size_t n);
double host_reduce(ExprOp op, const double* v, size_t n, double correction);
int64_t host_reduce(ExprOp op, const int64_t* v, size_t n);
/// Running sums or products, in place.
void host_scan(ExprOp op, double* v, size_t n);
void host_scan(ExprOp op, int64_t* v, size_t n);
/// In place; weight and bias may be null.
void host_row(ExprOp op, double* v, size_t n, const double* weight, const double* bias, double eps);

}  // namespace kiln::runtime
