// From the tile stage to the distributed stage: every tile gets a layout, with a convert_layout where two layouts meet.
//
//   %o = arange … : i32[1024]                %o = arange … : i32[1024]{L0}
//   %p = addptr %xs, %o : *f32[1024]   →     %p = addptr %xs, %o : *f32[1024]{L0}
//   %v = load %p : f32[1024]                 %v = load %p : f32[1024]{L0}
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Values connected by elementwise ops, loops and branches get one layout. Memory ops may differ from their neighbours
/// when the wider access pays for a conversion. Reductions have the slice of their operand's layout. Values that are
/// cheap to compute (arange, constants, splats and arithmetic on them) are recomputed wherever another layout needs
/// them.
Status assign_layouts(ir::Module& module, Remarks* remarks = nullptr);

}  // namespace kiln::passes
