// Runs tile IR directly: the reference for every executor.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "compiler/interp/memory.h"
#include "compiler/ir/ir.h"

namespace kiln::interp {

struct Options {
  /// 0 runs the programs in order, x fastest; another seed shuffles them. One program runs at a time, to its end.
  uint64_t seed = 0;
  /// Ops that one program may execute before it counts as endless.
  int64_t step_limit = 20'000'000;
  /// Receives each line of device_print; null: standard output.
  std::function<void(const std::string& line)> on_print;
};

/// Runs a verified tile-stage module over grid = {x, y, z}. `args` has a slot of 8 bytes per parameter: integers and
/// floats in the low bytes, pointers as addresses in `memory`.
///
/// Errors carry the op's range: kLaunch for an access outside of `memory` or a misaligned one (with program and
/// element), for a loop step that is not positive and for the step limit; kMismatch for a failed assert. Combines of
/// reduce go over neighbours as a balanced tree, in order; a scan combines from first to last.
Status run(const ir::Module& module, std::array<int32_t, 3> grid, std::span<const uint64_t> args, const Memory& memory,
           const Options& options = {});

}  // namespace kiln::interp
