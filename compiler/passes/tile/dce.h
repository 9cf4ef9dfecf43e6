// Removes everything that no effect depends on: ops, whole loops and branches, single loop-carried values and branch
// results.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct DceOptions {};

/// `while` loops stay: they may be endless on purpose. Loads go when unused, unless volatile.
Status dce(ir::Module& module, const DceOptions& options = {});

}  // namespace kiln::passes
