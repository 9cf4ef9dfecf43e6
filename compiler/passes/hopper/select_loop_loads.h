// Selects the blocks that a loop brings by TMA for its own products, where no producer can run ahead of the kernel: the
// tensors, or where their blocks lie, are read from memory, the loops around are `while` loops, or what the kernel
// writes through is unknown. Within the loop that computes the sums none of this matters, as nothing is written there.
//
//   %d = make_descriptor %loaded, …          %d = make_descriptor %loaded, … {on_device}
//   for … { %a = descriptor_load %d, …   →   for … { %a = descriptor_load %d, … {in_loop}
//           dot %a, … {staged} }                     dot %a, … {staged} }
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// The last step of select_wgmma, with its staged products. pipeline_loads makes rings of the loads, whose attribute
/// `in_loop` this sets; expand_descriptors skips them. Descriptors of what the host cannot compute get `on_device`.
void select_loop_loads(ir::Module& module, const target::Target& target, Remarks* remarks);

/// A load that it has chosen.
bool is_in_loop_ring(const ir::Op* op);

}  // namespace kiln::passes
