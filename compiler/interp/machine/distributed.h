// Simulates the machine on distributed IR: warps, the producer thread and the asynchronous engines (copies by
// threads, bulk copies, tensor cores) are agents that a random scheduler advances; registers by layout, lane
// exchanges, shared memory, barriers and mbarriers. What the hardware would leave to chance is an error here: an order
// between two accesses comes only from what docs/ir.md names, and is kept as vector clocks (happens_before.h), so that
// a race is found whichever access comes first in the simulation.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "compiler/interp/tile/interp.h"

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
/// Errors beyond run()'s, all ErrorKind::kInternal, with the op and who ran it:
/// - a race in shared memory, or in global memory with what a tma_store writes; a read of bytes that nothing wrote (of
///   scratch: that the op did not write); a missing fence_async;
/// - a deadlock, with each waiting agent: at a barrier that others never reach, at an mbarrier whose phase lacks
/// arrivals
///   or announced bytes;
/// - an mbarrier that is used before its mbarrier_init is seen or initialised again, an arrival too many while bytes
///   are on their way, a tma_load of more bytes than are announced;
/// - a wgmma's result or its operands in registers touched before the wgmma_wait that takes the result;
/// - the program's end before its wgmma, tma_load and tma_store have been waited for;
/// - an element of a store that is written twice or by no thread; a vector access that axis info allows and that the
///   addresses contradict.
Status run_distributed(const ir::Module& module, std::array<int32_t, 3> grid, std::span<const uint64_t> args,
                       const Memory& memory, const DistributedOptions& options = {});

}  // namespace kiln::interp
