// The elements of a block that a tensor descriptor names, as pointers.
#pragma once
#include "compiler/ir/builder.h"

namespace kiln::ir {

struct BlockElements {
  Value* pointers;
  Value* inside;  // i1: within the tensor
};

/// Elements of the block at `offsets` of the tensor that `descriptor` (a make_descriptor) describes. The block may lack
/// leading dimensions of the tensor, in which it has one element. An offset is i32: where the block begins along its
/// dimension, or a vector of the places there, one for each of the block's.
BlockElements block_elements(Builder& b, const Op& descriptor, const Shape& block, std::span<Value* const> offsets);

}  // namespace kiln::ir
