// Loads what a loop with dots reads into registers, an iteration early: scales, indices, decays, which are too small
// for a ring, but would each keep the warps waiting for memory.
//
//                                               %v0 = load %p(lower), lower < upper
//   for %k … {                                  for %k … iter (%v = %v0) {
//     %v = load %p(%k) : f32[64]{L0}        →     %next = load %p(%k + step), %k + step < upper : f32[64]{L0}
//     … = mul …, %v                               … = mul …, %v
//   }                                             yield %next
//                                               }
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// For each `for` with a dot in its body and num_stages of at least 2, the loads that pipeline_loads has left in the
/// body, as far as registers have room, where addresses and masks can be computed an iteration ahead and the loop does
/// not write what they read.
Status prefetch_loads(ir::Module& module, const target::Target& target);

/// Registers of a thread that the products of a loop's body leave for such loads; less than 0: none.
int prefetch_room(const ir::Block& body);

}  // namespace kiln::passes
