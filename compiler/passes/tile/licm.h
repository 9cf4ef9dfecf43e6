// Hoists pure ops whose operands do not change in a loop, from the innermost loop outwards.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct LicmOptions {};

/// Only ops in the loop's own block are hoisted: those under an `if` may never run.
Status licm(ir::Module& module, const LicmOptions& options = {});

}  // namespace kiln::passes
