// Facts derived from the record of one kernel, copy or fill.
#pragma once
#include <optional>

#include "compiler/target/target.h"
#include "profiler/profile/timeline.h"
#include "profiler/roofline/occupancy.h"

namespace kiln::profiler {

/// Threads of a block; 0: not known.
int block_threads(const Work& kernel);

/// Nothing where the target is no GPU or the kernel's registers, threads or shared memory are not known.
std::optional<Occupancy> theoretical_occupancy(const target::Target* target, const Work& kernel);

}  // namespace kiln::profiler
