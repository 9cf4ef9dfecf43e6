#if KILN_HAS_CUDA

#include "runtime/cuda/fill_memory.h"

#include <algorithm>
#include <utility>

#include "support/diag.h"

namespace kiln::runtime {

namespace {

/// The first ones as two columns of a matrix with rows of 8 bytes, for which the driver takes long (an H100 2.6 ms
/// for 2^21 of them); then copies of what is there, each twice as large as the last.
FillCall fill_pairs(const Driver& driver, CUdeviceptr target, unsigned low, unsigned high, size_t n, CUstream stream) {
  constexpr size_t kFirst = 2048;
  const size_t first = std::min(n, kFirst);
  FillCall last = {};
  for (auto [column, word] : {std::pair(target, low), std::pair(target + 4, high)}) {
    last = {driver.cuMemsetD2D32Async(column, 8, word, 1, first, stream),
            "cuMemsetD2D32Async(target, 8, word, 1, n, stream)"};
    if (last.code != CUDA_SUCCESS) return last;
  }
  for (size_t there = first; there < n && last.code == CUDA_SUCCESS; there *= 2)
    last = {driver.cuMemcpyDtoDAsync(target + 8 * there, target, 8 * std::min(there, n - there), stream),
            "cuMemcpyDtoDAsync(target, source, bytes, stream)"};
  return last;
}

}  // namespace

FillCall fill_memory(const Driver& driver, CUdeviceptr target, uint64_t pattern, int element_bytes, size_t n,
                     CUstream stream) {
  const auto low = static_cast<unsigned>(pattern), high = static_cast<unsigned>(pattern >> 32);
  switch (element_bytes) {
    case 1:
      return {driver.cuMemsetD8Async(target, static_cast<unsigned char>(pattern), n, stream),
              "cuMemsetD8Async(target, value, n, stream)"};
    case 2:
      return {driver.cuMemsetD16Async(target, static_cast<unsigned short>(pattern), n, stream),
              "cuMemsetD16Async(target, value, n, stream)"};
    case 4:
      return {driver.cuMemsetD32Async(target, low, n, stream), "cuMemsetD32Async(target, value, n, stream)"};
    case 8:
      if (low == high)
        return {driver.cuMemsetD32Async(target, low, 2 * n, stream), "cuMemsetD32Async(target, value, 2 * n, stream)"};
      return fill_pairs(driver, target, low, high, n, stream);
    default:
      KILN_UNREACHABLE("fill of {}-byte elements", element_bytes);
  }
}

}  // namespace kiln::runtime

#endif
