// Splits each program's tiles across the num_ctas CTAs of a cluster along one dimension. Each CTA has its share of a
// tile with that dimension, and all of a tile without it. A product whose rows are split therefore needs its second
// operand in every CTA, which specialize_warps multicasts.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Tile stage. Afterwards tiles are those of one CTA, and cta_rank says which. Does nothing where num_ctas is 1, or the
/// kernel uses cta_rank itself.
///
/// Splits the rows or columns of a product, whichever are more, and in kernels without a product a dimension of the
/// stored tiles. kUnsupported, naming the op, where CTAs would have to communicate: a store whose value is not split, a
/// reduction along the split dimension, atomics, debug_barrier, printing, and a tensor that is both read and written in
/// different places. kUnsupported too where the target has no clusters.
Status split_ctas(ir::Module& module, const target::Target& target);

/// The cluster size that every GPU with clusters supports.
inline constexpr int kMostCtas = 8;

}  // namespace kiln::passes
