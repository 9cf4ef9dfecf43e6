// NumPy's .npy files: one tensor each, its elements in row-major order after a line of text.
#pragma once
#include <string>

#include "kiln/tensor.h"

namespace kiln::runtime {

/// Writes a tensor as NumPy would, version 1.0. kUnsupported for dtypes that NumPy has no name for (bf16, fp8); kIo.
Status save_npy(const Tensor& tensor, const std::string& path);
/// Reads one onto a device. kIo for a file that is no .npy file or ends too early; kUnsupported for other byte orders
/// and for dtypes that tensors do not have.
Result<Tensor> load_npy(const Device& device, const std::string& path);

}  // namespace kiln::runtime
