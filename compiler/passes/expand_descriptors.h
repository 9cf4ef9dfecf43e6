// Writes block accesses through descriptors as loads and stores of pointer tiles with masks: for targets without a
// tensor memory accelerator, and for descriptors that it cannot serve.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct ExpandDescriptorsOptions {};

/// Afterwards the module has no descriptors.
Status expand_descriptors(ir::Module& module, const ExpandDescriptorsOptions& options = {});

}  // namespace kiln::passes
