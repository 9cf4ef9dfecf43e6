// The metrics and bundles that Kiln knows by name, as tables.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "profiler/profile/counters.h"

namespace kiln::profiler::cupti {

enum class MetricId : uint8_t {
#define KILN_METRIC(id, bundles, title, unit, scale, digits, names, meaning) id,
#include "profiler/cupti/metrics.def"
#undef KILN_METRIC
};

struct Metric {
  MetricId id;
  std::string_view bundles;  // letters of Bundle
  std::string_view title, unit;
  double scale;  // printed = value · scale
  int digits;
  std::string_view names;    // separated by blanks, the first that a chip has
  std::string_view meaning;  // one sentence
};
std::span<const Metric> metrics();
const Metric& metric(MetricId id);

struct Bundle {
  std::string_view name;
  char letter;  // of Metric::bundles
  std::string_view help;
};
std::span<const Bundle> bundles();
/// kName for another name, with those that there are.
Result<std::vector<const Metric*>> bundle(std::string_view name);

/// The median of a value over the launches of one kernel, without those that are NaN; nullopt when none is left.
std::optional<double> median_of(std::span<const KernelCounters> launches, std::string_view kernel, size_t value);

/// Medians over the launches of each kernel, in the order of their first launch. `ids` identifies the values;
/// nullopt: none of ours. A value that is NaN in every launch is missing.
std::vector<KernelFigures> figures(std::span<const KernelCounters> launches,
                                   std::span<const std::optional<MetricId>> ids);

}  // namespace kiln::profiler::cupti
