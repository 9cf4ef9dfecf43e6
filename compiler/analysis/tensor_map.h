// Which descriptors TMA can serve. The host encodes a tensor map for each launch, so everything in it must follow from
// the kernel's arguments, and alignment must be known when the kernel is compiled. Of tensors that the kernel finds in
// memory it makes the maps itself.
#pragma once
#include "compiler/analysis/axis_info.h"

namespace kiln::analysis {

/// For a make_descriptor op. TMA stores write whole units of kTensorMapAlignment bytes, also past the end of a row
/// (seen on an H200), so `stored` tensors must have rows of whole units. TMA loads stop at the element.
bool has_tensor_map(const ir::Op& descriptor, const AxisAnalysis& axis, bool stored);

/// Whether the kernel can make the map itself, for loads: what the host could compute must be known to be aligned, and
/// a descriptor of what the kernel has loaded promises it, as in Triton.
bool can_make_tensor_map(const ir::Op& descriptor, const AxisAnalysis& axis);

}  // namespace kiln::analysis
