// Constexpr functions as Python runs them: by the interpreter of scripts, for what the compiler's frontend does not
// compute itself (inner functions, lambdas, exceptions, match, lists that change…).
#pragma once
#include "compiler/frontend/frontend.h"

namespace kiln::script {

/// One interpreter for all functions that it is called with. They see their file's names as the frontend knows them,
/// and of modules only those that compute: nothing of a file runs beside its constexpr functions, and these reach no
/// files, processes or devices. A call that takes longer than ten seconds, or a GiB, is an error.
frontend::Interpret interpret_constexpr();

}  // namespace kiln::script
