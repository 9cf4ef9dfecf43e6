#pragma once

#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// What a value of control flow is one of: a result of `if`, `for` or `while`, or an argument of a loop's region that
/// the loop carries. Empty for all others, the number of an iteration among them.
std::vector<const ir::Value*> joined_values(const ir::Value* v);

}  // namespace kiln::analysis
