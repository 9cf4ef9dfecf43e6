// Stores blocks through TMA: threads write their registers to swizzled shared memory, and one of them starts the copy,
// which runs asynchronously.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Distributed stage. Every descriptor_store becomes shared_store and tma_store. Equal blocks share a staging buffer,
/// and blocks of more than 64 KB, or 32 KB where several shapes leave beside rings, are stored in parts where threads
/// hold elements of each part.
Status stage_block_stores(ir::Module& module, const target::Target& target);

/// Bytes of the buffers that it will make, but of those that take the place of rings: behind the last loop, where no
/// other block of a cluster may still fill these.
int64_t staging_bytes_beside_rings(ir::Module& module);

}  // namespace kiln::passes
