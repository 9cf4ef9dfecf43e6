// Fills of a GPU's memory with one element, by the driver's calls.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/cuda/driver.h"

namespace kiln::runtime {

/// A call of the driver: its last one, or the one that failed.
struct FillCall {
  CUresult code;
  const char* call;  // its text
};

/// `n` elements of 1, 2, 4 or 8 bytes, each the low bytes of `pattern`.
FillCall fill_memory(const Driver& driver, CUdeviceptr target, uint64_t pattern, int element_bytes, size_t n,
                     CUstream stream);

}  // namespace kiln::runtime
