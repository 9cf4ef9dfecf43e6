// Triton's type promotion: pure functions of element types. A "weak" operand is a Python scalar (a constexpr) that has
// not been turned into a tensor: it does not promote a tensor of the same or a higher kind (bool < int < float).
#pragma once
#include <optional>

#include "compiler/ast/constant.h"
#include "kiln/dtype.h"

namespace kiln::frontend {

enum class Promotion {
  kArithmetic,  // + - * & | ^ << >> comparisons, minimum and maximum
  kSelection,   // where: the same types, and it works on float8 too
  kDivision,    // / // %: halves compute in f32, ints must agree in signedness
};

/// The usual arithmetic conversions of C: the wider one, or the unsigned one of two of equal width.
DType promote_ints(DType a, DType b);

/// The type in which a binary operation computes. nullopt when the pair has none: fp8 with an int, or ints of different
/// signedness in a division.
std::optional<DType> promote(DType a, bool a_weak, DType b, bool b_weak, Promotion how);

/// The type that a Python scalar takes when it becomes a tensor: int1; int32, uint32, int64 or uint64 by value;
/// float32, or float64 when it is outside float32's normal range. nullopt for an int that needs more than 64 bits, None
/// and str.
std::optional<DType> natural_dtype(const ast::Constant& c);

/// Whether an int lies in the range of an integer dtype.
bool fits(ast::Int value, DType dtype);

}  // namespace kiln::frontend
