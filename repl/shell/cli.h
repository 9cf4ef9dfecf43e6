// The kiln program: parses its command line and runs the command.
#pragma once

namespace kiln::repl {

int run(int argc, const char* const* argv);

}  // namespace kiln::repl
