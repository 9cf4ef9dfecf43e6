// Replaces pointer tiles that a loop carries and advances by a constant step: they are the initial tile plus a multiple
// of the iteration number, which is a scalar, so that the loop carries no tile.
//   for %i = %0 to %n step %1 iter (%p = %first) { … load %p … yield (addptr %p, splat %s) }
//   →  for %i = %0 to %n step %1 { … load (addptr %first, splat (%i · %s)) … }
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct IndexPointersOptions {};

/// Handles tiles of pointers whose last value is not used after the loop. Their unused loop-carried copies are left for
/// dce. Expects invariant steps in front of their loop (licm).
Status index_pointers(ir::Module& module, const IndexPointersOptions& options = {});

}  // namespace kiln::passes
