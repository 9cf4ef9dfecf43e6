// The copy that bandwidths are measured by.
#pragma once
#include <cstdint>

#include "profiler/measure/measure.h"

namespace kiln::profiler {

/// The device's copy: device to device on a GPU, memcpy with every worker thread on the CPU. Bytes read plus written
/// per launch are 2 · `bytes`. The buffers live in the launchable.
Result<Launchable> copy_launchable(const Device& device, int64_t bytes);

}  // namespace kiln::profiler
