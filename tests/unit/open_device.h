// The devices of a test program, all of one runtime.
#pragma once
#include <string_view>

#include "kiln/runtime.h"

namespace kiln {

/// Never destroyed: statics of tests may hold tensors, and at exit a GPU's driver may be gone before them.
inline const Runtime& test_runtime() {
  static const auto* const made = new Runtime;
  return *made;
}
inline Result<Device> open_device(std::string_view name) { return test_runtime().open(name); }

}  // namespace kiln
