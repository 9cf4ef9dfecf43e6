// Tab: commands with their options and values, names, attributes, keyword arguments with their values, keys of dicts,
// and paths.
#pragma once
#include <string>
#include <string_view>

#include "repl/editor/completion_menu.h"
#include "repl/session/session.h"

namespace kiln::repl {

/// `before` may have several lines: a call may begin on an earlier one than the cursor's.
editor::Completion complete_line(script::Session& session, std::string_view before_cursor);

/// One line about a candidate that brings no note of its own: a command's help, a function's signature, a value's type.
/// Runs nothing of the script.
std::string describe_candidate(script::Session& session, const std::string& candidate);

/// What an unclosed call before the cursor calls ("add_kernel" in "add_kernel[(4,)](x, BL"); empty when there is none.
std::string_view open_call(std::string_view before_cursor);

}  // namespace kiln::repl
