// Launches of functions that somebody else has loaded.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kiln/result.h"
#include "runtime/device/backend.h"

namespace kiln::runtime {

/// Of one image's code, in whatever context is current.
class FunctionLaunch {
 public:
  virtual ~FunctionLaunch() = default;
  virtual Status launch(void* function, const std::array<int64_t, 3>& grid, const uint64_t* slots, void* stream,
                        bool cooperative) = 0;
  virtual Result<uint64_t> device_address(uint64_t address) = 0;
};
/// kDevice, with one sentence, when CUDA cannot be used.
Result<std::unique_ptr<FunctionLaunch>> make_function_launch(const KernelImage& image);

}  // namespace kiln::runtime
