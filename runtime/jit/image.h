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
  std::string symbol;
};

/// For arguments as the frontend takes them; `request` says for what.
Result<Image> compile_specs(const Runtime& runtime, const std::shared_ptr<const frontend::JitFunction>& function,
                            std::span<const frontend::ArgSpec> args, const ImageRequest& request);

}  // namespace kiln::runtime
