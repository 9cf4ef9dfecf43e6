// Which descriptors TMA can serve. The host encodes a tensor map for each launch, so everything in it must follow from
// the kernel's arguments, and alignment must be known when the kernel is compiled.
#pragma once
#include "compiler/analysis/axis_info.h"

namespace kiln::analysis {

/// For a make_descriptor op. TMA stores write whole units of kTensorMapAlignment bytes, also past the end of a row
/// (seen on an H200), so `stored` tensors must have rows of whole units. TMA loads stop at the element.
bool has_tensor_map(const ir::Op& descriptor, const AxisAnalysis& axis, bool stored);

}  // namespace kiln::analysis
