// Values of constexpr parameters as people write them: in a file, on a command line, in a call from C.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/frontend/frontend.h"

namespace kiln::frontend {

/// The last part of a.b.c or of a plain name; "" for anything else.
std::string_view last_name(const ast::Expr* e);

/// A constant (a number may have a sign), or a dtype as in `tl.float16`.
std::optional<Global> literal(const ast::Expr* e);

/// "BLOCK=1024", "EVEN=True", "DTYPE=tl.float16", "NAME=None", "SHAPE=(4, 8)", "LOWEST=-inf", "ACT=tl.sigmoid"; with
/// the kernel also names of its file, "ACT=gelu".
Result<std::pair<std::string, Global>> parse_constexpr(const std::string& text, const JitFunction* function = nullptr);

}  // namespace kiln::frontend
