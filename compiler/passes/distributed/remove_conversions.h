// Takes out convert_layout ops that need not be there.
//
//   %b = convert_layout %a : {L0} → {L1}          uses of %c become uses of %a
//   %c = convert_layout %b : {L1} → {L0}   →
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Conversions to the same layout go; a conversion of a conversion starts from the first; of two equal ones the second
/// goes; what is cheap is computed again instead.
Status remove_conversions(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
