#include "runtime/blas/library.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <vector>

#include "support/diag.h"
#include "support/knobs.h"
#include "support/process.h"

namespace kiln::runtime::blas {

namespace {

constexpr int kOldestMajor = 12;

// The toolkit's folders first: a newer library there is preferred to one that the loader happens to know.
std::vector<std::string> cuda_names(Knob override_knob, std::string_view stem) {
  if (std::string path = knob(override_knob); !path.empty()) return {path};
  const std::vector<std::string> roots = toolkit_roots();
  std::vector<std::string> names;
  for (std::string_view major : {"13", "12"}) {
    std::string file = fmt::format("{}.so.{}", stem, major);
    for (const std::string& root : roots) names.push_back(fmt::format("{}/lib64/{}", root, file));
    names.push_back(file);
  }
  return names;
}

std::vector<std::string> openblas_names() {
  if (std::string path = knob(Knob::kOpenBlasLibrary); !path.empty()) return {path};
  return {"libopenblas.so.0", "libopenblas.so"};
}

// The libraries that opened, by their first name. A failure is tried again: its cause may go away.
template <class T, class Open>
Result<std::shared_ptr<const T>> shared(const std::vector<std::string>& names, Open open) {
  static std::mutex mutex;
  static auto* opened = new std::map<std::string, std::shared_ptr<const T>>;  // never destroyed, as the libraries
  std::lock_guard lock(mutex);
  std::shared_ptr<const T>& slot = (*opened)[names.front()];
  if (!slot) {
    auto made = std::make_shared<T>();
    KILN_CHECK_OK(open(*made));
    slot = made;
  }
  return slot;
}

Diagnostic lacks(const Library& lib, std::string_view what, std::string_view symbol, std::string_view help) {
  return error(ErrorKind::kDevice, "{} {} lacks {}: {}", what, lib.library.path(), symbol, help);
}

// cuBLAS and cublasLt differ in their tables only.
template <class T>
Status check_version(T& lib, std::string_view what) {
  int version[3] = {};
  constexpr CublasProperty kParts[] = {CublasProperty::kMajor, CublasProperty::kMinor, CublasProperty::kPatch};
  for (int i = 0; i < 3; ++i)
    if (CublasStatus status = lib.get_property(kParts[i], &version[i]); status != CublasStatus::kSuccess)
      return error(ErrorKind::kDevice, "{} {} does not say its version (status {})", what, lib.library.path(),
                   static_cast<int>(status));
  lib.version = fmt::format("{}.{}.{}", version[0], version[1], version[2]);
  if (version[0] < kOldestMajor)
    return error(ErrorKind::kDevice, "{} {} is too old: it is version {}, and Kiln needs {}.0 or newer", what,
                 lib.library.path(), lib.version, kOldestMajor);
  return {};
}

ErrorKind kind_of(CublasStatus status) {
  switch (status) {
    case CublasStatus::kAllocFailed:
      return ErrorKind::kMemory;
    case CublasStatus::kNotSupported:
      return ErrorKind::kUnsupported;
    case CublasStatus::kSuccess:
    case CublasStatus::kNotInitialized:
    case CublasStatus::kInvalidValue:
    case CublasStatus::kArchMismatch:
    case CublasStatus::kExecutionFailed:
      break;
  }
  return ErrorKind::kDevice;
}

template <class T>
Diagnostic cublas_failure(const T& lib, CublasStatus status, std::string_view call) {
  return error(kind_of(status), "{} failed: {} ({})", call, lib.status_name(status), lib.status_string(status));
}

const char* const kInstallCublas = "install the libraries of CUDA 12 or newer";

}  // namespace

Result<std::shared_ptr<const Cublas>> Cublas::open() {
  std::vector<std::string> names = cuda_names(Knob::kCublasLibrary, "libcublas");
  return shared<Cublas>(names, [&](Cublas& lib) -> Status {
    // cuBLAS needs cublasLt, and finds one that is open already even where the loader's path does not lead to it.
    (void)CublasLt::open().ok();
    KILN_TRY(lib.library, DynLib::open(names, "cuBLAS", DynLib::Absent::kNameAll, DynLib::Wait::kUntilInterrupt));
    // Asked first: an old library is named by its version, not by the entry point that it happens to lack.
    lib.get_property = lib.library.function<decltype(lib.get_property)>("cublasGetProperty");
    if (lib.get_property) KILN_CHECK_OK(check_version(lib, "cuBLAS"));
#define KILN_CUBLAS(member, symbol, ...)                                   \
  if (!(lib.member = lib.library.function<decltype(lib.member)>(#symbol))) \
    return lacks(lib, "cuBLAS", #symbol, kInstallCublas);
#include "runtime/blas/blas.def"
    return {};
  });
}

Result<std::shared_ptr<const CublasLt>> CublasLt::open() {
  std::vector<std::string> names = cuda_names(Knob::kCublasLtLibrary, "libcublasLt");
  return shared<CublasLt>(names, [&](CublasLt& lib) -> Status {
    KILN_TRY(lib.library, DynLib::open(names, "cublasLt", DynLib::Absent::kNameAll, DynLib::Wait::kUntilInterrupt));
    lib.get_property = lib.library.function<decltype(lib.get_property)>("cublasLtGetProperty");
    if (lib.get_property) KILN_CHECK_OK(check_version(lib, "cublasLt"));
#define KILN_CUBLASLT(member, symbol, ...)                                 \
  if (!(lib.member = lib.library.function<decltype(lib.member)>(#symbol))) \
    return lacks(lib, "cublasLt", #symbol, kInstallCublas);
#include "runtime/blas/blas.def"
    return {};
  });
}

Result<std::shared_ptr<const OpenBlas>> OpenBlas::open() {
  std::vector<std::string> names = openblas_names();
  return shared<OpenBlas>(names, [&](OpenBlas& lib) -> Status {
    KILN_TRY(lib.library, DynLib::open(names, "OpenBLAS", DynLib::Absent::kNameAll, DynLib::Wait::kUntilInterrupt));
#define KILN_OPENBLAS(member, symbol, ...)                                 \
  if (!(lib.member = lib.library.function<decltype(lib.member)>(#symbol))) \
    return lacks(lib, "OpenBLAS", #symbol, "install libopenblas0-pthread");
#include "runtime/blas/blas.def"
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64"
    std::string_view config = lib.get_config();
    if (config.starts_with("OpenBLAS ")) config.remove_prefix(9);
    lib.version = std::string(config.substr(0, config.find(' ')));
    if (config.find("USE64BITINT") != std::string_view::npos)
      return error(ErrorKind::kDevice, "OpenBLAS {} was built for 64-bit integers: install libopenblas0-pthread",
                   lib.library.path());
    return {};
  });
}

Diagnostic Cublas::failure(CublasStatus status, std::string_view call) const {
  return cublas_failure(*this, status, call);
}
Diagnostic CublasLt::failure(CublasStatus status, std::string_view call) const {
  return cublas_failure(*this, status, call);
}

}  // namespace kiln::runtime::blas
