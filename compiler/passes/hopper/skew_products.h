// Lets a loop's last product, of weights that are computed from an earlier one, run beside the next iteration's
// arithmetic, as in attention. The product moves to the iteration after its own, behind that one's first product; the
// last iteration's product stands behind the loop. The first iteration has zeros to multiply, by a block that lies in
// front of its tensor: zeros, too. (A first iteration without that product, in front of the loop, would be the loop's
// code once more, which assemblers take a quarter of their time for.)
//
//   for %i = %lo to %hi iter (%acc) {              for %i = %lo to %hi iter (%acc, %p = 0, %j = outside) {
//     %s = dot %q, load(%k, %i)                      %s = dot %q, load(%k, %i)
//     %a = %acc * shrink(%s)                         %d = dot %p, load(%v, %j), %acc
//     %d = dot exp(%s), load(%v, %i), %a     →       yield %d * shrink(%s), exp(%s), %i
//     yield %d                                     }
//   }                                              if %lo < %hi { dot %p, load(%v, %j), %acc }
//
// Of loops that follow one another and add to one sum, as those in front of and on the diagonal of causal attention,
// the last product runs in the first iteration of the next loop.
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
