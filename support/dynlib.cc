#include "support/dynlib.h"

#include <dlfcn.h>

#include <fmt/ranges.h>

#include "support/diag.h"

namespace kiln {

Result<DynLib> DynLib::open(std::span<const std::string> names, std::string_view what, Absent absent) {
  std::string other_reason;  // a file that exists but does not load says more than "not found"
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      DynLib lib;
      lib.handle_ = handle;
      lib.path_ = name;
      return lib;
    }
    const char* text = dlerror();
    std::string reason = text ? text : "";
    bool missing = reason.find(name + ": cannot open shared object file: No such file") != std::string::npos;
    if (!missing && other_reason.empty()) other_reason = reason;
  }
  if (!other_reason.empty()) return error(ErrorKind::kDevice, "{} does not load: {}", what, other_reason);
  if (absent == Absent::kNameAll) return error(ErrorKind::kDevice, "no {}: tried {}", what, fmt::join(names, ", "));
  return error(ErrorKind::kDevice, "no {}: {} not found", what, names.empty() ? std::string("library") : names.front());
}

void* DynLib::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace kiln
