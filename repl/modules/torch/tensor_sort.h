// Sorting and what follows from it, and other operations along one dimension that the host computes.
#pragma once
#include <span>

#include "repl/script/interp/interp.h"

namespace kiln::script {

std::span<const NativeDef> sorting_functions();

}  // namespace kiln::script
