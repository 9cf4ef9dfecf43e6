// Keeps a tile that waits for a reduction across warps in shared memory, where it takes no registers: cp.async brings
// it, and each part of the program between two reductions reads it there (read_again.h).
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
/// of kManyRegisters elements per thread at least, whose values are used on both sides of such a reduction. With fewer,
/// registers are the better place. What is held takes half of a block's shared memory at most,
/// and no more than is left.
Status hold_in_shared(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
