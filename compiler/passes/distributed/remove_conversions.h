// Removes redundant convert_layout ops.
//
//   %b = convert_layout %a : {L0} → {L1}          uses of %c become uses of %a
//   %c = convert_layout %b : {L1} → {L0}   →
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Removes conversions to the same layout, chains of conversions and duplicates; cheap values are recomputed instead of
/// converted. A value that shared memory has no room to convert is stored in the layout that it has.
Status remove_conversions(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
