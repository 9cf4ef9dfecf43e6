// `kiln compile` and `kiln check`: one kernel's stages as text, and the kernels of a file or folder that do not
// compile.
#pragma once
#include <string>

#include "kiln/result.h"
#include "repl/shell/options.h"

namespace kiln::repl {

/// Writes the stage to `args.output` or stdout, and what was assumed or asked for beside it to stderr.
Status compile_command(const CompileArgs& args, const std::string& device, bool json);

/// Of a file: prints one line per kernel, and each error. Of a folder: the kernels of its .py files that do not
/// compile, how often each reason was met, and the share that compiles. Gives the exit code: kExitError when a kernel
/// does not compile.
Result<int> check_command(const CompileArgs& args, const std::string& device, bool json);

}  // namespace kiln::repl
