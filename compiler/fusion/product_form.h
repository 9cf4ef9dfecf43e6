// How a product's kernel reads its operands, and the tiles that it may have: what the writer of its source and the
// planner both ask.
#pragma once
#include <optional>
#include <vector>

#include "compiler/fusion/dag.h"
#include "compiler/target/matmul_tile.h"

namespace kiln::fusion {

/// A matrix, or one for each element of a batch, whose rows or columns are contiguous and start at multiples of 16
/// bytes, as tensor descriptors need.
struct Block {
  int64_t stride;             // of the other dimension
  bool transposed;            // the first dimension is the contiguous one
  std::vector<size_t> batch;  // the operand's dimensions in front that move it
};

/// Both operands of a product, where the machine multiplies blocks of their type through descriptors.
struct BlockPair {
  Block a, b;
};
std::optional<BlockPair> blocks_of(const Dag& dag, const DagNode& product, const Machine& machine);

/// Whether the element `offset` of a tensor lies at a multiple of 16 bytes, where descriptors may begin.
bool begins_at_unit(const DagNode& tensor, int64_t offset);

/// Whether the machine multiplies blocks of this type, however the operands lie.
bool multiplies_blocks(const DagNode& product, const Machine& machine);

/// Rows, columns, depth, batch and splits of a product, and how its operands lie where they are read in blocks. What it
/// stores is not filled in.
ProductSize size_of_product(const DagNode& product, const BlockPair* blocks = nullptr);

/// Of two products of one left operand in one kernel.
ProductSize size_of_twins(const ProductSize& first, const ProductSize& second);

/// What the kernel of a product that is read in blocks can do.
TileLimits tile_limits(const DagNode& product, const Machine& machine);

/// Of the sum of a product.
DType sum_type(const DagNode& product);

/// Whether the sum of a product runs element by element, in registers: floats in full precision.
bool sums_elements(const DagNode& product);

}  // namespace kiln::fusion
