// Which scalars of a kernel are known before it starts: what a tensor map, which the host encodes at launch, may be
// made of.
#pragma once
#include <optional>

#include "compiler/ir/ir.h"
#include "support/tensor_map.h"

namespace kiln::analysis {

/// `v` (an integer or pointer scalar) as a function of the kernel's parameters; nothing when it depends on the program,
/// on memory or on an iteration, is no integer, or takes more than a few dozen operations.
std::optional<HostExpression> host_expression(const ir::Value* v);

}  // namespace kiln::analysis
