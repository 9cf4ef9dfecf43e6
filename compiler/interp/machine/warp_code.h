// A kernel of the distributed stage as straight code that each warp walks through on its own: loops and branches as
// jumps, and ops that go through shared memory cut at their barriers.
#pragma once
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/reduce_plan.h"

namespace kiln::interp {

enum class StepKind : uint8_t {
  kOp,         // run op, all of it
  kBarrier,    // wait for all warps of the region; op says of which blocks
  kReduceOwn,  // of a reduce: registers and lanes
  kWrite,      // of a convert_layout, reduce or scan: its part `part` to shared memory
  kRead,       // and back
  kScanOwn,    // step `part` of a scan inside the warp
  kScanBegin,
  kForBegin,  // induction variable and iteration values from the operands
  kForTest,   // to `target` when the loop is over
  kForNext,   // takes what the body yields
  kForEnd,    // results from iteration values
  kPass,      // terminator `op`: its values to the arguments of block `to`, or to the results of its parent op
  kBranch,    // to `target` unless operand 0 of op is true
  kJump,
  kSpecialize,    // region `part` starts at `target`, for the one thread that runs it; this warp goes on
  kMbarrierWait,  // until the mbarrier has passed
  kEnd,
};

struct WarpStep {
  StepKind kind;
  const ir::Op* op = nullptr;
  int part = 0;
  int target = 0;
  const ir::Block* to = nullptr;
};

using Plan = std::variant<layout::ConvertPlan, layout::ReducePlan, layout::ScanPlan>;

struct WarpCode {
  std::vector<WarpStep> steps;
  std::unordered_map<const ir::Op*, Plan> plans;
};

/// The module must be verified and its scratch allocated.
WarpCode flatten(const ir::Module& module);

}  // namespace kiln::interp
