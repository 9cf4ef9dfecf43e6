// Short loops with small branches are unrolled, and the branches become masks and selections, so that the loads of all
// iterations are under way at once.
//
//   %s = for %k = 0 to 8 step 1 iter (%a = %z) {     %v0 = load %p0, (and %mask, %c0)
//     %r = if %c {                                   %s0 = select %c0, (add %z, %v0), %z
//       %v = load %p, %mask                    →     %v1 = load %p1, (and %mask, %c1)
//       yield (add %a, %v)                           %s1 = select %c1, (add %s0, %v1), %s0
//     } else { yield %a }                            …
//     yield %r
//   }
//
// A branch that all threads take together costs little, but the loads behind it wait until those before it have come.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Takes each `for` of few iterations and ops in which there are branches, all without an else part and pure but for
/// loads of few elements.
Status if_conversion(ir::Module& module);

}  // namespace kiln::passes
