#if KILN_HAS_CUDA

#include "runtime/cuda/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include "support/diag.h"
#include "support/knobs.h"

namespace kiln::runtime {
namespace {

constexpr int kOldestCuda = 12000;

std::string cuda_text(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

std::vector<std::string> library_names() {
  if (std::string path = knob(Knob::kCudaLibrary); !path.empty()) return {path};
  // The loader's own search, then containers' usual mount, then Windows' driver under WSL.
  return {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
}

// Why cuInit found nothing to use, in words; empty when the device files say nothing.
std::string permission_problem() {
  for (const char* file : {"/dev/nvidiactl", "/dev/nvidia0"})
    if (access(file, F_OK) == 0 && access(file, R_OK | W_OK) != 0)
      return fmt::format("no permission to use the GPU: cannot open {}: {}", file, std::strerror(errno));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open() {
  auto driver = std::make_shared<Driver>();
  KILN_TRY(driver->library, DynLib::open(library_names(), "CUDA driver"));
  const DynLib& lib = driver->library;
  // Asked first: an old driver is named by its version, not by the entry point that it happens to lack.
  if (auto get_version = lib.function<decltype(&::cuDriverGetVersion)>("cuDriverGetVersion")) {
    if (get_version(&driver->cuda_version) == CUDA_SUCCESS && driver->cuda_version < kOldestCuda)
      return error(ErrorKind::kDevice, "the NVIDIA driver is too old: it supports {}, and Kiln needs {} or newer",
                   cuda_text(driver->cuda_version), cuda_text(kOldestCuda));
  }
  const char* missing = nullptr;
#define KILN_CU_AS(entry, symbol) \
  if (!(driver->entry = lib.function<decltype(&::entry)>(symbol)) && !missing) missing = symbol;
#define KILN_CU_STRING(text) #text
#define KILN_CU(entry) KILN_CU_AS(entry, KILN_CU_STRING(entry))
#include "runtime/cuda/driver.def"
#undef KILN_CU
#undef KILN_CU_STRING
#undef KILN_CU_AS
  if (missing)
    return error(ErrorKind::kDevice, "the CUDA driver {} lacks {}: install an NVIDIA driver for {} or newer",
                 lib.path(), missing, cuda_text(kOldestCuda));
  CUresult code = driver->cuInit(0);
  if (code == CUDA_SUCCESS) return std::shared_ptr<const Driver>(driver);
  if (std::string why = permission_problem(); !why.empty()) return error(ErrorKind::kDevice, "{}", why);
  if (code == CUDA_ERROR_NO_DEVICE) return error(ErrorKind::kDevice, "the CUDA driver finds no GPU");
  return driver->failure(code, "cuInit(0)");
}

std::string Driver::error_name(CUresult code) const {
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) != CUDA_SUCCESS || !name) return fmt::format("CUDA error {}", static_cast<int>(code));
  return name;
}

Diagnostic Driver::failure(CUresult code, std::string_view call) const {
  const char* description = nullptr;
  if (cuGetErrorString(code, &description) != CUDA_SUCCESS || !description) description = "no description";
  ErrorKind kind = code == CUDA_ERROR_OUT_OF_MEMORY ? ErrorKind::kMemory : ErrorKind::kDevice;
  return error(kind, "{} failed: {} ({})", call, error_name(code), description);
}

Result<std::shared_ptr<const Driver>> Driver::shared() {
  static std::mutex mutex;
  static auto* opened = new std::shared_ptr<const Driver>;  // never destroyed: devices may outlive our statics
  std::lock_guard lock(mutex);
  if (!*opened) {
    KILN_TRY(*opened, open());
  }
  return *opened;
}

std::string Driver::version_text() const {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Thu …", also "… Open Kernel Module for x86_64  580.…"
  std::ifstream in("/proc/driver/nvidia/version");
  std::string line;
  std::getline(in, line);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return cuda_text(cuda_version);
}

}  // namespace kiln::runtime

#endif
