// Hugging Face's .safetensors files: a line of JSON with each tensor's dtype, shape and place, then their bytes
// (https://github.com/huggingface/safetensors#format).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/files/input_file.h"

namespace kiln::runtime {

struct Safetensors {
  std::vector<NamedTensor> tensors;                           // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;  // texts under their names
};

/// Every dtype of tensors has a name there. kValue for names that are not distinct; kIo.
Status save_safetensors(const Safetensors& content, const std::string& path);
/// kIo for what the format forbids: bytes that belong to no tensor or to two, sizes that are not those of the shape,
/// the same name twice. kUnsupported for dtypes that tensors do not have.
/// Reads its metadata alone.
Result<std::vector<std::pair<std::string, std::string>>> load_safetensors_metadata(const std::string& path);
Result<Safetensors> load_safetensors(const Device& device, const std::string& path);

}  // namespace kiln::runtime
