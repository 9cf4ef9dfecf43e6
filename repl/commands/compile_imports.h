// The files behind the imports of a kernel file, for `kiln compile` and `kiln check`, which run nothing.
#pragma once
#include "compiler/frontend/frontend.h"

namespace kiln::repl {

/// Finds `.utils` beside the importing file, and `pkg.utils` below the nearest folder above it that has pkg. A file is
/// parsed once. One that cannot be parsed counts as absent: its names are then unknown where a kernel uses them.
frontend::LoadModule follow_imports();

}  // namespace kiln::repl
