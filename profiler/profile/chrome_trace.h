// A timeline as a file that ui.perfetto.dev and chrome://tracing open: the Trace Event Format, as JSON. docs/trace.md
// describes the lanes.
#pragma once
#include <string>

#include "kiln/result.h"
#include "profiler/profile/timeline.h"

namespace kiln::profiler {

/// The same timeline gives the same bytes. Times count from the earliest in the timeline, whose CLOCK_MONOTONIC
/// nanoseconds are in otherData.start_ns.
std::string chrome_trace(const Timeline& timeline);

/// Written piece by piece; the file is there whole or not at all. kIo.
Status write_chrome_trace(const Timeline& timeline, const std::string& path);

}  // namespace kiln::profiler
