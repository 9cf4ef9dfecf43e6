// Which of the kernel's parameters an address may be computed from, through arithmetic, selects, loops and branches. As
// in Triton, tensors passed as different parameters are assumed not to overlap.
#pragma once
#include <set>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

struct PointerOrigins {
  std::set<int> params;  // arguments of the kernel's body
  /// Some of its values come from elsewhere: they were loaded, or made of integers.
  bool unknown = false;

  void join(const PointerOrigins& other);
  /// Whether an address with these origins may point into the same tensor as one with those.
  bool meets(const PointerOrigins& other) const;
};

/// Of a pointer, a tile of pointers or a tensor descriptor.
PointerOrigins pointer_origins(const ir::Value* address);

/// Of all addresses that the kernel writes to.
PointerOrigins written_origins(ir::Module& module);

}  // namespace kiln::analysis
