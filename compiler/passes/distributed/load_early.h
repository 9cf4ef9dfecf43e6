// Loads of little behind a dot or a loop with dots, such as a bias, a scale or a row's decay: they begin before it, so
// that nothing waits for memory between the last product and the result.
//
//   %sum = for … { … dot … }                     %v = load %p : f32[64]{L0}
//   %q = addptr %x, %i                      →    %sum = for … { … dot … }
//   %v = load %q : f32[64]{L0}                   … = mul %sum, …%v
//   … = mul %sum, …%v
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// For each loop with a dot in its body, and each dot in no loop: the loads that follow it in its block, up to the next
/// op that may change what they read, whose addresses and masks need nothing of it, as far as registers have room
/// beside its products. What such a load takes part in (a conversion to another layout, say) stays behind. Kernels with
/// blocks for a producer keep theirs.
Status load_early(ir::Module& module);

}  // namespace kiln::passes
