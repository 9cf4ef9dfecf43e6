// The machine code of a kernel for the prompt, with what its lines are lines of.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "repl/magics/compile_stages.h"
#include "support/source.h"

namespace kiln::repl {

struct ShownCode {
  std::string kernel, target;
  std::string ptx;
  std::string cubin;  // empty: neither nvJitLink nor ptxas was found
  std::vector<std::shared_ptr<const SourceText>> sources;
  std::string assumptions;  // what was assumed, for a kernel that was never launched; else empty
};

/// Compiles it for request.target, a GPU.
Result<ShownCode> show_code(const ShowRequest& request);

}  // namespace kiln::repl
