// The layout rules of the distributed stage, in addition to those of the IR's own verifier.
//
//  1. A tile's layout has 5 lane bits and log2(num_warps) warp bits, reaches every element, and has no offset or block
//     bits.
//  2. A shape op (expand_dims, broadcast, reshape, trans, join, split) finds each register of its results in its
//     operand's registers of the same thread.
//  3. A reduction's result has the slice of its operands' common layout; a scan's has the operands' layout. Both have
//     unit bases.
//  4. After allocate_shared (a module with shared_bytes, or an op with shared_offset): every op with scratch has a
//     shared_offset, aligned to 16, and ends within shared_bytes.
//  5. The operands of a dot give every thread (with mma.sync: every warp, in the instruction's fragments) what its
//     part of the result needs.
//  6. A gather op's tiles share the result's layout, but operand 0 may have any; a scatter's all share it.
//  7. The warps of a bucket_place hold stretches in their order (layout::stretches).
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// The first violated rule as an ErrorKind::kInternal diagnostic; a module of the tile stage never violates one.
Status verify_layouts(const ir::Module& module);

/// Bytes of scratch that the op needs in shared memory in the distributed stage; 0 for most.
int64_t scratch_bytes(const ir::Op& op);

}  // namespace kiln::analysis
