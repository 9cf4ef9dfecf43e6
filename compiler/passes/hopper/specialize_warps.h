// Splits a kernel between a producer, which brings blocks into rings of shared memory ahead of their use, and the
// warps that multiply them. The producer runs the slice of the kernel's loops that its loads need, so that it is ahead
// across outer loops too; full and empty mbarriers of each ring's slots tie the two together.
//
// Where the blocks of a program (num_ctas) load the same tile, each brings its share of the rows to all of them: one
// read of memory serves the cluster. That they do is proven from the slice: it does not ask for cta_rank.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Distributed stage. Every dot that select_wgmma chose becomes a wgmma on blocks that a tma_load brought; the loads of
/// one block of code fill one slot of a ring of module.num_stages slots. A module without such dots stays as it is.
Status specialize_warps(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
