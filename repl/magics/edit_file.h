// The file that %edit opens: a kernel's source below a line with its launch configuration.
#pragma once
#include <string>
#include <string_view>

#include "kiln/expr.h"

namespace kiln::repl {

/// "# launch: grid=(4096, 1, 1) num_warps=4 num_stages=3 BLOCK=1024", then the source.
std::string edit_text(const ExprGroup& group);
/// Takes grid, launch options and constants from a first line like that, and the text as source. kValue and kName for
/// items that are none; without such a line the launch stays.
Status read_edit(const std::string& text, ExprGroup& group);

/// A new folder's file for a kernel of that name.
Result<std::string> new_edit_file(const std::string& kernel);
/// Runs $VISUAL or $EDITOR on it and waits. kValue when neither is set, kIo when it fails.
Status open_editor(const std::string& file);

/// The file as a session runs it: its other functions get the kernel's name before their own, so that `gelu` stays what
/// it was there.
std::string with_own_helpers(const std::string& text, const std::string& kernel);

}  // namespace kiln::repl
