// The roles of warps beside the kernel's own, as rows: who brings which blocks to shared memory.
#pragma once
#include <span>
#include <string_view>

#include "compiler/ir/ir.h"

namespace kiln::passes {

/// One thread, in a warp of its own. It runs what the kernel's loops must compute for its loads, and fills their rings,
/// which the kernel's own warps empty. A kernel without loads for a role goes without the role.
struct Role {
  std::string_view name;               // "producer", of its warp
  bool (*brings)(const ir::Op& load);  // of a product's operand, or ahead; the first row that does has the load
};

/// What is made of every kernel: one thread brings all blocks.
inline constexpr Role kOneProducer[] = {{"producer", [](const ir::Op&) { return true; }}};

/// Warps of so many roles: whole warp groups, since those give up registers together.
constexpr int warps_of_roles(size_t roles) {
  constexpr size_t kGroup = 4;
  return static_cast<int>((roles + kGroup - 1) / kGroup * kGroup);
}

}  // namespace kiln::passes
