// What a GPU would get of an expression's kernels: %static for expressions.
#pragma once
#include <string>
#include <string_view>

#include "kiln/expr.h"
#include "kiln/result.h"

namespace kiln::repl {

struct MagicContext;

/// Prints a row per kernel of the plan for `target`; empty: %target's, else the device's, else the default GPU.
Status static_expression(MagicContext& context, const std::string& text, const std::string& variant,
                         std::string target);

/// The way to compute an expression that is so called; kValue lists them.
Result<ExprVariant> expr_variant_of(std::string_view text);

}  // namespace kiln::repl
