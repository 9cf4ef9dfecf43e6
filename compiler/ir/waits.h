// Loops in which a program waits for others.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::ir {

/// Whether an op is a loop that reads the same places until other programs have changed them (volatile loads). It takes
/// far longer than what a program does itself.
inline bool waits_for_programs(const Op* op) {
  auto reads_again = [](const Op* o) { return o->kind == OpKind::kLoad && o->flag(AttrName::kVolatile); };
  return op->kind == OpKind::kWhile && any_nested(op, reads_again);
}

}  // namespace kiln::ir
