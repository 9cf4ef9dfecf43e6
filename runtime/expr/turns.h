// Counters of the programs of a kernel, which end where they began, at 0 (fusion::Value::turns).
#pragma once
#include "kiln/tensor.h"

namespace kiln::runtime {

/// Words of int32 that are 0, as many as a plan has of them, for the kernels of the thread's current stream, one at a
/// time; while that is captured, for those of the graph, which keeps it to itself.
Result<Tensor> turns_of_stream(const Device& device);

}  // namespace kiln::runtime
