// Chooses where a launch that may begin early waits for the launches before it.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Tile stage. The kernel first waits for the end of earlier launches, and then lets later launches begin. A kernel
/// with its own gdc_wait stays as it is. Everything after the wait is safe, though the wait is for the launch ahead
/// alone: let A, B and C follow one another. C begins when all CTAs of B have let it, each behind its own wait, so that
/// A has ended and is seen by then; and where B lets nothing begin or was not launched early, C begins behind its end.
/// So what C reads, what it writes over (memory that plans use again) and counters that launches share are left alone
/// by all launches before B, and by B once C has waited.
void place_grid_dependencies(ir::Module& module);

}  // namespace kiln::passes
