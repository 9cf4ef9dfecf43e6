// Stacks of a profile as folded lines, "train.py:3;train.py:8;add;driver call 12", which flame graph tools read.
#pragma once
#include <string>

#include "kiln/result.h"
#include "profiler/profile/timeline.h"

namespace kiln::profiler {

/// One line per stack with its own time in whole microseconds, sorted by the stack: of the host, or of the device for
/// what was launched from there. Stacks under half a microsecond are left out.
std::string folded_stacks(const Timeline& timeline, bool device);
Status write_stacks(const Timeline& timeline, bool device, const std::string& path);

}  // namespace kiln::profiler
