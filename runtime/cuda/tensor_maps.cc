#if KILN_HAS_CUDA

#include "runtime/cuda/tensor_maps.h"

#include <algorithm>
#include <array>

#include "runtime/cuda/tensor_map_arguments.h"

namespace kiln::runtime {

static_assert(CU_TENSOR_MAP_DATA_TYPE_UINT16 == 1 && CU_TENSOR_MAP_DATA_TYPE_UINT32 == 2 &&
              CU_TENSOR_MAP_DATA_TYPE_INT32 == 3 && CU_TENSOR_MAP_DATA_TYPE_INT64 == 5 &&
              CU_TENSOR_MAP_DATA_TYPE_FLOAT16 == 6 && CU_TENSOR_MAP_DATA_TYPE_FLOAT64 == 8 &&
              CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 == 9 && CU_TENSOR_MAP_SWIZZLE_32B == 1 &&
              CU_TENSOR_MAP_SWIZZLE_128B == 3);

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

namespace {

/// What the L2 fetches for rows that begin within its lines of 128 bytes: more makes products of such rows slower by an
/// eighth (H100), and whole lines no faster.
CUtensorMapL2promotion promotion(const TensorMapArguments& of) {
  const auto rows = std::span(of.strides).first(of.rank > 0 ? static_cast<size_t>(of.rank) - 1 : 0);
  const bool lines = of.address % 128 == 0 && std::ranges::all_of(rows, [](uint64_t s) { return s % 128 == 0; });
  return lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
}

}  // namespace

Status TensorMaps::encode_one(const Driver& driver, const TensorMapRecipe& recipe, std::span<const uint64_t> slots,
                              const std::function<Result<uint64_t>(bool)>& empty_tensor, CUtensorMap& map) const {
  KILN_TRY(TensorMapArguments of, tensor_map_arguments(kernel_, recipe, slots));
  if (of.empty) {
    KILN_TRY(of.address, empty_tensor(recipe.stored));
  }
  std::array<cuuint32_t, 5> element_strides;
  element_strides.fill(1);
  // cuuint64_t is another name for the 64 bits of uint64_t.
  const CUresult code = driver.cuTensorMapEncodeTiled(
      &map, static_cast<CUtensorMapDataType>(of.data_type), static_cast<cuuint32_t>(of.rank),
      reinterpret_cast<void*>(of.address), of.sizes.data(), of.strides.data(), of.box.data(), element_strides.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(of.swizzle), promotion(of),
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS)
    return tensor_map_refused(kernel_, recipe, driver.failure(code, "cuTensorMapEncodeTiled").message);
  return {};
}

}  // namespace kiln::runtime

#endif
