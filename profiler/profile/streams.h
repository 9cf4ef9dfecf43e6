// Busy time of each stream, and overlap between streams.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

struct StreamRow {
  uint32_t device = 0, context = 0, stream = 0;
  int64_t kernels = 0, copies = 0, fills = 0;
  Ns busy = 0;  // how long something of it ran
};

/// What ran at once, of all streams: times, not sums.
struct Overlap {
  Ns any = 0;
  Ns kernels = 0;          // two or more kernels
  Ns copy_and_kernel = 0;  // a copy or a fill, and a kernel
  Ns copies = 0;           // two or more copies or fills
};

struct Streams {
  std::vector<StreamRow> rows;  // by device and number
  Overlap overlap;
  Ns window = 0;
};
Streams streams(const Timeline& timeline);

report::Table streams_table(const Timeline& timeline, const Streams& streams);

}  // namespace kiln::profiler
