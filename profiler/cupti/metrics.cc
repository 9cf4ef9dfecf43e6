#include "profiler/cupti/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "profiler/measure/stats.h"
#include "support/diag.h"

namespace kiln::profiler::cupti {

namespace {

constexpr Metric kMetrics[] = {
#define KILN_METRIC(id, bundles, title, unit, scale, digits, names, meaning) \
  {MetricId::id, bundles, title, unit, scale, digits, names, meaning},
#include "profiler/cupti/metrics.def"
#undef KILN_METRIC
};

constexpr Bundle kBundles[] = {
    {"default", 'd', "time, achieved occupancy, tensor and issue, DRAM, L1, clock"},
    {"advice", 'a', "what the advisor reads: the default, coalescing and bank conflicts"},
    {"memory", 'm', "DRAM, L2 and L1: bytes, rates, hits, coalescing, bank conflicts, spills"},
    {"compute", 'c', "pipes, instructions, f32 operations, how well the SMs are filled"},
    {"stalls", 's', "where the warps' time goes"},
    {"occupancy", 'o', "resident and eligible warps, blocks, busy SMs"},
    {"tensor", 't', "the tensor pipe and its operations by type"},
};

// Which figure of KernelFigures a metric is.
struct Figure {
  MetricId id;
  std::optional<double> KernelFigures::*member;
};
constexpr Figure kFigures[] = {
    {MetricId::kTime, &KernelFigures::us},
    {MetricId::kOccupancy, &KernelFigures::achieved_occupancy},
    {MetricId::kTensor, &KernelFigures::tensor_percent},
    {MetricId::kIssue, &KernelFigures::issue_percent},
    {MetricId::kDramPercent, &KernelFigures::dram_percent},
    {MetricId::kDramRead, &KernelFigures::dram_read_bytes},
    {MetricId::kDramWrite, &KernelFigures::dram_write_bytes},
    {MetricId::kL1Hit, &KernelFigures::l1_hit_percent},
    {MetricId::kL2Hit, &KernelFigures::l2_hit_percent},
    {MetricId::kBankConflicts, &KernelFigures::bank_conflicts},
    {MetricId::kLoadSectors, &KernelFigures::sectors_per_request},
    {MetricId::kClock, &KernelFigures::sm_mhz},
};

// Bytes stay bytes in the figures; times and clocks take the unit of their title.
double figure_scale(MetricId id) {
  return id == MetricId::kDramRead || id == MetricId::kDramWrite ? 1 : metric(id).scale;
}

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }
const Metric& metric(MetricId id) { return kMetrics[static_cast<size_t>(id)]; }
std::span<const Bundle> bundles() { return kBundles; }

Result<std::vector<const Metric*>> bundle(std::string_view name) {
  for (const Bundle& b : kBundles) {
    if (b.name != name) continue;
    std::vector<const Metric*> found;
    for (const Metric& m : kMetrics)
      if (m.bundles.find(b.letter) != std::string_view::npos) found.push_back(&m);
    return found;
  }
  std::string known;
  for (const Bundle& b : kBundles) known += (known.empty() ? "" : ", ") + std::string(b.name);
  return error(ErrorKind::kName, "there is no bundle '{}'; there are {}", name, known);
}

std::optional<double> median_of(std::span<const KernelCounters> launches, std::string_view kernel, size_t value) {
  std::vector<double> values;
  // NaN: the chip gave no value in this pass.
  for (const KernelCounters& l : launches)
    if (l.kernel == kernel && !std::isnan(l.values[value])) values.push_back(l.values[value]);
  if (values.empty()) return std::nullopt;
  return median(values);
}

std::vector<KernelFigures> figures(std::span<const KernelCounters> launches,
                                   std::span<const std::optional<MetricId>> ids) {
  std::vector<KernelFigures> out;
  for (const KernelCounters& first : launches) {
    if (std::any_of(out.begin(), out.end(), [&](const KernelFigures& k) { return k.kernel == first.kernel; })) continue;
    KernelFigures& k = out.emplace_back();
    k.kernel = first.kernel;
    for (const KernelCounters& l : launches) k.launches += l.kernel == k.kernel;
    for (const Figure& f : kFigures) {
      const auto at = std::find(ids.begin(), ids.end(), f.id);
      if (at == ids.end()) continue;
      k.*f.member = median_of(launches, k.kernel, static_cast<size_t>(at - ids.begin()));
      if (k.*f.member) *(k.*f.member) *= figure_scale(f.id);
    }
  }
  return out;
}

}  // namespace kiln::profiler::cupti
