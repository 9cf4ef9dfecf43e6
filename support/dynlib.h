// Shared libraries opened at run time (CUDA, cuBLAS, nvJitLink, OpenBLAS): nothing of them is linked.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kiln/result.h"

namespace kiln {

/// An open shared library. It stays open for the life of the process: code and callbacks of such libraries may run at
/// exit.
class DynLib {
 public:
  /// How an absent library is reported: by its first name, or by all names that were tried.
  enum class Absent { kNameFirst, kNameAll };
  /// Reading a large library takes seconds when the disk is slow. kUntilInterrupt: with Ctrl-C the call ends with
  /// kInterrupted, which must not be remembered as a library that is not there.
  enum class Wait { kUntilOpen, kUntilInterrupt };

  /// Opens the first of `names` (a file name or a path) that loads. kDevice: "no CUDA driver: libcuda.so.1 not found",
  /// or the loader's own words when a file is there but does not load. `what` names the library in the sentence.
  static Result<DynLib> open(std::span<const std::string> names, std::string_view what,
                             Absent absent = Absent::kNameFirst, Wait wait = Wait::kUntilOpen);

  /// The address of a symbol, or nullptr.
  void* symbol(const char* name) const;
  /// The symbol as a function pointer of type F, or nullptr.
  template <class F>
  F function(const char* name) const {
    return reinterpret_cast<F>(symbol(name));
  }
  /// The name under which it was found.
  const std::string& path() const { return path_; }

 private:
  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace kiln
