#include "compiler/interp/tensor_block.h"

#include "compiler/interp/element.h"
#include "compiler/interp/eval.h"

namespace kiln::interp {

TensorBlock::TensorBlock(const ir::Type& descriptor, std::span<const uint64_t> tensor, std::span<const uint64_t> start)
    : shape(descriptor.shape), element_bytes(size_of(descriptor.dtype)), base(tensor[0]) {
  const size_t rank = shape.rank;
  for (size_t d = 0; d < rank; ++d) {
    size[d] = int_value(DType::kI32, tensor[1 + d]);
    stride[d] = int_value(DType::kI64, tensor[1 + rank + d]);
    first[d] = int_value(DType::kI32, start[d]);
  }
}

std::vector<uint64_t> TensorBlock::addresses() const {
  std::vector<uint64_t> out(static_cast<size_t>(shape.numel()), 0);
  std::array<int64_t, ir::kMaxRank> index{};
  for (uint64_t& address : out) {
    bool inside = true;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.rank; ++d) {
      const int64_t at = first[d] + index[d];
      inside = inside && at >= 0 && at < size[d];
      offset += at * stride[d];
    }
    if (inside) address = base + static_cast<uint64_t>(offset * element_bytes);
    for (size_t d = shape.rank; d > 0; --d) {
      if (++index[d - 1] < shape[static_cast<int>(d - 1)]) break;
      index[d - 1] = 0;
    }
  }
  return out;
}

}  // namespace kiln::interp
