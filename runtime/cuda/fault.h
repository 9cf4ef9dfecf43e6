// Errors after which CUDA refuses every further call of the context.
#pragma once
#include <cuda.h>

#include <string_view>

namespace kiln::runtime {

/// What the kernel did ("read or wrote an illegal address"), or empty when `code` leaves the context usable.
std::string_view fault_text(CUresult code);

}  // namespace kiln::runtime
