// What a kernel should not say any more, or hardly means. Its compilation goes on.
#pragma once
#include <string>

#include "kiln/result.h"

namespace kiln {

struct CodeWarning {
  std::string message;
  Place place;  // in the kernel's source
};

}  // namespace kiln
