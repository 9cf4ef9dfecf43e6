// Limits products to what can be other than zero, and to what is read. A head of 80 columns lies in blocks of 128,
// whose others are outside of their tensor and so zero: along K they add nothing, and columns of a result that no
// store keeps need not be computed.
//
//   %q = descriptor_load %dq, %row, 0    // of a tensor with 80 columns
//   dot %q, trans %k, …               →    dot %q, trans %k, … {depth = 80}
//   dot %p, %v, %acc                  →    dot %p, %v, %acc {columns = 80}
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Tile stage, between select_wgmma and expand_descriptors. Sets `depth` and `columns` of dots for warp groups.
Status limit_products(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

}  // namespace kiln::passes
