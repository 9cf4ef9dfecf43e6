// Eigenvalues of matrices that are not symmetric.
#pragma once
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Of the library.
std::span<const NativeDef> eigen_functions();

}  // namespace kiln::script
