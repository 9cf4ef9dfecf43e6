// What the frontend's tests share: a kernel text with its command, lowered to IR.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/frontend.h"

namespace kiln::frontend::testing {

/// How a kernel of a text is compiled.
struct Command {
  std::string kernel;  // "" takes the last function of the text
  std::string signature;
  std::vector<std::pair<std::string, Global>> constexprs;
  CodeOptions options;
  bool as_triton = false;  // with its warnings, and the errors that it has alone
};

/// "kernel=add signature=*fp32,i32 BLOCK=128 MODE='sum' DTYPE=tl.float16": what is not kernel, signature, as_triton
/// or a launch option is a constexpr.
Command parse_command(const std::string& line);

Result<std::unique_ptr<ir::Module>> lower_text(std::string file_name, std::string text, const Command& command,
                                               std::vector<std::string>* printed = nullptr);

}  // namespace kiln::frontend::testing
