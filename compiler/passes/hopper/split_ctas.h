// Spreads each program over the num_ctas blocks of threads of a cluster. A dimension of its tiles is parted: each block
// holds and computes its share of a tile that has the dimension, and all of one that has not, so that a product whose
// rows are parted has its second operand in every block, which specialize_warps then brings to all of them at once.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Tile stage. Afterwards tiles are those of one block, and cta_rank says of which. Does nothing where num_ctas is 1,
/// or the kernel asks for cta_rank itself.
///
/// The rows or columns of a product are parted, whichever are more, and in kernels without one a dimension of what is
/// stored. kUnsupported, naming the op, where the blocks could not go on without one another: a store whose value is
/// not parted, a reduction along the parted dimension, atomics, debug_barrier, printing, and a tensor that is both read
/// and written in different places. kUnsupported too where the target has no clusters.
Status split_ctas(ir::Module& module, const target::Target& target);

/// Blocks of a cluster that every GPU with clusters runs.
inline constexpr int kMostCtas = 8;

}  // namespace kiln::passes
