// Caches a tile that is live across a reduction over warps in shared memory, where it takes no registers. cp.async
// loads it, and each part of the program between two reductions reloads it from there (read_again.h).
//
//   %x = load %p, %m : bf16[8192]{L0}              async_copy %buffer, %p, %m
//                                                  async_commit
//   %f = cast %x                                   async_wait {count = 0}
//   %s = reduce %f …                          →    %x = shared_load %buffer : bf16[8192]{L0}
//   %y = mul %f, …                                 %f = cast %x
//                                                  %s = reduce %f …
//                                                  %x1 = shared_load %buffer …
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// On targets with cp.async, in kernels without dots: loads in the kernel's own block, in whole units of 16 bytes and
/// of at least kManyRegisters elements per thread, whose values are used on both sides of such a reduction. With fewer
/// elements registers are better, unless the program waits for other programs between two uses: then 16 elements
/// and units of 8 bytes suffice. Cached tiles take at most half of a block's shared memory, and no more than is left.
Status hold_in_shared(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
