// Tab: commands, names, attributes, keyword arguments of kernels and functions, and paths inside strings.
#pragma once
#include <string_view>

#include "repl/session/session.h"
#include "repl/shell/line_editor.h"

namespace kiln::repl {

Completion complete_line(script::Session& session, std::string_view before_cursor);

/// What an unclosed call before the cursor calls ("add_kernel" in "add_kernel[(4,)](x, BL"); empty when there is none.
std::string_view open_call(std::string_view before_cursor);

}  // namespace kiln::repl
