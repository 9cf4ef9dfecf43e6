// What a GPU of an architecture usually has, where there is no device to ask.
#pragma once
#include "compiler/target/target.h"

namespace kiln::target {

/// SMs of a GPU with the target's chip. `target` is a row of the table: what find() gave.
int usual_multiprocessors(const Target& target);

}  // namespace kiln::target
