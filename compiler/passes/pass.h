// What a pass is, and the one loop that runs them: checks what holds, verifies, times and dumps.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/ir.h"
#include "compiler/passes/hopper/roles.h"
#include "compiler/passes/properties.h"
#include "compiler/passes/remarks.h"
#include "compiler/passes/tile/guard_accesses.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// What one run of passes is asked for, and what they find beside the module.
struct Context {
  const target::Target& target;
  bool guard_accesses = false;  // rows with a condition ask for these
  bool launch_pdl = false;
  bool enable_fp_fusion = true;
  std::span<const Role> roles = kOneProducer;  // beside the kernel's own warps
  Properties holds = kNothing;                 // of the module, beside those that it shows itself (kLayouts)
  std::optional<GuardedAccesses> guards = {};  // of guard_accesses
  Remarks* remarks = nullptr;                  // null: nobody asks
};

/// One row of a pipeline. `run` changes the module in place; an error is a user's diagnostic (too much shared memory…).
struct Pass {
  std::string_view name;
  Properties needs;     // all of them hold before the pass
  Properties forbids;   // none of them does
  Properties gives;     // hold after it
  Properties destroys;  // may not hold any longer
  Status (*run)(ir::Module& module, Context& context);
  bool (*when)(const Context& context) = nullptr;  // null: always
};

struct RunOptions {
  bool verify_each = false;
  std::function<void(std::string_view pass, double ms)> on_time;             // may be null
  std::function<void(std::string_view pass, const ir::Module&)> after_pass;  // may be null
};

/// The order for a target kind, as data (pipeline.cc), and what it leaves for the lowering.
std::span<const Pass> pipeline(target::Kind kind);
Properties lowering_needs(target::Kind kind);

/// An internal error where a pass needs what does not hold, or leaves what it should not; context.holds follows.
Status run(std::span<const Pass> pipeline, ir::Module& module, Context& context, const RunOptions& options);
Status run(std::span<const Pass> pipeline, ir::Module& module, const target::Target& target, const RunOptions& options);

}  // namespace kiln::passes
