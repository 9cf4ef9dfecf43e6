// Reductions and stores of more elements than a program's registers hold become loops over pieces of a dimension.
//
//   %p = addptr %ptrs, %cols                   %acc = what is reduced of columns 0 to 4095
//   %x = load %p : f32[131072]                 %r = for %i = 4096 to 131072 step 4096 iter (%a = %acc) {
//   %e = mul %x, %x                      →       %x = load …, of columns %i + arange : f32[4096]
//   %s = reduce %e {axis = 0}                    yield add %a, (mul %x, %x)
//                                              }
//                                              %s = reduce %r {axis = 0}
//
// Written out, a thread's thousand elements spill, and the assembler takes seconds to minutes over them.
#pragma once
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Takes the reductions and stores whose operands are computed element by element from loads, indices and what is the
/// same along the dimension, where none but such need what was loaded whole: those of a softmax together, each of which
/// loads again then. Loads move to their reduction or store: nothing between may write memory, and what is stored lies
/// where it was loaded, if in another tensor. What was reduced by neighbours first is reduced piece by piece, as
/// combining functions allow that are associative and commutative; Triton asks for as much.
Status loop_over_pieces(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

}  // namespace kiln::passes
