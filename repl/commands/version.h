// `kiln --version --verbose`: what this program is, for reports of bugs. What it finds is `kiln doctor`'s.
#pragma once
#include "profiler/report/table.h"

namespace kiln::repl {

/// Build, compiler, LLVM, system, processor, and the variables that are set.
report::Table version_table();

}  // namespace kiln::repl
