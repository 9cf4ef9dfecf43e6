// Prefetches the loads that feed a loop's dots, or that a loop requests by num_stages: cp.async into a ring of buffers
// in shared memory.
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
#include "compiler/analysis/axis_info.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

inline constexpr int kLeastCopyBytes = 4;  // that cp.async copies

/// On targets with cp.async, for each `for` with num_stages (its own attribute, or the kernel's) of at least 2:
/// - where it has dots, the loads whose values reach a dot and whose memory it does not write. The buffers of rows of
///   32 bytes and more are swizzled to avoid bank conflicts of copies and fragments, and masked-off elements must be 0.
///   There is a slot for each stage. One less is enough where warps exchange something through shared memory behind the
///   reads, as scales for their layout: the next copies then follow that, to the slot that was read. So it is done
///   where one more program shares an SM for it. Where warps do not meet so, or num_stages is 3, a second barrier in
///   front of the wait saves the slot, if registers let that program in too: the next copies go ahead of the wait then;
/// - where it has none and its own num_stages, every load that varies with the loop. A row is read immediately, then
///   the next one may take its place: a ring has one buffer less than there are stages. Where registers are short,
///   code after a reduction reloads the row (read_again.h). The loop may store through other parameters than those
///   that a load's address comes from: with num_stages a program promises that tensors of different parameters do not
///   overlap. Where shared memory has no room for that many buffers there are fewer; if not even one fits, the loads
///   stay.
/// Addresses and masks must need no other threads, and of memory only small tiles that the loop does not write, such as
/// indices, which are then loaded ahead too; for operands of dots they come by rings where other threads need them
/// (index_loads.h). A load stays as it is when fewer than 4 contiguous bytes can be copied.
Status pipeline_loads(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

/// Whether a vector that a loop loads comes by a ring, beside tiles that do. Registers can hold it for the next
/// iteration (prefetch_loads), which may come before memory has answered; copies run further ahead, and cost no wait
/// and barrier of their own there. But of contiguous elements a thread loads several at once, in fewer instructions
/// than copy and read them: those come by a ring only beside wgmma, whose fences wait for loads.
bool vector_runs_ahead(const ir::Op* load, const ir::Op* loop, int stages, const analysis::AxisAnalysis& axis);

}  // namespace kiln::passes
