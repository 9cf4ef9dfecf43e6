// Rewrites block accesses through descriptors as masked loads and stores of pointer tiles: for targets without TMA, and
// for descriptors that TMA cannot serve.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Expands every descriptor except those that TMA will serve: the loads of dots that select_wgmma has chosen, and in
/// kernels with such a dot the stores that have a tensor map.
Status expand_descriptors(ir::Module& module, const target::Target& target);
/// Expands every descriptor.
void expand_all_descriptors(ir::Module& module);

}  // namespace kiln::passes
