#include "kiln/tensor_descriptor.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "runtime/device/device.h"
#include "support/diag.h"
#include "support/tensor_map.h"

namespace kiln {

namespace {

// Of a tile, as Triton's TRITON_MAX_TENSOR_NUMEL.
constexpr int64_t kMostElements = 1 << 20;

std::string text(const auto& list) { return fmt::format("[{}]", fmt::join(list, ", ")); }

}  // namespace

Result<TensorDescriptor> TensorDescriptor::make(const Tensor& tensor, std::vector<int64_t> shape,
                                                std::vector<int64_t> strides, std::vector<int64_t> block_shape) {
  if (!tensor || tensor.is_freed()) return error(ErrorKind::kValue, "a tensor descriptor of no tensor");
  const size_t rank = shape.size();
  if (rank < 1 || rank > kTensorMapDims || strides.size() != rank || block_shape.size() != rank)
    return with_note(error(ErrorKind::kType, "a tensor descriptor of shape {}, strides {} and block_shape {}",
                           text(shape), text(strides), text(block_shape)),
                     "help: all three have one entry for each of 1 to 5 dimensions");
  const int64_t size = size_of(tensor.dtype());
  TensorDescriptor out{tensor, std::move(shape), std::move(strides), {}};
  int64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = out.shape[d], block = block_shape[d];
    if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
      return error(ErrorKind::kValue, "dimension {} of a tensor descriptor is {}, and must fit in 31 bits", d, extent);
    if (block < 1 || block > kMostElements || !std::has_single_bit(static_cast<uint64_t>(block)) ||
        (elements *= block) > kMostElements)
      return error(ErrorKind::kValue, "block_shape {} must be of powers of two, with at most {} elements",
                   text(block_shape), kMostElements);
    out.block_shape.push_back(static_cast<int32_t>(block));
    // cuTensorMapEncodeTiled takes strides of whole 16 bytes, and the innermost dimension without one.
    if (d + 1 < rank && out.strides[d] * size % kTensorMapAlignment != 0)
      return with_note(
          error(ErrorKind::kValue, "stride {} of a tensor descriptor is {} bytes, and must be a multiple of {}", d,
                out.strides[d] * size, kTensorMapAlignment),
          "help: pad the rows: a tensor with a longer last dimension, of which the descriptor takes a part");
  }
  if (out.strides.back() != 1)
    return with_note(
        error(ErrorKind::kValue, "the last stride of a tensor descriptor is {}, and must be 1", out.strides.back()),
        "help: describe the transposed tensor, and transpose the loaded block with .T");
  // A box of TMA has whole 16 bytes along its innermost dimension.
  if (block_shape.back() * size < kTensorMapAlignment)
    return error(ErrorKind::kValue, "the last dimension of block_shape {} has {} bytes, and must have at least {}",
                 text(block_shape), block_shape.back() * size, kTensorMapAlignment);
  if (tensor.address() % kTensorMapAlignment != 0)
    return error(ErrorKind::kValue, "the tensor of a descriptor must start at a multiple of {} bytes",
                 kTensorMapAlignment);
  return out;
}

Result<TensorDescriptor> TensorDescriptor::from_tensor(const Tensor& tensor, std::vector<int64_t> block_shape) {
  if (!tensor) return error(ErrorKind::kValue, "a tensor descriptor of no tensor");
  return make(tensor, {tensor.shape().begin(), tensor.shape().end()},
              {tensor.strides().begin(), tensor.strides().end()}, std::move(block_shape));
}

}  // namespace kiln
