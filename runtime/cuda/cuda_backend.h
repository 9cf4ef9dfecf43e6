// The cuda:N devices, through the CUDA Driver API. Without CUDA's headers at build time all of these say so.
#pragma once
#include <memory>

#include "runtime/device/backend.h"

namespace kiln::runtime {

/// Number of GPUs; kDevice with one sentence when CUDA cannot be used.
Result<int> cuda_device_count();

/// In the caller's CUcontext, which outlives it; with null in the GPU's primary context, which is retained at the first
/// use. Makes no context. kDevice when there is no such GPU.
Result<std::unique_ptr<Backend>> make_cuda_backend(int ordinal, void* context = nullptr);

/// Of a CUcontext.
struct ContextOwner {
  int ordinal = 0;
  bool is_primary = false;
};
Result<ContextOwner> owner_of_cuda_context(void* context);

}  // namespace kiln::runtime
