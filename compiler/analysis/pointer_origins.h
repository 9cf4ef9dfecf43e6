// Which of the kernel's parameters a pointer may be computed from, through every road that values take: arithmetic,
// selects, loops and branches.
#pragma once
#include <set>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

struct PointerOrigins {
  std::set<int> params;  // arguments of the kernel's body
  /// Some of its values come from elsewhere: they were loaded, or made of integers.
  bool unknown = false;
};

/// Of a pointer or a tile of pointers.
PointerOrigins pointer_origins(const ir::Value* pointer);

}  // namespace kiln::analysis
