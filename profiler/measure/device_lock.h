// One process at a time measures on a device: a second one would be in the first one's times.
#pragma once
#include <functional>
#include <string>

#include "kiln/device.h"
#include "kiln/result.h"
#include "support/fd.h"

namespace kiln::profiler {

/// A lock of this host that is held while it lives. The system takes it back from a process that dies. It binds only
/// those who ask for it, and only processes of this user.
class DeviceLock {
 public:
  /// Waits until nobody else holds the lock of that device. A GPU is known by its PCI bus, so that cuda:0 of one
  /// process may be cuda:1 of another; the CPU has one lock. `on_wait` is called once when there is something to wait
  /// for; `should_stop` is asked meanwhile: kInterrupted. kIo: there is no folder for it.
  static Result<DeviceLock> take(const Device& device, const std::function<bool()>& should_stop,
                                 const std::function<void()>& on_wait);

  /// $XDG_RUNTIME_DIR/kiln, else /tmp/kiln-UID.
  static std::string folder();

 private:
  explicit DeviceLock(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

}  // namespace kiln::profiler
