// Validates a launch's grid and options, and derives those of the compiler and the backend.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "compiler/frontend/frontend.h"
#include "kiln/kernel.h"
#include "runtime/device/backend.h"
#include "runtime/launch/args.h"

namespace kiln::runtime {

inline constexpr std::array<int64_t, 3> kMaxGrid = {INT32_MAX, 65535, 65535};  // CUDA's, kept on the CPU too

/// Within the limits, and without a 0.
inline bool is_launchable(const std::array<int64_t, 3>& grid) {
  bool ok = true;
  for (size_t axis = 0; axis < 3; ++axis) ok &= grid[axis] >= 1 && grid[axis] <= kMaxGrid[axis];
  return ok;
}
inline Grid programs_of(const std::array<int64_t, 3>& grid) {
  return {static_cast<uint32_t>(grid[0]), static_cast<uint32_t>(grid[1]), static_cast<uint32_t>(grid[2])};
}
inline KeyEnd key_end(const Backend& backend, const LaunchOptions& options) { return {&backend, &options}; }
inline frontend::Options frontend_options(const LaunchOptions& options) { return frontend::options_of(options); }

/// kLaunch and kValue name the kernel; a 0 in the grid is allowed.
Status check_grid(std::string_view kernel, const std::array<int64_t, 3>& grid);
Status check_options(std::string_view kernel, const LaunchOptions& options);

}  // namespace kiln::runtime
