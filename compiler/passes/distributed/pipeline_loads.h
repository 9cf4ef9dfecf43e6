// Lets the loads that feed a loop's dots, or that a loop asks for by num_stages, run ahead: cp.async into a ring of
// buffers in shared memory.
//
//                                                     issue copies for iterations 0 … stages-2
//   for %k … iter (%p = …) {                          for %k … iter (%p = …, %q = %p advanced, %slot = 0, …) {
//     %a = load %p, %m : f16[128, 32]{L0}               async_wait {count = stages-2}
//     %h = convert_layout %a : f16[128, 32]{L5}   →     barrier
//     %s = dot %h, …                                    async_copy %buffer[…], %q, …      (iteration %k + stages-1)
//     %n = addptr %p, …                                 async_commit
//     yield %n, …                                       %h = shared_load %buffer[%slot] : f16[128, 32]{L5}
//   }                                                   %s = dot %h, …
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// On targets with cp.async, for each `for` with num_stages (its own attribute, or the kernel's) of at least 2:
/// - where it has dots and writes no memory, the loads whose values reach a dot; the buffers are swizzled, so that
///   copies and fragments meet no bank conflicts, and what is masked off must be 0;
/// - where it has none and num_stages of its own, every load that varies with the loop. A row is read at once, then the
///   next one may come into its place: a ring has one buffer less than there are stages. Where registers are short,
///   what lies behind a reduction reads the row again (read_again.h). The loop may store, through other parameters than
///   those that a load's address comes from: that tensors of two parameters do not overlap is what a program says with
///   num_stages. Where shared memory has no room for that many buffers, there are fewer; for not even one, the loads
///   stay.
/// Addresses and masks must need neither memory nor other threads; a load stays as it is when less than 4 bytes lie
/// side by side.
Status pipeline_loads(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
