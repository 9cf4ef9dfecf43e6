#include "runtime/cuda/tensor_map_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/diag.h"

namespace kiln::runtime {

namespace {

// CUDA driver API, cuTensorMapEncodeTiled.
constexpr int64_t kMaxSize = int64_t{1} << 32, kMaxStride = int64_t{1} << 40;

}  // namespace

std::string_view tensor_map_type_name(DType dtype) {
  // CUtensorMapDataType, in its order.
  static constexpr std::string_view kNames[] = {"UINT8", "UINT16",  "UINT32",  "INT32",   "UINT64",
                                                "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16"};
  return kNames[tensor_map_data_type(dtype)];
}

Diagnostic tensor_map_refused(std::string_view kernel, const TensorMapRecipe& recipe, std::string_view why) {
  return with_note(error(ErrorKind::kLaunch, "kernel '{}': TMA cannot {} tensor '{}': {}", kernel,
                         recipe.stored ? "write" : "read", recipe.name, why),
                   "help: rows and the first element must start at multiples of 16 bytes; pad the rows, or make a "
                   "contiguous copy");
}

Result<TensorMapArguments> tensor_map_arguments(std::string_view kernel, const TensorMapRecipe& recipe,
                                                std::span<const uint64_t> slots) {
  auto refuse = [&](const std::string& why) { return tensor_map_refused(kernel, recipe, why); };
  TensorMapArguments out;
  const size_t rank = recipe.box.size();
  const int64_t bytes = size_of(recipe.dtype);
  KILN_ASSERT(rank >= 1 && rank <= out.sizes.size());
  out.data_type = tensor_map_data_type(recipe.dtype);
  out.rank = static_cast<int>(rank);
  out.address = static_cast<uint64_t>(evaluate(recipe.base, slots));
  out.swizzle = tensor_map_swizzle(recipe.swizzle);
  out.stored = recipe.stored;
  for (size_t dim = 0; dim < rank; ++dim) {  // the driver counts from the innermost dimension
    const size_t d = rank - 1 - dim;
    const int64_t size = evaluate(recipe.sizes[d], slots), stride = evaluate(recipe.strides[d], slots);
    if (size < 0 || size > kMaxSize) return refuse(fmt::format("its dimension {} has {} elements", d, size));
    out.empty = out.empty || size == 0;
    out.sizes[dim] = static_cast<uint64_t>(std::max<int64_t>(size, 1));
    out.box[dim] = static_cast<uint32_t>(recipe.box[d]);
    if (dim == 0) {
      // A copy out writes whole units, past the end of a row too.
      if (recipe.stored && size * bytes % kTensorMapAlignment)
        return refuse(
            fmt::format("its rows have {} bytes, which is no multiple of {}", size * bytes, kTensorMapAlignment));
      if (stride != 1) return refuse(fmt::format("the elements of its last dimension are {} apart", stride));
      continue;
    }
    out.strides[dim - 1] = kTensorMapAlignment;  // of one element nothing is a stride away
    if (size <= 1) continue;
    if (stride < 0 || stride >= kMaxStride / bytes || stride * bytes % kTensorMapAlignment)
      return refuse(fmt::format("its dimension {} has a stride of {} bytes, which is no multiple of {} below 2^40", d,
                                stride * bytes, kTensorMapAlignment));
    out.strides[dim - 1] = static_cast<uint64_t>(stride * bytes);
  }
  if (out.empty)
    for (size_t dim = 0; dim < rank; ++dim) out.sizes[dim] = 1, out.strides[dim] = kTensorMapAlignment;
  else if (out.address % kTensorMapAlignment)
    return refuse(fmt::format("it starts at an address that is {} bytes off a multiple of {}",
                              out.address % kTensorMapAlignment, kTensorMapAlignment));
  return out;
}

}  // namespace kiln::runtime
