// kiln._kiln.Expr: a tensor expression (kiln/expr.h).
#pragma once
#include <vector>

#include "kiln/expr.h"
#include "python/src/object.h"

namespace kiln::python {

const Expr& expr_of(PyObject* object);
std::vector<Expr> exprs_of(PyObject* sequence);
/// A tuple of ints.
Ref int_tuple(std::span<const int64_t> values);
std::vector<int64_t> ints_of(PyObject* sequence);

}  // namespace kiln::python
