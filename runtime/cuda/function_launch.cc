#include "runtime/cuda/function_launch.h"

#include "runtime/cuda/cuda_backend.h"

#if !KILN_HAS_CUDA

namespace kiln::runtime {

Result<std::unique_ptr<FunctionLaunch>> make_function_launch(const KernelImage&) {
  return std::move(cuda_device_count().error());
}

}  // namespace kiln::runtime

#else

#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/tensor_maps.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

class DriverFunctionLaunch : public FunctionLaunch {
 public:
  DriverFunctionLaunch(std::shared_ptr<const Driver> driver, const KernelImage& image)
      : driver_(std::move(driver)),
        name_(image.name),
        params_(static_cast<size_t>(image.num_params)),
        threads_(static_cast<unsigned>(32 * (image.num_warps + image.extra_warps))),
        shared_bytes_(static_cast<unsigned>(image.shared_bytes)),
        num_ctas_(image.num_ctas),
        launch_pdl_(image.launch_pdl) {
    driver_->cuCtxGetCurrent(&context_);
    if (!image.tensor_maps.empty())
      tensor_maps_ = std::make_unique<TensorMaps>(image.name, image.tensor_maps, image.num_params);
  }

  Status launch(void* function, const std::array<int64_t, 3>& grid, const uint64_t* slots, void* stream,
                bool cooperative) override {
    constexpr size_t kInline = 64;
    void* few[kInline];
    std::vector<void*> many;
    const size_t maps_count = tensor_maps_ ? static_cast<size_t>(tensor_maps_->count()) : 0;
    void** params = few;
    if (params_ + maps_count > kInline) many.resize(params_ + maps_count), params = many.data();
    for (size_t i = 0; i < params_; ++i) params[i] = const_cast<uint64_t*>(slots + i);
    EncodedMaps maps;
    if (tensor_maps_) {
      KILN_TRY(maps, tensor_maps_->encode(*driver_, slots, [this](bool) { return empty_tensor(); }));
      for (size_t i = 0; i < maps_count; ++i) params[params_ + i] = const_cast<CUtensorMap*>(&(*maps)[i]);
    }
    CUlaunchAttribute attributes[2] = {};
    CUlaunchConfig config = {};
    // A program of a kernel with num_ctas is a cluster of so many blocks, side by side along x.
    config.gridDimX = static_cast<unsigned>(grid[0] * num_ctas_);
    config.gridDimY = static_cast<unsigned>(grid[1]), config.gridDimZ = static_cast<unsigned>(grid[2]);
    config.blockDimX = threads_, config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shared_bytes_;
    config.hStream = static_cast<CUstream>(stream);
    config.attrs = attributes;
    if (launch_pdl_) {
      CUlaunchAttribute& early = attributes[config.numAttrs++];
      // The kernel may begin before the one in front of it on the stream has ended, and waits where it must.
      early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      early.value.programmaticStreamSerializationAllowed = 1;
    }
    if (cooperative) {
      CUlaunchAttribute& together = attributes[config.numAttrs++];
      together.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      together.value.cooperative = 1;
    }
    auto put = [&] { return driver_->cuLaunchKernelEx(&config, static_cast<CUfunction>(function), params, nullptr); };
    CUresult code = put();
    if (code == CUDA_SUCCESS) [[likely]]
      return {};
    // Nearly every thread has a context. It is looked for only where a call has failed.
    if (has_made_current()) code = put();
    if (code == CUDA_SUCCESS) return {};
    Diagnostic d = driver_->failure(code, "cuLaunchKernelEx");
    return error(d.kind, "kernel '{}': {}", name_, d.message);
  }

  Result<uint64_t> device_address(uint64_t address) override {
    CUdeviceptr out = 0;
    auto ask = [&] { return driver_->cuPointerGetAttribute(&out, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address); };
    CUresult code = ask();
    if (code != CUDA_SUCCESS && has_made_current()) code = ask();
    if (code == CUDA_SUCCESS) return static_cast<uint64_t>(out);
    if (code == CUDA_ERROR_INVALID_VALUE)
      return error(ErrorKind::kValue, "kernels cannot reach the memory at {:#x}", address);
    return driver_->failure(code, "cuPointerGetAttribute(&out, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address)");
  }

 private:
  /// On a thread that had no context: a call that failed may then be made again.
  bool has_made_current() const {
    CUcontext current = nullptr;
    return context_ && driver_->cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current &&
           driver_->cuCtxSetCurrent(context_) == CUDA_SUCCESS;
  }
  /// What a tensor map of a tensor without elements points to; never freed, and nothing of it is used.
  Result<uint64_t> empty_tensor() {
    constexpr size_t kBytes = 512;
    if (!empty_) KILN_CU_TRY(driver_, cuMemAlloc(&empty_, kBytes));
    return static_cast<uint64_t>(empty_);
  }

  std::shared_ptr<const Driver> driver_;
  std::string name_;
  size_t params_;
  unsigned threads_, shared_bytes_;
  int64_t num_ctas_;
  bool launch_pdl_;
  std::unique_ptr<TensorMaps> tensor_maps_;
  CUcontext context_ = nullptr;
  CUdeviceptr empty_ = 0;  // under the lock of the tensor maps
};

}  // namespace

Result<std::unique_ptr<FunctionLaunch>> make_function_launch(const KernelImage& image) {
  KILN_TRY(std::shared_ptr<const Driver> driver, Driver::shared());
  return std::unique_ptr<FunctionLaunch>(std::make_unique<DriverFunctionLaunch>(std::move(driver), image));
}

}  // namespace kiln::runtime

#endif
