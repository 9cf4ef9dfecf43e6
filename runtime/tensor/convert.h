// Converting elements on the host, as kernels convert: to float rounds to nearest even (fp8 saturates), float to
// integer truncates and saturates (NaN gives 0), integers wrap, anything to bool is != 0.
#pragma once
#include <cstdint>
#include <span>

#include "kiln/dtype.h"

namespace kiln::runtime {

/// `count` packed elements.
void convert_elements(DType from, const void* source, DType to, void* target, int64_t count);

/// Copies elements between two strided arrays of one shape. Strides are in elements and may be 0 in the source.
void copy_strided(void* target, std::span<const int64_t> target_strides, const void* source,
                  std::span<const int64_t> source_strides, std::span<const int64_t> shape, int element_bytes);

}  // namespace kiln::runtime
