#include "kiln/cuda_launch.h"

#include "runtime/cuda/function_launch.h"
#include "runtime/jit/image.h"
#include "runtime/jit/jit.h"
#include "support/diag.h"

namespace kiln {

namespace runtime {
struct CudaLauncherImpl {
  std::string name;
  size_t params = 0;
  int64_t num_ctas = 1;
  std::unique_ptr<FunctionLaunch> code;
};
}  // namespace runtime

Result<CudaLauncher> CudaLauncher::make(const Image& image) {
  if (!image) return error(ErrorKind::kValue, "a launcher needs an image, got an empty handle");
  CudaLauncher out;
  out.impl_ = std::make_shared<runtime::CudaLauncherImpl>();
  out.impl_->name = image.info().name;
  out.impl_->params = image.params().size();
  out.impl_->num_ctas = image.info().num_ctas;
  KILN_TRY(out.impl_->code, runtime::make_function_launch(runtime::image_of(image.impl()->kernel)));
  return out;
}

Status CudaLauncher::launch(void* function, std::array<int64_t, 3> grid, std::span<const uint64_t> slots, void* stream,
                            bool cooperative) const {
  const runtime::CudaLauncherImpl& impl = *impl_;
  if (slots.size() != impl.params)
    return error(ErrorKind::kLaunch, "kernel '{}' has {} parameters, got {} slots", impl.name, impl.params,
                 slots.size());
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return {};
  if (grid[0] < 0 || grid[0] > INT32_MAX / impl.num_ctas || grid[1] < 0 || grid[1] > 65535 || grid[2] < 0 ||
      grid[2] > 65535)
    return error(ErrorKind::kLaunch,
                 "kernel '{}': a grid of {} x {} x {} programs, and a GPU takes {} x 65535 x 65535 at most", impl.name,
                 grid[0], grid[1], grid[2], INT32_MAX / impl.num_ctas);
  return impl.code->launch(function, grid, slots.data(), stream, cooperative);
}

Result<uint64_t> CudaLauncher::device_address(uint64_t address) const {
  return address ? impl_->code->device_address(address) : Result<uint64_t>(uint64_t{0});
}

}  // namespace kiln
