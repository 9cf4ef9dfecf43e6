// Plays the machine on distributed IR: warps as agents that a random scheduler moves forward, registers by layout, lane
// exchanges, shared memory and barriers. What the hardware would leave to chance is an error here.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "compiler/interp/interp.h"

namespace kiln::interp {

struct DistributedOptions {
  /// Orders the programs and the turns of their warps; it is in every error's message.
  uint64_t seed = 1;
  /// Steps that one warp may take before it counts as endless.
  int64_t step_limit = 20'000'000;
  std::function<void(const std::string& line)> on_print;  // as Options::on_print
  /// For tests of the detectors: the barrier step with this number, in the order of the code, is left out; in all
  /// warps, or in one.
  int drop_barrier = -1;
  int drop_in_warp = -1;
};

/// Runs a verified module of the distributed stage with its scratch allocated. Arguments as of run().
///
/// Errors beyond run()'s, all ErrorKind::kInternal: a race in shared memory, a read of what the op did not write, a
/// deadlock (warps that wait where others never come), an element of a store that is written twice or by nobody, a
/// vector access that axis info allows and that the addresses contradict.
Status run_distributed(const ir::Module& module, std::array<int32_t, 3> grid, std::span<const uint64_t> args,
                       const Memory& memory, const DistributedOptions& options = {});

}  // namespace kiln::interp
