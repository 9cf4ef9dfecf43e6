#include "support/dynlib.h"

#include <dlfcn.h>

#include <fmt/ranges.h>

#include <memory>
#include <vector>

#include "support/aside.h"
#include "support/diag.h"

namespace kiln {

namespace {

struct Attempt {
  void* handle = nullptr;
  std::string path;          // that was opened
  std::string other_reason;  // a file that exists but does not load says more than "not found"
};

Attempt open_first(std::span<const std::string> names) {
  Attempt attempt;
  for (const std::string& name : names) {
    attempt.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    attempt.path = name;
    if (attempt.handle) return attempt;
    const char* text = dlerror();
    std::string reason = text ? text : "";
    bool missing = reason.find(name + ": cannot open shared object file: No such file") != std::string::npos;
    if (!missing && attempt.other_reason.empty()) attempt.other_reason = reason;
  }
  return attempt;
}

}  // namespace

Result<DynLib> DynLib::open(std::span<const std::string> names, std::string_view what, Absent absent, Wait wait) {
  Attempt attempt;
  if (wait == Wait::kUntilOpen) {
    attempt = open_first(names);
  } else {
    auto found = std::make_shared<Attempt>();
    if (!run_aside([found, own = std::vector(names.begin(), names.end())] { *found = open_first(own); }))
      return error(ErrorKind::kInterrupted, "interrupted while {} was loaded", what);
    attempt = std::move(*found);
  }
  if (attempt.handle) {
    DynLib lib;
    lib.handle_ = attempt.handle;
    lib.path_ = std::move(attempt.path);
    return lib;
  }
  if (!attempt.other_reason.empty())
    return error(ErrorKind::kDevice, "{} does not load: {}", what, attempt.other_reason);
  if (absent == Absent::kNameAll) return error(ErrorKind::kDevice, "no {}: tried {}", what, fmt::join(names, ", "));
  return error(ErrorKind::kDevice, "no {}: {} not found", what, names.empty() ? std::string("library") : names.front());
}

void* DynLib::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace kiln
