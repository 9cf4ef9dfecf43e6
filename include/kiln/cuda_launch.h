// Launches of CUfunctions that the caller has loaded from an image's code, in the context that is current. For programs
// that load, cache and time code by themselves and leave to Kiln what a launch needs: tensor maps, clusters, warps. The
// function serves every grid; a second code, as LoadedImage chooses, is not known here.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kiln/image.h"
#include "kiln/result.h"

namespace kiln {

namespace runtime {
struct CudaLauncherImpl;
}

class CudaLauncher {
 public:
  CudaLauncher() = default;
  /// Of an image for a GPU; one of Image::from_plan will do. Threads without a context get the one that is current now.
  static Result<CudaLauncher> make(const Image& image);
  explicit operator bool() const { return impl_ != nullptr; }

  /// `function` is a CUfunction of the image's code whose CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is set, and
  /// `stream` a CUstream. A grid of programs; one with a 0 launches nothing. One slot for each parameter: a pointer, or
  /// the low bytes of a number. Waits for nothing. `cooperative`: all blocks run at once, or the launch fails.
  Status launch(void* function, std::array<int64_t, 3> grid, std::span<const uint64_t> slots, void* stream,
                bool cooperative = false) const;
  /// The address by which kernels reach memory; kValue where they cannot (host memory that is not mapped).
  Result<uint64_t> device_address(uint64_t address) const;

 private:
  std::shared_ptr<runtime::CudaLauncherImpl> impl_;
};

}  // namespace kiln
