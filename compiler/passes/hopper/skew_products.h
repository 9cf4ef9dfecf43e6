// Lets a loop's last product, of weights that are computed from an earlier one, run beside the next iteration's
// arithmetic, as in attention. The product moves to the iteration after its own, behind that one's first product; the
// first iteration's other half stands in front of the loop, the last iteration's product behind it.
//
//   for %i = %lo to %hi iter (%acc) {              %p0, %a0 = if %lo < %hi { %s = dot %q, load(%k, %lo)
//     %s = dot %q, load(%k, %i)                                              yield exp(%s), %acc * shrink(%s) }
//     %a = %acc * shrink(%s)                       for %i = %lo + 1 to %hi iter (%acc = %a0, %p = %p0) {
//     %d = dot exp(%s), load(%v, %i), %a     →       %s = dot %q, load(%k, %i)
//     yield %d                                       %d = dot %p, load(%v, %i - 1), %acc
//   }                                                yield %d * shrink(%s), exp(%s)
//                                                  }
//                                                  if %lo < %hi { dot %p, load(%v, last), %acc }
//
// delay_waits then lets both products run while the warps compute, where the tensor cores would else wait for exp(%s).
// FlashAttention-3 calls it overlap within a warp group.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/hopper/roles.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Distributed stage, before specialize_warps. Loops without such products, and those for which a thread's registers or
/// shared memory do not suffice, stay as they are.
Status skew_products(ir::Module& module, const target::Target& target, std::span<const Role> roles,
                     Remarks* remarks = nullptr);

}  // namespace kiln::passes
