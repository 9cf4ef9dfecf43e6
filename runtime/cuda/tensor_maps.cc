#if KILN_HAS_CUDA

#include "runtime/cuda/tensor_maps.h"

#include <algorithm>
#include <array>

#include "support/diag.h"

namespace kiln::runtime {

namespace {

// CUDA driver API, cuTensorMapEncodeTiled.
constexpr int64_t kMaxSize = int64_t{1} << 32, kMaxStride = int64_t{1} << 40;
constexpr size_t kMaxRank = 5;

CUtensorMapDataType data_type(DType t) {
  switch (t) {
    case DType::kI1:
    case DType::kI8:
    case DType::kU8:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case DType::kI16:
    case DType::kU16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case DType::kF16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::kBF16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::kI32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::kU32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case DType::kI64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::kU64:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case DType::kF32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::kF64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
  }
  KILN_UNREACHABLE("element type");
}

CUtensorMapSwizzle swizzle_mode(int bytes) {
  switch (bytes) {
    case 32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case 128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

}  // namespace

Result<EncodedMaps> TensorMaps::encode(const Driver& driver, const uint64_t* slots,
                                       const std::function<Result<uint64_t>(bool)>& empty_tensor) {
  const std::span<const uint64_t> args(slots, num_params_);
  std::lock_guard lock(mutex_);
  if (!last_ || !std::equal(args.begin(), args.end(), last_slots_.begin())) {
    std::vector<CUtensorMap> maps(recipes_.size());
    for (size_t i = 0; i < recipes_.size(); ++i)
      KILN_CHECK_OK(encode_one(driver, recipes_[i], args, empty_tensor, maps[i]));
    last_ = std::make_shared<const std::vector<CUtensorMap>>(std::move(maps));
    last_slots_.assign(args.begin(), args.end());
  }
  return last_;
}

Status TensorMaps::encode_one(const Driver& driver, const TensorMapRecipe& recipe, std::span<const uint64_t> slots,
                              const std::function<Result<uint64_t>(bool)>& empty_tensor, CUtensorMap& map) const {
  auto refuse = [&](std::string why) {
    return with_note(error(ErrorKind::kLaunch, "kernel '{}': TMA cannot {} tensor '{}': {}", kernel_,
                           recipe.stored ? "write" : "read", recipe.name, why),
                     "help: rows and the first element must start at multiples of 16 bytes; pad the rows, or make a "
                     "contiguous copy");
  };
  const size_t rank = recipe.box.size();
  const int64_t bytes = size_of(recipe.dtype);
  KILN_ASSERT(rank >= 1 && rank <= kMaxRank);
  std::array<cuuint64_t, kMaxRank> sizes{}, strides{};
  std::array<cuuint32_t, kMaxRank> box{}, element_strides{};
  auto address = static_cast<uint64_t>(evaluate(recipe.base, slots));
  bool empty = false;
  for (size_t dim = 0; dim < rank; ++dim) {  // the driver counts from the innermost dimension
    const size_t d = rank - 1 - dim;
    const int64_t size = evaluate(recipe.sizes[d], slots), stride = evaluate(recipe.strides[d], slots);
    if (size < 0 || size > kMaxSize) return refuse(fmt::format("its dimension {} has {} elements", d, size));
    empty = empty || size == 0;
    sizes[dim] = static_cast<cuuint64_t>(std::max<int64_t>(size, 1));
    box[dim] = static_cast<cuuint32_t>(recipe.box[d]);
    element_strides[dim] = 1;
    if (dim == 0) {
      // A copy out writes whole units, past the end of a row too.
      if (recipe.stored && size * bytes % kTensorMapAlignment)
        return refuse(
            fmt::format("its rows have {} bytes, which is no multiple of {}", size * bytes, kTensorMapAlignment));
      if (stride != 1) return refuse(fmt::format("the elements of its last dimension are {} apart", stride));
      continue;
    }
    strides[dim - 1] = kTensorMapAlignment;  // of one element nothing is a stride away
    if (size <= 1) continue;
    if (stride < 0 || stride >= kMaxStride / bytes || stride * bytes % kTensorMapAlignment)
      return refuse(fmt::format("its dimension {} has a stride of {} bytes, which is no multiple of {} below 2^40", d,
                                stride * bytes, kTensorMapAlignment));
    strides[dim - 1] = static_cast<cuuint64_t>(stride * bytes);
  }
  if (empty) {
    KILN_TRY(address, empty_tensor(recipe.stored));
    for (size_t dim = 0; dim < rank; ++dim) sizes[dim] = 1, strides[dim] = kTensorMapAlignment;
  }
  if (address % kTensorMapAlignment)
    return refuse(fmt::format("it starts at an address that is {} bytes off a multiple of {}",
                              address % kTensorMapAlignment, kTensorMapAlignment));
  const CUresult code = driver.cuTensorMapEncodeTiled(
      &map, data_type(recipe.dtype), static_cast<cuuint32_t>(rank), reinterpret_cast<void*>(address), sizes.data(),
      strides.data(), box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_mode(recipe.swizzle),
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS) return refuse(driver.failure(code, "cuTensorMapEncodeTiled").message);
  return {};
}

}  // namespace kiln::runtime

#endif
