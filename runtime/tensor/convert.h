// Converting elements on the host, as kernels of expressions convert. To float rounds to nearest even (fp8 saturates).
// Float to integer cuts off and saturates to int32 (unsigned and 64-bit types: int64, uint64), of which a narrower type
// keeps the low bits: 300.0 is 44 as int8, -1.0 is 255 as uint8; NaN is 0. Integers wrap, anything to bool is != 0.
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
