// Chooses where a launch that may begin early waits for the launches before it.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Tile stage. The kernel first waits for the end of earlier launches, and then lets later launches begin. A kernel
/// with its own gdc_wait stays as it is. Everything after the wait is safe: a launch that begins early waits for the
/// end of this one, which comes after the end of those before.
void place_grid_dependencies(ir::Module& module);

}  // namespace kiln::passes
