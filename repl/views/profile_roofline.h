// The roofline of a profile: what its ranges and runs declared, over the time that the profile saw, under ceilings that
// are measured on the device at their first use.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/device.h"
#include "profiler/profile/ops.h"
#include "profiler/profile/timeline.h"
#include "profiler/roofline/roofline.h"

namespace kiln::repl {

/// A point for each range that declared FLOP or bytes (record_function(flop=, bytes=), %profile flop= bytes=): of one
/// call, over the time of the kernels in it. Empty: nothing was declared.
std::vector<profiler::RoofPoint> declared_points(const Device& device, const profiler::Timeline& timeline,
                                                 const profiler::OpsOptions& options);

/// The points under the ceilings that they need. Those that could not be measured, or not before Ctrl-C, are not there,
/// and notes say so. `progress` is told which one is measured; empty: nobody asks.
profiler::RooflineChart chart_of(const Device& device, std::vector<profiler::RoofPoint> points, std::string_view cache,
                                 const std::function<void(std::string_view)>& progress = {});

/// The type of the operands that a kernel multiplies on tensor cores, from its PTX; nullopt: it does not.
std::optional<DType> product_in_ptx(std::string_view ptx);

}  // namespace kiln::repl
