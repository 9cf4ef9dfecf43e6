// Collects a device's side of a profile: kernels, copies, driver calls. profiler/cupti has the one for GPUs.
#pragma once
#include "kiln/result.h"
#include "profiler/profile/timeline.h"

namespace kiln::profiler {

class Collector {
 public:
  virtual ~Collector() = default;
  virtual Status start() = 0;
  /// Ends it and appends the records, in no order; missing information goes to `into.unknown`. The device is idle.
  virtual Status stop(Timeline& into) = 0;
};

}  // namespace kiln::profiler
