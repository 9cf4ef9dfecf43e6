// Which launches of a script are bounds-checked (kiln/check.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/result.h"

namespace kiln::script {

enum class AccessChecks : uint8_t {
  kOff,
  kWherePossible,  // a kernel that cannot be guarded is launched as it is, and the log says so
  kAlways,         // such a kernel is an error
};

/// What was looked at.
struct AccessLog {
  int launches = 0;
  int accesses = 0;                  // of their sources
  std::vector<Place> unchecked;      // accesses whose address comes from no argument, each once
  std::vector<std::string> refused;  // why kernels were launched unguarded, each once
};

}  // namespace kiln::script
