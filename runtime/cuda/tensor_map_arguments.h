// From a kernel's recipe and the arguments of a launch to those of cuTensorMapEncodeTiled: arithmetic, without the
// driver.
#pragma once
#include <span>
#include <string_view>

#include "kiln/image.h"
#include "kiln/result.h"
#include "support/tensor_map.h"

namespace kiln::runtime {

/// kLaunch, naming the tensor: its base, its strides or its sizes are such that TMA cannot reach it.
Result<TensorMapArguments> tensor_map_arguments(std::string_view kernel, const TensorMapRecipe& recipe,
                                                std::span<const uint64_t> slots);
Diagnostic tensor_map_refused(std::string_view kernel, const TensorMapRecipe& recipe, std::string_view why);

/// What an element is to a tensor map: the part of its name behind CU_TENSOR_MAP_DATA_TYPE_.
std::string_view tensor_map_type_name(DType dtype);

}  // namespace kiln::runtime
