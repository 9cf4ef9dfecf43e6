// Large jobs of the runtime on a GPU, as kernels in Kiln's own language: random numbers, conversions and strided
// copies. Each does bit for bit what its C++ counterpart does on the CPU (random.cc, convert.cc); a test runs both on
// the CPU and compares.
#pragma once
#include <cstdint>

#include "kiln/tensor.h"
#include "runtime/tensor/random.h"

namespace kiln::runtime {

/// From this many bytes on, a kernel is worth its compilation; below, the work is done on the host and copied.
inline constexpr int64_t kDeviceKernelBytes = 1 << 14;

/// Their text, with the kernels random_normal, random_uniform, random_integer, convert and copy_strided.
const char* device_kernel_source();

/// Whether the kernels cover this; the rest is done on the host. They leave out conversions to fp8, which saturate in
/// kernels and not in torch (expressions write that out), and random integers of fp8 among which are larger ones.
bool has_random_kernel(const RandomSpec& spec);
bool has_convert_kernel(DType to);

/// Fills a contiguous tensor with elements [0, numel) of the sequence.
Status random_on_device(const Tensor& target, const RandomSpec& spec);
/// Both contiguous, of one shape, on one device.
Status convert_on_device(const Tensor& target, const Tensor& source);
/// Any strides, one shape and one element size; dtypes are taken as bits. The two must not overlap. One launch for up
/// to five dimensions that cannot be joined, several for more.
Status copy_on_device(const Tensor& target, const Tensor& source);

}  // namespace kiln::runtime
