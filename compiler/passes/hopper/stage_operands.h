// Turns staged dots (select_wgmma.h) into wgmma on shared memory that the warps fill themselves. What pipeline_loads
// copies ahead is read in its ring; any other operand is stored to a buffer of its own, behind the op that makes it
// where that stands outside of the dot's block, else in front of the dot. A tile of words that products sum over along
// both of its dimensions has a buffer for each: wgmma reads words only where they are contiguous along the sum.
//
//   %a = shared_load %ring[%slot]                      barrier
//   %b = …                                             shared_store %buffer, %b
//   %d = dot %a, %b, %c {mma = "wgmma", staged = 2} →  fence_async
//                                                      barrier
//                                                      %p = wgmma %ring[%slot], %buffer, %c
//                                                      %d = wgmma_wait %p {count = 0}
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Distributed stage, after pipeline_loads and before specialize_warps. A module without such dots stays as it is.
Status stage_operands(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

/// Bytes of shared memory that stage_operands will take and that may be in use while the loop `beside` runs, if
/// `brought` (loads) come through rings.
int64_t staged_bytes(ir::Module& module, const target::Target& target, const ir::Op* beside,
                     std::span<ir::Op* const> brought);

}  // namespace kiln::passes
