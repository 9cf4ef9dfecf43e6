// Assigns shared memory to every op that uses it, and a barrier before the op where one is needed.
#pragma once
#include <functional>

#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Sets shared_offset (and sync_before) of convert_layout, reduce and scan ops with scratch, and of shared_alloc, and
/// module.shared_bytes. Rings and buffers of the warps' own copies live from their first use to their last, in which
/// loops that follow one another do not meet: they share bytes (analysis/shared_memory.h has the alignment). Scratch
/// lives only while its op runs, so ops may share bytes, also with rings that are not in use there: an epilogue takes
/// no more than the loop before it. While the total is small they do not, which saves barriers. An error
/// (ErrorKind::kMemory) at the op that exceeds the target's shared memory per block.
Status allocate_shared(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

/// Bytes of a block's shared memory beyond what shared_alloc has taken so far and the ops' scratch. A pass may use them
/// for speed. `has_scratch`: the ops whose scratch counts; without it all. `beside`: a loop; allocations that are not
/// in use while it runs do not count.
int64_t shared_room(ir::Module& module, const target::Target& target,
                    const std::function<bool(const ir::Op*)>& has_scratch = {}, const ir::Op* beside = nullptr);

}  // namespace kiln::passes
