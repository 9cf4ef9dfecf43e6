// Loads of operands of mma.sync that no loop runs ahead (pipeline_loads), as in a branch or outside of loops, go to
// shared memory by cp.async instead of through registers, and are read when they are multiplied.
//
//   %k = load %p, %m : bf16[64, 64]{L0}               barrier                             (in a loop)
//   %h = convert_layout %k : bf16[64, 64]{L5}         async_copy %buffer0, %p, %m
//   %v = load %q, %n : bf16[64, 64]{L1}               async_commit
//   %g = convert_layout %v : bf16[64, 64]{L6}     →   async_copy %buffer1, %q, %n
//   %s = dot …, %h, …                                 async_commit
//   …                                                 async_wait {count = 1}
//   %o = dot …, %g, …                                 barrier
//                                                     %h = shared_load %buffer0 : bf16[64, 64]{L5}
//                                                     %s = dot …, %h, …
//                                                     …
//                                                     async_wait {count = 0}
//                                                     barrier
//                                                     %g = shared_load %buffer1 : bf16[64, 64]{L6}
//                                                     %o = dot …, %g, …
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// On targets with cp.async, each load of vectors of 16 bytes, of memory that the kernel does not write, which only
/// dots of its own block read, by ldmatrix: neither what is loaded nor the fragments of a later product wait in
/// registers. Not in loops that copy ahead, whose copies such a wait would wait for, nor where a kernel's only product
/// stands in no loop or branch; and only as far as shared memory still has room for as many blocks as the products'
/// registers have.
Status copy_operands(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

}  // namespace kiln::passes
