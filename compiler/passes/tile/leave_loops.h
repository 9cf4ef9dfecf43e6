// Loops that go on after they are done: kernels have no `break`, and skip what is left of a loop by a condition.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct LeaveLoopsOptions {};

/// A `for` whose iterations do nothing once a condition of what it carries is false becomes a `while` that ends then:
/// all that the loop does stands in one `if`, and what it carries besides is not read behind the loop.
Status leave_loops(ir::Module& module, const LeaveLoopsOptions& options = {});

}  // namespace kiln::passes
