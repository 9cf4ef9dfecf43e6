// CUPTI, opened at run time: a table of its entry points, and how its errors read.
#pragma once
#if KILN_HAS_CUPTI
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#endif

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "support/dynlib.h"

namespace kiln::profiler::cupti {

#if KILN_HAS_CUPTI

/// Where it may be, in the order in which Library::open() tries; the last is for the system to find.
std::vector<std::string> library_names();

/// Groups of entry points that a library of the right version may still lack.
enum class Group { kCounters, kLines };
inline constexpr size_t kGroups = 2;

struct Library {
  /// Opens it, once per process. kDevice, one sentence each: no library, one of another major version than the headers
  /// that Kiln was built with, one that lacks an entry point. KILN_CUPTI_LIBRARY names another library.
  static Result<std::shared_ptr<const Library>> open();

  /// kDevice: "cuptiActivityEnable(kind) failed: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", with what would help where that
  /// is known (permission, another profiler, MIG, a virtual GPU).
  Diagnostic failure(CUptiResult code, std::string_view call) const;

  /// kDevice when the library lacks an entry point of the group, naming it.
  Status need(Group group) const;

  DynLib library;
  uint32_t version = 0;                    // 130000 for CUDA 13.0
  std::array<std::string, kGroups> lacks;  // by group: an entry point that is not there
#define KILN_CUPTI(entry) decltype(&::entry) entry = nullptr;
#define KILN_CUPTI_OPTIONAL(group, entry) KILN_CUPTI(entry)
#include "profiler/cupti/cupti.def"
#undef KILN_CUPTI_OPTIONAL
#undef KILN_CUPTI
};

/// Returns the failure of a CUPTI call from the enclosing function. `lib` is a pointer to Library.
#define KILN_CUPTI_TRY(lib, call)                                                                                 \
  do {                                                                                                            \
    if (CUptiResult kiln_code = (lib)->call; kiln_code != CUPTI_SUCCESS) return (lib)->failure(kiln_code, #call); \
  } while (0)

/// A struct of parameters, empty but for its size.
#define KILN_CUPTI_PARAMS(type, name) \
  type name{};                        \
  name.structSize = type##_STRUCT_SIZE

#endif

/// Why this build cannot ask CUPTI; only where it was built without its headers.
Diagnostic built_without();

}  // namespace kiln::profiler::cupti
