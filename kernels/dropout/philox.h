// Philox-4x32-10 on the host (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), as tl.rand uses it.
#pragma once
#include <cstdint>

namespace kiln::kernels {

/// tl.rand(seed, offset): the first of the four words for the counter (offset, 0, 0, 0), as a float in [0, 1).
float philox_uniform(uint64_t seed, uint32_t offset);

}  // namespace kiln::kernels
