// Computes each value once per path: a pure op equal to an earlier one that dominates it gives way to it, and so does a
// load with no write to memory in between.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct CseOptions {};

Status cse(ir::Module& module, const CseOptions& options = {});

}  // namespace kiln::passes
