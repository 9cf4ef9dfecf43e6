// Folds constants and rewrites ops into fewer or simpler ones. Every rewrite keeps results bit for bit, floats
// included, except for which NaN a NaN is, and for sums that become part of a `dot`.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct CanonicalizeOptions {};

/// Repeats its rules until none applies.
///   %1 = splat %a : i32[8]          %1 = add %a, %b : i32
///   %2 = splat %b : i32[8]    →     %2 = splat %1 : i32[8]
///   %3 = add %1, %2 : i32[8]
Status canonicalize(ir::Module& module, const CanonicalizeOptions& options = {});

struct SimplifyScalarsOptions {};

/// Its rules for the arithmetic of scalars alone: loops and tiles stay as they were written, for passes that look for
/// how blocks are read in them, and so do branches, unless their condition is known.
Status simplify_scalars(ir::Module& module, const SimplifyScalarsOptions& options = {});

}  // namespace kiln::passes
