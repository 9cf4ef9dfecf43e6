// What a pass is, and the one loop that runs them: checks the stage, verifies, times and dumps.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// One row of a pipeline. `run` changes the module in place; an error is a user's diagnostic (too much shared memory…).
struct Pass {
  std::string_view name;
  ir::Stage requires_stage;
  ir::Stage gives_stage;
  Status (*run)(ir::Module& module, const target::Target& target);
};

struct RunOptions {
  bool verify_each = false;
  std::function<void(std::string_view pass, double ms)> on_time;             // may be null
  std::function<void(std::string_view pass, const ir::Module&)> after_pass;  // may be null
};

/// The order for a target kind, as data (pipelines.cc).
std::span<const Pass> pipeline(target::Kind kind);

Status run(std::span<const Pass> pipeline, ir::Module& module, const target::Target& target, const RunOptions& options);

}  // namespace kiln::passes
