#include "runtime/launch/kernel_options.h"

#include "support/diag.h"

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
  if (options.num_warps < 1 || options.num_warps > 32 || (options.num_warps & (options.num_warps - 1)))
    return error(ErrorKind::kValue, "kernel '{}': num_warps must be a power of two from 1 to 32, got {}", kernel,
                 options.num_warps);
  if (options.num_stages < 0 || options.num_stages > 255)
    return error(ErrorKind::kValue, "kernel '{}': num_stages must be from 0 to 255, got {}", kernel,
                 options.num_stages);
  if (options.num_ctas < 1 || options.num_ctas > 8 || (options.num_ctas & (options.num_ctas - 1)))
    return error(ErrorKind::kValue, "kernel '{}': num_ctas must be 1, 2, 4 or 8, got {}", kernel, options.num_ctas);
  return {};
}

frontend::Options frontend_options(const LaunchOptions& options) {
  frontend::Options result;
  result.num_warps = options.num_warps;
  result.num_stages = options.num_stages;
  result.num_ctas = options.num_ctas;
  result.launch_pdl = options.launch_pdl;
  return result;
}

}  // namespace kiln::runtime
