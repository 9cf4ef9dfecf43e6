// The second code of a kernel on one GPU (support/roomy_code.h): chosen by a launch's grid, loaded when it first is.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/cuda/driver.h"
#include "runtime/device/backend.h"

namespace kiln::runtime {

class RoomyKernel {
 public:
  /// Of an image with one, on a GPU of so many SMs.
  RoomyKernel(const KernelImage& image, int sms);

  bool takes(const Grid& blocks) const { return fits_at_once(blocks, room_); }
  /// Null when it did not load, which costs nothing but speed and is not tried again; then the first call has the
  /// error. Thread-safe, and without a lock once it is loaded.
  Result<const LoadedKernel*> load(Backend& backend, const Driver& driver);

 private:
  const uint32_t room_;  // blocks that run at once
  std::atomic<bool> tried_{false};
  std::mutex mutex_;
  KernelImage image_;                     // until it was tried
  std::shared_ptr<LoadedKernel> loaded_;  // written before tried_
};

}  // namespace kiln::runtime
