// Python's scalar constants and their operators: shared by constexpr evaluation in kernels and by host scripts.
#pragma once
#include <string>
#include <variant>

#include "support/diag.h"

namespace kiln::ast {

/// Python's int. 128 bits hold every constant that kernels use (Philox, 2**64); overflow beyond them is an error.
using Int = __int128;

std::string to_string(Int value);

struct None {
  bool operator==(const None&) const = default;
};

/// None, bool, int, float or str.
using Constant = std::variant<None, bool, Int, double, std::string>;

enum class UnaryOp { kNot, kNegate, kPlus, kInvert };
enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kMatMul, kAnd, kOr, kXor, kShl, kShr };
enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIs, kIsNot, kIn, kNotIn };

std::string_view spelling(UnaryOp op);    // "not", "-", "+", "~"
std::string_view spelling(BinaryOp op);   // "+", "//", …
std::string_view spelling(CompareOp op);  // "==", "is not", …

/// Python's type name: "NoneType", "bool", "int", "float", "str".
std::string_view type_name(const Constant& c);
/// Python's repr(): 'text', 1.0, True.
std::string repr(const Constant& c);
/// Python's truth value.
bool truth(const Constant& c);

/// Python's meaning, `//` and `%` flooring; errors (division by zero, wrong types, overflow) are placed at `where`.
Result<Constant> apply(UnaryOp op, const Constant& a, SourceRange where);
Result<Constant> apply(BinaryOp op, const Constant& a, const Constant& b, SourceRange where);
/// kIs compares None and identity of equal scalars; kIn is for strings.
Result<Constant> apply(CompareOp op, const Constant& a, const Constant& b, SourceRange where);

/// Python's repr of a float: shortest text that reads back the same ("1.0", "1e-05", "inf", "nan").
std::string float_repr(double v);

}  // namespace kiln::ast
