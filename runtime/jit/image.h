// What stands behind kiln::Image.
#pragma once
#include <vector>

#include "compiler/compile.h"
#include "kiln/image.h"
#include "runtime/jit/closure.h"

namespace kiln::runtime {

struct ImageImpl {
  CompiledKernel kernel;
  Closure closure;
  std::vector<ImageParam> params;
};

}  // namespace kiln::runtime
