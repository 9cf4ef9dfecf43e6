#include "runtime/launch/kernel_options.h"

#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln::runtime {

Status check_grid(std::string_view kernel, const std::array<int64_t, 3>& grid) {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] >= 0 && grid[axis] <= kMaxGrid[axis]) continue;
    return error(ErrorKind::kLaunch, "kernel '{}': grid ({}, {}, {}): axis {} must be from 0 to {}", kernel, grid[0],
                 grid[1], grid[2], axis, kMaxGrid[axis]);
  }
  return {};
}

Status check_options(std::string_view kernel, const LaunchOptions& options) {
  if (std::string wrong = wrong_option(options); !wrong.empty())
    return error(ErrorKind::kValue, "kernel '{}': {}", kernel, wrong);
  return {};
}

}  // namespace kiln::runtime
