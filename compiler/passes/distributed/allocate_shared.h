// Gives every op that goes through shared memory its place there, and a barrier before it where one is needed.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Sets shared_offset (and sync_before) of convert_layout, reduce and scan ops with scratch, and of shared_alloc, and
/// module.shared_bytes. What shared_alloc makes lives as long as the kernel (analysis/shared_memory.h has its
/// alignment); scratch lives only while its op runs, so ops may share bytes; while the sum of all is small they do not,
/// which saves barriers. An error (ErrorKind::kMemory) at the op that needs more than the target's shared memory per
/// block.
Status allocate_shared(ir::Module& module, const target::Target& target);

/// Bytes of a block's shared memory that are left beside what shared_alloc has taken so far and the ops' scratch: what
/// a pass may still take for speed.
int64_t shared_room(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
