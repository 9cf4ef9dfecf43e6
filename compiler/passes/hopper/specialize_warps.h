// Splits a kernel into roles: producers, which load blocks into rings of shared memory ahead of their use, and the
// consumer warps that multiply them. A producer runs the slice of the kernel's loops that its loads need, so it runs
// ahead across outer loops too. Full and empty mbarriers of each ring's slots synchronise the two sides.
//
// Where the CTAs of a program (num_ctas) load the same tile, each loads its share of the rows and multicasts it: one
// read of memory serves the cluster. The slice proves that they load the same tile: it does not depend on cta_rank.
#pragma once
#include <span>

#include "compiler/ir/ir.h"
#include "compiler/passes/hopper/roles.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Bytes of one slot that these loads fill.
int64_t slot_bytes(std::span<const ir::Op* const> loads);
/// Whether the slots of the ones can serve the others too.
bool fill_alike(std::span<const ir::Op* const> a, std::span<const ir::Op* const> b);

/// Distributed stage. Every dot that select_wgmma chose becomes a wgmma on blocks loaded by tma_load. The loads of one
/// role in one basic block fill one slot of a ring of module.num_stages slots. A module without such dots stays as it
/// is.
Status specialize_warps(ir::Module& module, const target::Target& target, std::span<const Role> roles,
                        Remarks* remarks = nullptr);

}  // namespace kiln::passes
