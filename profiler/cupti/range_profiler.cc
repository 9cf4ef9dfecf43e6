#include "profiler/cupti/range_profiler.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include "compiler/target/target.h"
#include "profiler/cupti/host_profiler.h"
#include "runtime/device/device.h"
#include "runtime/device/graph_refusal.h"
#include "support/diag.h"

#if KILN_HAS_CUPTI
#include "runtime/cuda/driver.h"
#include "support/ptx_name.h"
#endif

namespace kiln::profiler::cupti {

Result<std::string> chip_of_target(std::string_view target) {
  const target::Target* t = target::find(target);
  if (t && !t->chip.empty()) return std::string(t->chip);
  return with_note(error(ErrorKind::kUnsupported, "hardware counters are of GPUs; the target is {}", target),
                   fmt::format("help: choose a GPU's with %target {}", target::kDefaultGpu));
}

#if KILN_HAS_CUPTI

namespace {

constexpr const char* kGraphName = "CUDA graph";

Result<std::shared_ptr<const Library>> library_for_counters() {
  KILN_TRY(std::shared_ptr<const Library> library, Library::open());
  KILN_CHECK_OK(library->need(Group::kCounters));
  return library;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The context of a device and its number, current on this thread.
struct Context {
  std::shared_ptr<const runtime::Driver> driver;
  CUcontext context = nullptr;
  CUdevice device = 0;
};

Result<Context> context_of(const Device& device) {
  if (!device.is_cuda())
    return error(ErrorKind::kUnsupported, "hardware counters are of GPUs; {} has none", device.name());
  Context c;
  KILN_TRY(c.driver, runtime::Driver::open());
  runtime::Backend& backend = device.impl()->backend();
  // Makes the context current.
  KILN_TRY([[maybe_unused]] void* stream, backend.native_stream(backend.default_stream()));
  KILN_CU_TRY(c.driver, cuCtxGetCurrent(&c.context));
  const std::string& name = device.name();  // "cuda:1"
  KILN_CU_TRY(c.driver, cuDeviceGet(&c.device, std::stoi(name.substr(name.find(':') + 1))));
  return c;
}

// CUPTI asks the driver without looking whether there is one, so nobody gets here without a context.
Result<std::string> chip_of(const Library& library, const Context& context) {
  KILN_CUPTI_PARAMS(CUpti_Device_GetChipName_Params, p);
  p.deviceIndex = static_cast<size_t>(context.device);
  KILN_CUPTI_TRY(&library, cuptiDeviceGetChipName(&p));
  return std::string(p.pChipName);
}

// Why a device does not let itself be profiled, as far as CUPTI tells before it tries.
Status supported(const Library& library, const Context& context) {
  KILN_CUPTI_PARAMS(CUpti_Profiler_DeviceSupported_Params, p);
  p.cuDevice = context.device;
  p.api = CUPTI_PROFILER_RANGE_PROFILING;
  KILN_CUPTI_TRY(&library, cuptiProfilerDeviceSupported(&p));
  if (p.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return {};
  const std::pair<CUpti_Profiler_Support_Level, const char*> kReasons[] = {
      {p.architecture, "its generation is too old"},
      {p.vGpu, "it is a virtual GPU whose profiling is off"},
      {p.confidentialCompute, "confidential computing hides them"},
      {p.sli, "it is one of several joined by SLI"},
      {p.cmp, "it is a mining card"},
      {p.wsl, "this WSL does not show them"}};
  for (const auto& [level, why] : kReasons)
    if (level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
      return error(ErrorKind::kDevice, "the counters of this GPU are not to be had: {}", why);
  return error(ErrorKind::kDevice, "the counters of this GPU are unavailable; CUPTI gives no reason");
}

Result<std::vector<uint8_t>> counter_availability(const Library& library, const Context& context) {
  // Asked twice: the first call gives the size.
  KILN_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, p);
  p.ctx = context.context;
  KILN_CUPTI_TRY(&library, cuptiProfilerGetCounterAvailability(&p));
  std::vector<uint8_t> image(p.counterAvailabilityImageSize);
  p.pCounterAvailabilityImage = image.data();
  KILN_CUPTI_TRY(&library, cuptiProfilerGetCounterAvailability(&p));
  return image;
}

// CUPTI's hooks in the driver, as long as it lives.
class Hooks {
 public:
  static Result<std::unique_ptr<Hooks>> install(const Library& library) {
    KILN_CUPTI_PARAMS(CUpti_Profiler_Initialize_Params, p);
    CUptiResult code = library.cuptiProfilerInitialize(&p);
    if (code == CUPTI_ERROR_NOT_INITIALIZED) {
      // What cuptiFinalize took away comes back with the next subscriber only (H200, CUPTI 13.0).
      KILN_TRY(std::unique_ptr<LaunchNames> subscriber, LaunchNames::start());
      subscriber.reset();
      code = library.cuptiProfilerInitialize(&p);
    }
    if (code != CUPTI_SUCCESS) return library.failure(code, "cuptiProfilerInitialize(&p)");
    return std::make_unique<Hooks>(library);
  }
  explicit Hooks(const Library& library) : library_(library) {}
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;
  ~Hooks() {
    KILN_CUPTI_PARAMS(CUpti_Profiler_DeInitialize_Params, p);
    library_.cuptiProfilerDeInitialize(&p);
  }

 private:
  const Library& library_;
};

// A context whose launches are counted.
class RangeProfiler {
 public:
  static Result<std::unique_ptr<RangeProfiler>> enable(const Library& library, const Context& context) {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params, p);
    p.ctx = context.context;
    KILN_CUPTI_TRY(&library, cuptiRangeProfilerEnable(&p));
    return std::make_unique<RangeProfiler>(library, p.pRangeProfilerObject);
  }
  RangeProfiler(const Library& library, CUpti_RangeProfiler_Object* object) : library_(library), object_(object) {}
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;
  ~RangeProfiler() {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params, p);
    p.pRangeProfilerObject = object_;
    library_.cuptiRangeProfilerDisable(&p);
  }

  // Every launch a range, run as often as the passes need.
  Status configure(const std::vector<uint8_t>& config, std::span<const std::string> metrics, size_t ranges) {
    std::vector<const char*> names;
    for (const std::string& m : metrics) names.push_back(m.c_str());
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
    size.pRangeProfilerObject = object_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(ranges);
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerGetCounterDataSize(&size));
    counters_.resize(size.counterDataSize);
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, init);
    init.pRangeProfilerObject = object_;
    init.counterDataSize = counters_.size();
    init.pCounterData = counters_.data();
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerCounterDataImageInitialize(&init));
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params, p);
    p.pRangeProfilerObject = object_;
    p.configSize = config.size();
    p.pConfig = config.data();
    p.counterDataImageSize = counters_.size();
    p.pCounterDataImage = counters_.data();
    // A range for each launch, without marks in the program.
    p.range = CUPTI_AutoRange;
    // The driver saves and restores memory around each pass, so that a kernel finds the same inputs.
    p.replayMode = CUPTI_KernelReplay;
    p.maxRangesPerPass = ranges;
    p.numNestingLevels = 1;
    p.minNestingLevel = 1;
    p.passIndex = 0;
    p.targetNestingLevel = 1;
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerSetConfig(&p));
    return {};
  }

  Status start() {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params, p);
    p.pRangeProfilerObject = object_;
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerStart(&p));
    return {};
  }
  // Whether every pass was submitted.
  Result<bool> stop() {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params, p);
    p.pRangeProfilerObject = object_;
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerStop(&p));
    return p.isAllPassSubmitted != 0;
  }
  // Ranges for which there was no room.
  Result<size_t> decode() {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params, p);
    p.pRangeProfilerObject = object_;
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerDecodeData(&p));
    return p.numOfRangeDropped;
  }
  Result<size_t> ranges() const {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, p);
    p.pCounterDataImage = counters_.data();
    p.counterDataImageSize = counters_.size();
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerGetCounterDataInfo(&p));
    return p.numTotalRanges;
  }
  // CUPTI's name of a range: with automatic ranges a number.
  Result<std::string> range_name(size_t range) const {
    KILN_CUPTI_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, p);
    p.pCounterDataImage = counters_.data();
    p.counterDataImageSize = counters_.size();
    p.rangeIndex = range;
    p.rangeDelimiter = "/";
    KILN_CUPTI_TRY(&library_, cuptiRangeProfilerCounterDataGetRangeInfo(&p));
    return std::string(p.rangeName ? p.rangeName : "");
  }
  std::span<const uint8_t> counters() const { return counters_; }

 private:
  const Library& library_;
  CUpti_RangeProfiler_Object* object_;
  std::vector<uint8_t> counters_;
};

class Subscription : public LaunchNames {
 public:
  explicit Subscription(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  ~Subscription() override {
    if (handle_) library_->cuptiUnsubscribe(handle_);
  }

  Status subscribe() {
    // CUPTI writes the name of a subscriber that is in the way.
    char other[CUPTI_SUBSCRIBER_NAME_MAX_LEN + 11] = {};
    KILN_CUPTI_PARAMS(CUpti_SubscriberParams, p);
    p.subscriberName = "Kiln counters";
    p.oldSubscriberName = other;
    p.oldSubscriberSize = sizeof(other);
    CUptiResult code = library_->cuptiSubscribe_v2(&handle_, &Subscription::on_call, this, &p);
    if (code != CUPTI_SUCCESS) {
      handle_ = nullptr;
      Diagnostic d = library_->failure(code, "cuptiSubscribe_v2(&handle_, on_call, this, &p)");
      return other[0] ? with_note(std::move(d), fmt::format("the other one is '{}'", other)) : d;
    }
    // Launches alone, so that no other call pays for a callback.
    for (CUpti_CallbackId id : kLaunches)
      KILN_CUPTI_TRY(library_, cuptiEnableCallback(1, handle_, CUPTI_CB_DOMAIN_DRIVER_API, id));
    return {};
  }

  std::vector<std::string> names() const override {
    std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  static constexpr CUpti_CallbackId kLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                   CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                                   CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                                   CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                                   CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                                   CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
                                                   CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                                                   CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz};

  // "void at::elementwise<4>(int)" → "at::elementwise<4>"; names that are not C++'s stay as they are.
  static std::string readable(const char* symbol) {
    int failed = 0;
    std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &failed), std::free);
    if (failed || !text) return source_name(symbol);
    std::string name = text.get();
    if (name.starts_with("void ")) name.erase(0, 5);
    int depth = 0;
    for (size_t i = 0; i < name.size(); ++i) {
      if (name[i] == '<') ++depth;
      // Parentheses within template arguments are no parameters.
      if (name[i] == '>') --depth;
      if (name[i] == '(' && depth == 0 && i > 0) return name.substr(0, i);
    }
    return name;
  }

  static void CUPTIAPI on_call(void* self, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
    const auto* call = static_cast<const CUpti_CallbackData*>(data);
    if (call->callbackSite != CUPTI_API_ENTER) return;
    const bool graph = id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
    auto* names = static_cast<Subscription*>(self);
    std::lock_guard lock(names->mutex_);
    names->names_.push_back(graph ? kGraphName : call->symbolName ? readable(call->symbolName) : "");
  }

  std::shared_ptr<const Library> library_;
  CUpti_SubscriberHandle handle_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::vector<std::string>> chips() {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  return HostProfiler::chips(*library);
}

Result<std::string> chip_of(const Device& device) {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  KILN_TRY(Context context, context_of(device));
  // Without its hooks CUPTI looks for the chip through a null pointer.
  KILN_TRY(std::unique_ptr<Hooks> hooks, Hooks::install(*library));
  return chip_of(*library, context);
}

Result<CounterPreview> preview(const std::string& chip, std::span<const std::string> metrics) {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  KILN_TRY(HostProfiler host, HostProfiler::make(library, chip));
  CounterPreview p{chip, static_cast<int>(metrics.size()), 0};
  if (metrics.empty()) return p;
  KILN_CHECK_OK(host.add(metrics));
  KILN_TRY(std::vector<uint8_t> image, host.config_image());
  KILN_TRY(p.passes, host.passes(image));
  return p;
}

Result<Resolved> resolve(const std::string& chip, std::span<const Metric* const> metrics) {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  KILN_TRY(HostProfiler host, HostProfiler::make(library, chip));
  KILN_TRY(std::vector<BaseMetric> known, host.base_metrics());
  auto has = [&](std::string_view name) {
    // Known by its counter, as roll-ups are the same for all.
    const std::string_view base = name.substr(0, name.find('.'));
    return std::any_of(known.begin(), known.end(), [&](const BaseMetric& m) { return m.name == base; });
  };
  Resolved out;
  for (const Metric* m : metrics) {
    std::string_view rest = m->names, found;
    while (!rest.empty() && found.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (has(rest.substr(0, end))) found = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (found.empty()) {
      out.missing.push_back(m);
      continue;
    }
    out.metrics.push_back(m);
    out.names.emplace_back(found);
  }
  return out;
}

Result<std::vector<MetricDescription>> list_metrics(const std::string& chip, std::string_view filter) {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  KILN_TRY(HostProfiler host, HostProfiler::make(library, chip));
  KILN_TRY(std::vector<BaseMetric> known, host.base_metrics());
  std::vector<MetricDescription> out;
  for (const BaseMetric& m : known)
    if (m.name.find(filter) != std::string::npos)
      out.push_back({m.name, std::string(name(m.kind)), host.description(m.name)});
  return out;
}

Result<std::unique_ptr<LaunchNames>> LaunchNames::start() {
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  auto subscription = std::make_unique<Subscription>(library);
  KILN_CHECK_OK(subscription->subscribe());
  return std::unique_ptr<LaunchNames>(std::move(subscription));
}

Result<Collected> collect(const Device& device, std::span<const std::string> metrics, const CollectOptions& options,
                          const std::function<Status()>& run) {
  const double begin = seconds();
  KILN_TRY(std::shared_ptr<const Library> library, library_for_counters());
  KILN_TRY(Context context, context_of(device));
  // Nothing of before is counted.
  KILN_CHECK_OK(device.synchronize());
  KILN_TRY(std::unique_ptr<Hooks> hooks, Hooks::install(*library));
  KILN_CHECK_OK(supported(*library, context));
  Collected out;
  KILN_TRY(out.chip, chip_of(*library, context));
  KILN_TRY(std::vector<uint8_t> available, counter_availability(*library, context));
  KILN_TRY(HostProfiler host, HostProfiler::make(library, out.chip, available));
  KILN_CHECK_OK(host.add(metrics));
  KILN_TRY(std::vector<uint8_t> config, host.config_image());
  KILN_TRY(out.passes, host.passes(config));
  out.metrics.assign(metrics.begin(), metrics.end());
  KILN_TRY(std::unique_ptr<LaunchNames> launched, LaunchNames::start());
  KILN_TRY(std::unique_ptr<RangeProfiler> profiler, RangeProfiler::enable(*library, context));
  KILN_CHECK_OK(profiler->configure(config, metrics, static_cast<size_t>(options.max_launches)));

  const runtime::GraphRefusal no_graphs;
  const double ready = seconds();
  out.setup_s = ready - begin;
  // Kernel replay submits every pass of a launch with the launch; the loop is CUPTI's protocol.
  bool submitted = false;
  for (int round = 0; !submitted && round < std::max(out.passes, 1); ++round) {
    KILN_CHECK_OK(profiler->start());
    Status ran = run();
    Status done = device.synchronize();
    auto stopped = profiler->stop();
    // What failed first says most.
    KILN_CHECK_OK(std::move(ran));
    KILN_CHECK_OK(std::move(done));
    KILN_TRY(submitted, std::move(stopped));
  }
  out.run_s = seconds() - ready;
  if (!submitted)
    return error(ErrorKind::kDevice, "the counters need {} passes, and not all of them could be made", out.passes);
  const std::vector<std::string> names = launched->names();
  if (std::find(names.begin(), names.end(), kGraphName) != names.end())
    return with_note(error(ErrorKind::kUnsupported, "a CUDA graph was launched, whose kernels cannot be counted"),
                     "its work may not have been done: count the statements that it was captured from");
  KILN_TRY(size_t dropped, profiler->decode());
  KILN_TRY(size_t ranges, profiler->ranges());
  // CUPTI tells of dropped ranges only when a pass had no room for them, not when the image was full.
  out.dropped = static_cast<int64_t>(std::max(dropped, names.size() - std::min(names.size(), ranges)));
  // Names and ranges are in the same order. Where a name is missing, nobody can say which.
  const bool named = names.size() >= ranges;
  for (size_t i = 0; i < ranges; ++i) {
    KernelCounters& k = out.launches.emplace_back();
    if (named && !names[i].empty()) {
      k.kernel = names[i];
    } else {
      KILN_TRY(std::string range, profiler->range_name(i));
      k.kernel = "range " + range;
    }
    KILN_TRY(k.values, host.values(profiler->counters(), i, metrics));
  }
  return out;
}

#else

Result<std::vector<std::string>> chips() { return built_without(); }
Result<std::string> chip_of(const Device&) { return built_without(); }
Result<CounterPreview> preview(const std::string&, std::span<const std::string>) { return built_without(); }
Result<Resolved> resolve(const std::string&, std::span<const Metric* const>) { return built_without(); }
Result<std::vector<MetricDescription>> list_metrics(const std::string&, std::string_view) { return built_without(); }
Result<std::unique_ptr<LaunchNames>> LaunchNames::start() { return built_without(); }
Result<Collected> collect(const Device&, std::span<const std::string>, const CollectOptions&,
                          const std::function<Status()>&) {
  return built_without();
}

#endif

}  // namespace kiln::profiler::cupti
