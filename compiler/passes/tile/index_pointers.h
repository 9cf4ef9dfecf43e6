// Replaces tiles that a loop carries and advances by a constant step: they are the initial tile plus a multiple of the
// iteration number, which is a scalar, so that the loop carries no tile.
//   for %i = %0 to %n step %1 iter (%p = %first) { … load %p … yield (addptr %p, splat %s) }
//   →  for %i = %0 to %n step %1 { … load (addptr %first, splat (%i · %s)) … }
// Both handle tiles whose last value is not used after the loop; integers of a positive step have it computed there.
// Their unused loop-carried copies are left for dce. They expect invariant steps in front of their loop (licm).
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct IndexOptions {};

/// Tiles of pointers, in every loop.
Status index_pointers(ir::Module& module, const IndexOptions& options = {});

/// Tiles of integers, in loops of a constant step: what a program counts along with its pointers, such as the columns
/// that a mask compares. They are then cheap to compute in any layout.
Status index_integers(ir::Module& module, const IndexOptions& options = {});

}  // namespace kiln::passes
