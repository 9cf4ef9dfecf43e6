// Where a launch that may begin early waits for the launches that it follows.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Tile stage. The kernel first waits until what was launched before has ended, and then lets what is launched after it
/// begin; a kernel that says itself where it waits (gdc_wait) stays as it is. Everything else is safe behind the wait:
/// who begins early waits for this launch's end, which comes after the end of those before.
void place_grid_dependencies(ir::Module& module);

}  // namespace kiln::passes
