// Between which numbers an integer lies, as its op, the bounds of loops around it and the op's operands say. Of what
// may wrap nothing is known.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

/// Both ends belong to it. 128 bits hold every integer of the IR, signed or not.
struct ValueRange {
  __int128 low = 0, high = 0;

  bool is_one_value() const { return low == high; }
};

/// Of the value's integer, or of each of its elements. The walk is short: it ends at a fixed depth.
ValueRange range_of(const ir::Value* v);

/// Whether 0 <= x < bound holds because of a loop around x, both scalars of one type:
///   for x = 0 to bound
///   for i = 0 to (bound + c-1) / c        where x is i * c
bool is_below_by_loop(const ir::Value* x, const ir::Value* bound);

}  // namespace kiln::passes
