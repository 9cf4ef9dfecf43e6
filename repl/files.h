// Program texts from files or standard input, and the folder of the user's own state.
#pragma once
#include <string>

#include "kiln/result.h"

namespace kiln::repl {

/// "-" reads standard input. kIo names the file and the system's reason.
Result<std::string> read_text(const std::string& path);

/// $XDG_STATE_HOME/kiln or ~/.local/state/kiln, made when missing; empty when that is not possible.
std::string state_folder();

}  // namespace kiln::repl
