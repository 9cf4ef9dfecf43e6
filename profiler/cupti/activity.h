// The GPU's side of a profile, from CUPTI's activity records.
#pragma once
#include <memory>

#include "kiln/result.h"
#include "profiler/profile/collector.h"

namespace kiln::profiler::cupti {

/// kDevice says why there is none: no CUPTI, another profiler attached, no permission.
Result<std::unique_ptr<Collector>> make_activity_collector();

}  // namespace kiln::profiler::cupti
