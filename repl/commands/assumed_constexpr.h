// The value that `kiln compile` and `kiln check` give a constexpr parameter which nobody gave one, from the text of its
// file: the parameter's default, the first configuration of @triton.autotune, @triton.heuristics, else how the kernel
// and the functions that it calls use the parameter.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/frontend/frontend.h"

namespace kiln::repl {

/// Nullopt for a size, and for a parameter whose use tells nothing.
std::optional<frontend::Global> assumed_constexpr(const frontend::JitFunction& function, const ast::Param& param);

/// The last part of a.b.c or of a plain name; "" for anything else.
std::string_view last_name(const ast::Expr* e);

/// A constant (a number may have a sign), or a dtype as in `tl.float16`.
std::optional<frontend::Global> literal(const ast::Expr* e);

}  // namespace kiln::repl
