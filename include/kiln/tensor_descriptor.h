// A tensor that kernels read and write in blocks: what Triton's host side calls a TensorDescriptor.
#pragma once
#include <cstdint>
#include <vector>

#include "kiln/tensor.h"

namespace kiln {

struct TensorDescriptor {
  Tensor tensor;                     // whose first element is the described tensor's
  std::vector<int64_t> shape;        // elements outside read as 0 and are not written
  std::vector<int64_t> strides;      // in elements; the last is 1
  std::vector<int32_t> block_shape;  // powers of two

  /// kValue or kType, with an alternative, when the hardware does not support it: 1 to 5 dimensions, a base address and
  /// strides that are multiples of 16 bytes, a last stride of 1, at least 16 bytes in a row of a block.
  static Result<TensorDescriptor> make(const Tensor& tensor, std::vector<int64_t> shape, std::vector<int64_t> strides,
                                       std::vector<int64_t> block_shape);
  /// The whole tensor, with its own strides.
  static Result<TensorDescriptor> from_tensor(const Tensor& tensor, std::vector<int64_t> block_shape);
};

}  // namespace kiln
