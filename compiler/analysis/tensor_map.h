// Which descriptors the tensor memory accelerator can serve: the host encodes a tensor map for each launch, so
// everything in it must follow from the kernel's arguments, and alignment must be known when the kernel is compiled.
#pragma once
#include "compiler/analysis/axis_info.h"

namespace kiln::analysis {

/// Bytes that a tensor's base address and its strides must be multiples of (CUDA Driver API, cuTensorMapEncodeTiled).
inline constexpr int kTensorMapAlignment = 16;

/// For a make_descriptor op.
bool has_tensor_map(const ir::Op& descriptor, const AxisAnalysis& axis);

}  // namespace kiln::analysis
