#include "profiler/cupti/host_profiler.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "support/diag.h"

namespace kiln::profiler::cupti {

std::string_view name(BaseMetric::Kind kind) {
  switch (kind) {
    case BaseMetric::Kind::kCounter:
      return "counter";
    case BaseMetric::Kind::kRatio:
      return "ratio";
    case BaseMetric::Kind::kThroughput:
      return "throughput";
  }
  return "";
}

#if KILN_HAS_CUPTI

namespace {

constexpr std::array kKinds = {BaseMetric::Kind::kCounter, BaseMetric::Kind::kRatio, BaseMetric::Kind::kThroughput};

CUpti_MetricType cupti_type(BaseMetric::Kind kind) {
  switch (kind) {
    case BaseMetric::Kind::kCounter:
      return CUPTI_METRIC_TYPE_COUNTER;
    case BaseMetric::Kind::kRatio:
      return CUPTI_METRIC_TYPE_RATIO;
    case BaseMetric::Kind::kThroughput:
      return CUPTI_METRIC_TYPE_THROUGHPUT;
  }
  return CUPTI_METRIC_TYPE__COUNT;
}

// "sm__cycles_active.avg.per_second": the counter is in front of the first dot, roll-ups behind it.
std::string_view base_of(std::string_view metric) { return metric.substr(0, metric.find('.')); }

std::vector<const char*> pointers(std::span<const std::string> texts) {
  std::vector<const char*> out;
  for (const std::string& t : texts) out.push_back(t.c_str());
  return out;
}

}  // namespace

Result<std::vector<std::string>> HostProfiler::chips(const Library& library) {
  KILN_CHECK_OK(library.need(Group::kCounters));
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetSupportedChips_Params, p);
  if (const CUptiResult code = library.cuptiProfilerHostGetSupportedChips(&p); code != CUPTI_SUCCESS)
    return with_note(library.failure(code, "cuptiProfilerHostGetSupportedChips(&p)"),
                     "help: it loads libnvperf_host.so, which the toolkit has beside " + library.library.path());
  std::vector<std::string> names(p.ppChipNames, p.ppChipNames + p.numChips);
  std::sort(names.begin(), names.end());
  return names;
}

Result<HostProfiler> HostProfiler::make(const std::shared_ptr<const Library>& library, const std::string& chip,
                                        std::span<const uint8_t> availability) {
  // Asked first: an unknown chip must not become some other one.
  KILN_TRY(std::vector<std::string> known, chips(*library));
  if (std::find(known.begin(), known.end(), chip) == known.end())
    return error(ErrorKind::kValue, "CUPTI {} knows no chip '{}'; it knows {}", library->library.path(), chip,
                 fmt::join(known, ", "));
  HostProfiler made(library, chip);
  made.availability_.assign(availability.begin(), availability.end());
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params, p);
  p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  p.pChipName = made.chip_.c_str();
  p.pCounterAvailabilityImage = availability.empty() ? nullptr : made.availability_.data();
  KILN_CUPTI_TRY(library, cuptiProfilerHostInitialize(&p));
  made.object_ = p.pHostObject;
  return made;
}

HostProfiler::HostProfiler(HostProfiler&& other) noexcept
    : library_(std::move(other.library_)),
      chip_(std::move(other.chip_)),
      availability_(std::move(other.availability_)),
      object_(std::exchange(other.object_, nullptr)) {}

HostProfiler::~HostProfiler() {
  if (!object_) return;
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, p);
  p.pHostObject = object_;
  library_->cuptiProfilerHostDeinitialize(&p);
}

Result<std::vector<BaseMetric>> HostProfiler::base_metrics() const {
  std::vector<BaseMetric> all;
  for (BaseMetric::Kind kind : kKinds) {
    KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, p);
    p.pHostObject = object_;
    p.metricType = cupti_type(kind);
    KILN_CUPTI_TRY(library_, cuptiProfilerHostGetBaseMetrics(&p));
    const size_t first = all.size();
    for (size_t i = 0; i < p.numMetrics; ++i) all.push_back({kind, p.ppMetricNames[i]});
    std::sort(all.begin() + static_cast<ptrdiff_t>(first), all.end(),
              [](const BaseMetric& a, const BaseMetric& b) { return a.name < b.name; });
  }
  return all;
}

Result<std::vector<std::string>> HostProfiler::roll_ups(const BaseMetric& metric) const {
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetSubMetrics_Params, p);
  p.pHostObject = object_;
  p.metricType = cupti_type(metric.kind);
  p.pMetricName = metric.name.c_str();
  KILN_CUPTI_TRY(library_, cuptiProfilerHostGetSubMetrics(&p));
  return std::vector<std::string>(p.ppSubMetrics, p.ppSubMetrics + p.numOfSubmetrics);
}

std::string HostProfiler::description(const std::string& metric) const {
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetMetricProperties_Params, p);
  p.pHostObject = object_;
  p.pMetricName = metric.c_str();
  const bool known = library_->cuptiProfilerHostGetMetricProperties(&p) == CUPTI_SUCCESS && p.pDescription;
  return known ? p.pDescription : "";
}

bool HostProfiler::has(const std::string& metric) const {
  // Adding it to an object of its own is the one question that looks at the roll-up too.
  auto alone = make(library_, chip_, availability_);
  return alone.ok() && alone->add(std::span(&metric, 1)).ok();
}

Diagnostic HostProfiler::unknown_metric(const std::string& metric) const {
  Diagnostic d = error(ErrorKind::kName, "{} has no metric '{}'", chip_, metric);
  auto all = base_metrics();
  if (!all.ok()) return d;
  std::vector<std::string> names;
  for (const BaseMetric& m : *all) {
    names.push_back(m.name);
    if (m.name != base_of(metric)) continue;
    auto endings = roll_ups(m);
    return endings.ok() ? with_note(std::move(d),
                                    fmt::format("help: {} is followed by one of {}", m.name, fmt::join(*endings, ", ")))
                        : d;
  }
  std::string near = nearest_name(std::string(base_of(metric)), names);
  return with_note(std::move(d), near.empty() ? std::string("help: %counters --list FILTER lists them")
                                              : fmt::format("help: did you mean '{}'?", near));
}

Status HostProfiler::add(std::span<const std::string> metrics) {
  std::vector<const char*> names = pointers(metrics);
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, p);
  p.pHostObject = object_;
  p.ppMetricNames = names.data();
  p.numMetrics = names.size();
  CUptiResult all = library_->cuptiProfilerHostConfigAddMetrics(&p);
  if (all == CUPTI_SUCCESS) return {};
  // The call fails for all names together; which one it was, only asking one by one tells.
  if (metrics.size() > 1)
    for (const std::string& m : metrics)
      if (!has(m)) return unknown_metric(m);
  if (metrics.size() == 1) return unknown_metric(metrics[0]);
  return library_->failure(all, "cuptiProfilerHostConfigAddMetrics(&p)");
}

Result<std::vector<uint8_t>> HostProfiler::config_image() const {
  // CUPTI's images are asked for twice: for their size, then for their bytes.
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
  size.pHostObject = object_;
  KILN_CUPTI_TRY(library_, cuptiProfilerHostGetConfigImageSize(&size));
  std::vector<uint8_t> image(size.configImageSize);
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, p);
  p.pHostObject = object_;
  p.configImageSize = image.size();
  p.pConfigImage = image.data();
  KILN_CUPTI_TRY(library_, cuptiProfilerHostGetConfigImage(&p));
  return image;
}

Result<int> HostProfiler::passes(std::vector<uint8_t>& config_image) const {
  // CUPTI changes nothing there; its structure just has no const.
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, p);
  p.configImageSize = config_image.size();
  p.pConfigImage = config_image.data();
  KILN_CUPTI_TRY(library_, cuptiProfilerHostGetNumOfPasses(&p));
  return static_cast<int>(p.numOfPasses);
}

Result<std::vector<double>> HostProfiler::values(std::span<const uint8_t> counters, size_t range,
                                                 std::span<const std::string> metrics) const {
  std::vector<const char*> names = pointers(metrics);
  std::vector<double> out(metrics.size());
  KILN_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);
  p.pHostObject = object_;
  p.pCounterDataImage = counters.data();
  p.counterDataImageSize = counters.size();
  p.rangeIndex = range;
  p.ppMetricNames = names.data();
  p.numMetrics = names.size();
  p.pMetricValues = out.data();
  KILN_CUPTI_TRY(library_, cuptiProfilerHostEvaluateToGpuValues(&p));
  return out;
}

#endif

}  // namespace kiln::profiler::cupti
