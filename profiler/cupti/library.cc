#include "profiler/cupti/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "support/diag.h"
#include "support/knobs.h"
#include "support/process.h"

namespace kiln::profiler::cupti {

Diagnostic built_without() {
  return error(ErrorKind::kDevice,
               "this build of Kiln cannot profile a GPU: it was built without CUPTI's headers (set CUDA_HOME and build "
               "again)");
}

#if KILN_HAS_CUPTI

std::vector<std::string> library_names() {
  // Of the major version whose headers Kiln was built with: records have their layouts.
  if (std::string path = knob(Knob::kCuptiLibrary); !path.empty()) return {path};
  const std::string file = fmt::format("libcupti.so.{}", CUDA_VERSION / 1000);
  std::vector<std::string> names;
  for (const std::string& root : toolkit_roots())
    for (const char* folder : {"lib64", "extras/CUPTI/lib64", "lib"})
      names.push_back(fmt::format("{}/{}/{}", root, folder, file));
  names.push_back(file);
  return names;
}

namespace {

Status load(Library& lib) {
  KILN_TRY(lib.library,
           DynLib::open(library_names(), "CUPTI", DynLib::Absent::kNameFirst, DynLib::Wait::kUntilInterrupt));
#define KILN_CUPTI(entry)                                                                                              \
  if (!(lib.entry = lib.library.function<decltype(lib.entry)>(#entry)))                                                \
    return error(ErrorKind::kDevice, "CUPTI {} lacks {}: CUDA {}.{}'s or newer is needed", lib.library.path(), #entry, \
                 CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
#define KILN_CUPTI_OPTIONAL(group, entry)                               \
  if (!(lib.entry = lib.library.function<decltype(lib.entry)>(#entry))) \
    lib.lacks[static_cast<size_t>(Group::group)] = #entry;
#include "profiler/cupti/cupti.def"
#undef KILN_CUPTI_OPTIONAL
#undef KILN_CUPTI
  // Without a driver CUPTI 13.2 calls itself in each function until the stack has run out, also in cuptiGetVersion().
  // It has this one, and 13.0, which needs no driver, has not.
  if (lib.library.function<void (*)()>("cuptiActivityGetEnabledKinds") && !dlopen("libcuda.so.1", RTLD_LAZY))
    return error(ErrorKind::kDevice, "CUPTI {} needs NVIDIA's driver, and libcuda.so.1 was not found",
                 lib.library.path());
  KILN_CUPTI_TRY(&lib, cuptiGetVersion(&lib.version));
  // Records are read by the headers' layouts.
  if (lib.version / 10000 != CUPTI_API_VERSION / 10000)
    return error(ErrorKind::kDevice, "CUPTI {} is of version {}, and Kiln was built for {}", lib.library.path(),
                 lib.version, CUPTI_API_VERSION);
  return {};
}

// What stands in the way most often, and what helps.
std::string_view help_for(CUptiResult code) {
  switch (code) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "counters are for administrators on this machine: run as root, or load the nvidia module with "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "another profiler or a sanitizer is attached to this process";
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "another program reads the GPU's counters (for example DCGM): dcgmi profile --pause";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "the hypervisor does not let this virtual GPU be profiled: its administrator can";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "a virtual GPU shows no counters";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "confidential computing hides the counters";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "a slice of a GPU (MIG) shows no counters: they need the whole one";
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
      return "mining cards show no counters";
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return "counters are not to be had under this WSL: its setup is in the NVIDIA control panel of Windows";
    default:
      return {};
  }
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::open() {
  static std::mutex mutex;
  static auto* opened = new std::shared_ptr<const Library>;  // never destroyed: CUPTI's threads may outlive our statics
  std::lock_guard lock(mutex);
  if (!*opened) {
    auto made = std::make_shared<Library>();
    KILN_CHECK_OK(load(*made));
    *opened = made;
  }
  return *opened;
}

Diagnostic Library::failure(CUptiResult code, std::string_view call) const {
  const char* text = nullptr;
  if (cuptiGetResultString(code, &text) != CUPTI_SUCCESS || !text) text = "an unknown error";
  std::string_view help = help_for(code);
  Diagnostic d = error(ErrorKind::kDevice, "{} failed: {} ({}){}{}", call, text, static_cast<int>(code),
                       help.empty() ? "" : ": ", help);
  return d;
}

Status Library::need(Group group) const {
  const std::string& entry = lacks[static_cast<size_t>(group)];
  if (entry.empty()) return {};
  return error(ErrorKind::kDevice, "CUPTI {} lacks {}: CUDA {}.{}'s or newer is needed", library.path(), entry,
               CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}

#endif

}  // namespace kiln::profiler::cupti
