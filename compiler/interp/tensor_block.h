// A block of a strided tensor in global memory, as descriptors and the offsets of an access say it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::interp {

struct TensorBlock {
  /// `tensor` is what make_descriptor was given: the base, sizes and strides. `start` has the block's first element
  /// along each dimension (i32 bits).
  TensorBlock(const ir::Type& descriptor, std::span<const uint64_t> tensor, std::span<const uint64_t> start);

  /// Of each element of the block, the last dimension fastest; 0 where it lies outside of the tensor.
  std::vector<uint64_t> addresses() const;

  ir::Shape shape;  // of the block
  int element_bytes = 0;
  uint64_t base = 0;
  std::array<int64_t, ir::kMaxRank> size{}, stride{}, first{};  // in elements
};

}  // namespace kiln::interp
