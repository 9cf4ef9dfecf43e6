// Computes each value once per path: a pure op is replaced by an equal earlier one that dominates it, and so is a load
// with no write to memory in between.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct CseOptions {};

Status cse(ir::Module& module, const CseOptions& options = {});

}  // namespace kiln::passes
