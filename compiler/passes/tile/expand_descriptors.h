// Writes block accesses through descriptors as loads and stores of pointer tiles with masks: for targets without a
// tensor memory accelerator, and for descriptors that it cannot serve.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Expands every descriptor but those that the tensor memory accelerator will serve: the loads of dots that
/// select_wgmma has chosen, and in kernels with such a dot the stores that have a tensor map.
Status expand_descriptors(ir::Module& module, const target::Target& target);
/// Expands every descriptor.
void expand_all_descriptors(ir::Module& module);

}  // namespace kiln::passes
