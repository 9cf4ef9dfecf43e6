// `kiln profile SCRIPT`: runs a script under a profile, prints its tables and findings, and writes the files asked for.
#pragma once
#include "repl/shell/options.h"

namespace kiln::repl {

/// The script's exit code; an error in it still gives the profile up to there. kExitUsage, before the script runs: no
/// such script, a file that cannot be written, a column that does not exist. kExitError: no profile, or a file that
/// could not be written after all, where the script itself ended well.
int profile_command(Options options);

}  // namespace kiln::repl
