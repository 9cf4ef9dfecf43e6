// Splits a kernel between a producer, which brings blocks into rings of shared memory ahead of their use, and the
// warps that multiply them. The producer runs the slice of the kernel's loops that its loads need, so that it is ahead
// across outer loops too; full and empty mbarriers of each ring's slots tie the two together.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Distributed stage. Every dot that select_wgmma chose becomes a wgmma on blocks that a tma_load brought; the loads of
/// one block of code fill one slot of a ring of module.num_stages slots. A module without such dots stays as it is.
Status specialize_warps(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
