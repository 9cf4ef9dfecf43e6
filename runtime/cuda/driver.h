// The CUDA driver, opened at run time: a table of its entry points, and how its errors read.
#pragma once
#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

#include "kiln/result.h"
#include "support/dynlib.h"

namespace kiln::runtime {

struct Driver {
  /// Opens and initialises the driver. kDevice, one sentence each: no driver, one older than CUDA 12.0, one that lacks
  /// an entry point, no GPU, no permission to open the GPU's device files. KILN_CUDA_LIBRARY names another library.
  static Result<std::shared_ptr<const Driver>> open();
  /// The process's own. A failed attempt is repeated, since its cause may go away.
  static Result<std::shared_ptr<const Driver>> shared();

  /// kDevice (kMemory for CUDA_ERROR_OUT_OF_MEMORY): "cuMemAlloc(&p, n) failed: CUDA_ERROR_… (its description)".
  Diagnostic failure(CUresult code, std::string_view call) const;
  std::string error_name(CUresult code) const;
  /// "580.159" from the kernel module, else the CUDA version that the driver supports: "CUDA 13.0".
  std::string version_text() const;

  DynLib library;
  int cuda_version = 0;  // 13000 for CUDA 13.0
#define KILN_CU(entry) decltype(&::entry) entry = nullptr;
#define KILN_CU_AS(entry, symbol) KILN_CU(entry)
#include "runtime/cuda/driver.def"
#undef KILN_CU_AS
#undef KILN_CU
};

/// Returns the failure of a driver call from the enclosing function. `driver` is a pointer to Driver.
#define KILN_CU_TRY(driver, call)                                                                                   \
  do {                                                                                                              \
    if (CUresult kiln_code = (driver)->call; kiln_code != CUDA_SUCCESS) return (driver)->failure(kiln_code, #call); \
  } while (0)

}  // namespace kiln::runtime
