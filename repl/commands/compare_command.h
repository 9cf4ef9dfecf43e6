// `kiln compare OLD NEW`: two comparisons that %compare --json saved.
#pragma once
#include "kiln/result.h"
#include "repl/shell/options.h"

namespace kiln::repl {

/// kExitUsage: a file that is no saved comparison, or two that do not compare. Else kExitMismatch when a result of the
/// new run is wrong, kExitSlower when a contender got slower, kExitError when one of the old run has no times in the
/// new.
int compare_command(const CompareArgs& args, bool json);

}  // namespace kiln::repl
