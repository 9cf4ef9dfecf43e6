// The values of number and string tokens.
#pragma once
#include <string>
#include <string_view>

#include "compiler/ast/constant.h"

namespace kiln::parse {

/// The value of a kInt token: decimal, 0x, 0o or 0b, with underscores. An error when 128 bits do not hold it.
Result<ast::Int> int_value(SourceRange token);
/// The value of a kFloat token; inf when it is too large, as in Python.
double float_value(SourceRange token);

/// Replaces the escapes of a string literal's piece. `braces`: `{{` and `}}` stand for one brace each (f-strings).
/// Characters above U+007F come out as UTF-8.
Result<std::string> unescape(SourceRange piece, bool raw, bool braces);

}  // namespace kiln::parse
