// Pointers that a loop advances by the same step in every turn are the first ones plus a multiple of the turn, which is
// a scalar: nothing needs to carry the tile.
//   for %i = %0 to %n step %1 iter (%p = %first) { … load %p … yield (addptr %p, splat %s) }
//   →  for %i = %0 to %n step %1 { … load (addptr %first, splat (%i · %s)) … }
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct IndexPointersOptions {};

/// Tiles of pointers whose last value is not used behind the loop. They are left carried as they came in, for dce to
/// remove. Expects invariant steps in front of their loop (licm).
Status index_pointers(ir::Module& module, const IndexPointersOptions& options = {});

}  // namespace kiln::passes
