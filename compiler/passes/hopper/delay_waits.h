// Lets products run while the warps compute something else: a wait stands where its product is first needed.
//
//   %s = wgmma %q, %k, %zero                    %s = wgmma %q, %k, %zero
//   %scores = wgmma_wait %s {count = 0}         %t = wgmma %do, %v, %zero
//   %t = wgmma %do, %v, %zero             →     %scores = wgmma_wait %s {count = 1}
//   %dp = wgmma_wait %t {count = 0}             %p = exp2 %scores
//   %p = exp2 %scores                           %dp = wgmma_wait %t {count = 0}
//   … = mul %p, %dp                             … = mul %p, %dp
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Moves the waits of each block down over arithmetic, loads and other products, and sets their counts; never over what
/// writes shared memory or joins warps, since the product still reads its operands. Beside a product that reads the
/// slots of a ring reductions and conversions of layouts are passed as well, and where nothing needs conversions
/// sooner, they go behind it first, and with them their barriers. A sum that only goes on into the next product needs
/// no wait. Loops that leave a product in flight stay as they are.
Status delay_waits(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
