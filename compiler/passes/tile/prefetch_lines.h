// What a loop without dots loads and reduces is brought to the L2 some iterations ahead, where the launch has few
// programs.
//
//                                                %few = cmp le (mul %programs…), 264
//   for %k … {                                   for %k … {
//     %x = load (%row + %k + arange(0, 4096))      %x = load …
//     %s = reduce %x                          →    if %few { prefetch (%row + %k + 2·4096 + arange(0, 128)·32) }
//     …                                            %s = reduce %x
//   }                                              …
//
// A program's loop waits for memory in each iteration. With many programs on an SM others work meanwhile; with one or
// two nobody does, and the wait for the L2 is a third of that for DRAM.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// One prefetch for each line of 128 bytes of the loads in the body of a `for` that reduces, in kernels without dots:
/// of rows whose neighbours are contiguous, and of scalars, where addresses and masks follow from the induction
/// variable.
Status prefetch_lines(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
