// Which scalars of a kernel are known before it starts. The host encodes tensor maps at launch, so their fields must be
// such scalars.
#pragma once
#include <optional>

#include "compiler/ir/ir.h"
#include "support/tensor_map.h"

namespace kiln::analysis {

/// `v` (an integer or pointer scalar) as a function of the kernel's parameters; nothing when it depends on the program,
/// on memory or on an iteration, is no integer, or takes more than a few dozen operations.
std::optional<HostExpression> host_expression(const ir::Value* v);

}  // namespace kiln::analysis
