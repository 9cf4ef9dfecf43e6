// How a kernel was launched: enough to compile it again, for its stages to be shown.
#pragma once
#include <string>
#include <vector>

#include "compiler/frontend/frontend.h"

namespace kiln::runtime {

struct LaunchedAs {
  std::vector<frontend::ArgSpec> args;
  frontend::Options options;
  std::string target;
};

}  // namespace kiln::runtime
