// Keeps operands in shared memory until they are multiplied: wide ones of sums in registers, and what several products
// read.
//
//   %a = convert_layout %q : f32[64, 64]{L9}           barrier
//   for … {                                            shared_store %buffer, %q
//     …                                          →     barrier
//     %s = dot %a, %k, %zero                           for … {
//   }                                                    …
//                                                        %a = shared_load %buffer : f32[64, 64]{L9}
//                                                        %s = dot %a, %k, %zero
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// A thread multiplies whole rows by whole columns: of 64 elements along k, its four rows alone are 256 registers. Such
/// an operand is read right before its dot, so that the assembler reads it as it multiplies; what is converted on the
/// way is stored where it was converted. Operands in rings are read as late. A tile that no ring brings, and that
/// several products by mma.sync read, such as keys that are values too, is stored once, not converted for each. Only as
/// far as shared memory has room.
Status read_operands(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
