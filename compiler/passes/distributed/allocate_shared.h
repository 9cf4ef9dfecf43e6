// Assigns shared memory to every op that uses it, and a barrier before the op where one is needed.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Sets shared_offset (and sync_before) of convert_layout, reduce and scan ops with scratch, and of shared_alloc, and
/// module.shared_bytes. A shared_alloc lives as long as the kernel (analysis/shared_memory.h has its alignment).
/// Scratch lives only while its op runs, so ops may share bytes; while the total is small they do not, which saves
/// barriers. An error (ErrorKind::kMemory) at the op that exceeds the target's shared memory per block.
Status allocate_shared(ir::Module& module, const target::Target& target);

/// Bytes of a block's shared memory beyond what shared_alloc has taken so far and the ops' scratch. A pass may use them
/// for speed.
int64_t shared_room(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
