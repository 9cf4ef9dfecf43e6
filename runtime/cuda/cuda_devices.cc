// What the driver says of devices and contexts, before one of them becomes a backend.
#include "runtime/cuda/cuda_backend.h"
#include "support/diag.h"

#if !KILN_HAS_CUDA

namespace kiln::runtime {

Result<int> cuda_device_count() {
  return error(ErrorKind::kDevice,
               "this build of Kiln has no CUDA: it was built without CUDA's headers (set CUDA_HOME and build again)");
}
Result<ContextOwner> owner_of_cuda_context(void*) { return std::move(cuda_device_count().error()); }

}  // namespace kiln::runtime

#else

#include "runtime/cuda/driver.h"

namespace kiln::runtime {

Result<int> cuda_device_count() {
  KILN_TRY(std::shared_ptr<const Driver> driver, Driver::shared());
  int count = 0;
  KILN_CU_TRY(driver, cuDeviceGetCount(&count));
  return count;
}

Result<ContextOwner> owner_of_cuda_context(void* context) {
  KILN_TRY(std::shared_ptr<const Driver> driver, Driver::shared());
  CUcontext current = nullptr;
  KILN_CU_TRY(driver, cuCtxGetCurrent(&current));
  KILN_CU_TRY(driver, cuCtxSetCurrent(static_cast<CUcontext>(context)));
  CUdevice device = 0;
  const CUresult code = driver->cuCtxGetDevice(&device);
  KILN_CU_TRY(driver, cuCtxSetCurrent(current));
  if (code != CUDA_SUCCESS) return driver->failure(code, "cuCtxGetDevice(&device)");
  ContextOwner owner{.ordinal = device};  // a CUdevice is its ordinal
  unsigned flags = 0;
  int active = 0;
  KILN_CU_TRY(driver, cuDevicePrimaryCtxGetState(device, &flags, &active));
  if (!active) return owner;
  CUcontext primary = nullptr;
  KILN_CU_TRY(driver, cuDevicePrimaryCtxRetain(&primary, device));
  owner.is_primary = primary == context;
  KILN_CU_TRY(driver, cuDevicePrimaryCtxRelease(device));
  return owner;
}

}  // namespace kiln::runtime

#endif
