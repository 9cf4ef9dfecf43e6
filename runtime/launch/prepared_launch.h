// A launch whose arguments were bound once: what callers repeat with other addresses of the same specialisation.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kiln/kernel.h"
#include "runtime/device/device.h"

namespace kiln::runtime {

struct LaunchedAs;

struct PreparedLaunch {
  std::shared_ptr<DeviceImpl> device;  // outlives `loaded`
  std::shared_ptr<LoadedKernel> loaded;
  std::shared_ptr<const LaunchedAs> launched_as;  // keeps what the code refers to
  Grid grid = {1, 1, 1};
  std::vector<uint64_t> slots;
  std::vector<int> slot_of_param;  // the slot of each tensor's address; of other parameters it says nothing

  /// `own_slots` in place of `slots`: addresses as aligned as those that it was prepared with.
  Status launch(const uint64_t* own_slots, StreamImpl& stream) const {
    return device->backend().launch(*loaded, grid, own_slots, stream);
  }
};

/// Compiles and loads where needed, and launches nothing. kValue: a grid with a 0 or beyond the device's limits.
Result<PreparedLaunch> prepare_launch(const Kernel& kernel, const std::array<int64_t, 3>& grid,
                                      std::span<const std::optional<Arg>> args, const LaunchOptions& options);

}  // namespace kiln::runtime
