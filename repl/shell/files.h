// Program texts from files or standard input, the standard streams, and the folder of the user's own state.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

#include "kiln/result.h"

namespace kiln::repl {

/// "-" reads standard input; a byte order mark is left out. kIo names the file and the system's reason.
Result<std::string> read_text(const std::string& path);

/// Takes the numbers of standard streams that are closed, so that no file that is opened later gets one and is written
/// to by a print. Using such a stream still fails.
void keep_standard_streams();
/// Writes to a standard stream. What cannot be written does not stop the program: finish_output tells of it.
void put(std::FILE* stream, std::string_view text);
/// Flushes standard output; kIo when not all that was written to it arrived.
Status finish_output();

/// $XDG_STATE_HOME/kiln or ~/.local/state/kiln, made when missing; empty where neither variable is set. Where it cannot
/// be made, what is written into it fails, and says why.
std::string state_folder();

}  // namespace kiln::repl
