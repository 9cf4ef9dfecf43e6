// What annotations say, which nothing evaluates.
#pragma once
#include "compiler/ast/ast.h"

namespace kiln::ast {

/// `tl.constexpr`, whatever the module is called, or `constexpr`, also in quotes.
bool is_constexpr_annotation(const Expr& annotation);
/// `tl.const`, likewise: a pointer that the kernel does not write through.
bool is_const_annotation(const Expr& annotation);

}  // namespace kiln::ast
