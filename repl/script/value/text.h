// UTF-8 texts by character, and the format mini-language on plain scalars: no interpreter needed.
#pragma once
#include <string>
#include <string_view>

#include "compiler/ast/constant.h"

namespace kiln::script {

/// Bytes of the character that starts at `at`.
size_t character_bytes(std::string_view text, size_t at);
size_t count_characters(std::string_view text);
/// Offset of the character number `index`; the size when there are fewer.
size_t byte_of_character(std::string_view text, size_t index);

/// Characters beyond ASCII as \xe9, \u20ac or \U0001f600.
std::string ascii_of(std::string_view text);

/// `[[fill]align][sign][z][#][0][width][,|_][.precision][type]` applied to an int, bool, float or str. Errors have no
/// place.
Result<std::string> format_constant(const ast::Constant& value, std::string_view spec);

}  // namespace kiln::script
