// What a kernel's loop nest must compute so that a producer warp can run ahead and issue its block loads: the program
// slice that warp specialisation moves into the producer.
#pragma once
#include <span>
#include <string>
#include <unordered_set>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

struct ProducerSlice {
  /// Pure scalar ops to repeat, and the loops and branches around the loads.
  std::unordered_set<const ir::Op*> ops;
  /// Scalars that the slice needs; of a loop's carried values and a branch's results only these are repeated.
  std::unordered_set<const ir::Value*> values;
  /// Why there is none, "" when there is one: "it depends on a load", "it stands in a while loop".
  std::string refusal;

  bool ok() const { return refusal.empty(); }
};

/// The slice for `loads` (descriptor_load ops of either stage).
ProducerSlice producer_slice(std::span<const ir::Op* const> loads);

}  // namespace kiln::analysis
