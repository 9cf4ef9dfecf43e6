// NumPy's .npy files: one tensor each, its elements in row-major order after a line of text. And .npz: a zip archive of
// them, not compressed, as numpy.savez writes it.
#pragma once
#include <string>
#include <vector>

#include "runtime/files/input_file.h"

namespace kiln::runtime {

/// Writes a tensor as NumPy would, version 1.0. kUnsupported for dtypes that NumPy has no name for (bf16, fp8); kIo.
Status save_npy(const Tensor& tensor, const std::string& path);
/// Reads one onto a device, of either byte order. kIo for a file that is no .npy file or ends too early; kUnsupported
/// for dtypes that tensors do not have.
Result<Tensor> load_npy(const Device& device, const std::string& path);

/// What stands before the elements of an array in that file.
Result<std::string> npy_header(const Tensor& tensor);
/// An array that lies between two places of a file.
Result<Tensor> read_npy(const Device& device, const InputFile& file, uint64_t begin, uint64_t end);

/// Names must differ and be file names. As save_npy.
Status save_npz(std::span<const NamedTensor> tensors, const std::string& path);
/// In the order of the archive, checksums compared. kIo for a file that is no zip archive or is damaged, kUnsupported
/// for one that is compressed.
Result<std::vector<NamedTensor>> load_npz(const Device& device, const std::string& path);

}  // namespace kiln::runtime
