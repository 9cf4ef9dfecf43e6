#include "profiler/cupti/pc_sampling.h"

#include <map>
#include <vector>

#include "profiler/cupti/library.h"
#include "support/diag.h"
#if KILN_HAS_CUPTI
#include "runtime/cuda/driver.h"
#include "runtime/device/device.h"
#include "support/ptx_name.h"
#endif

namespace kiln::profiler::cupti {

#if KILN_HAS_CUPTI

namespace {

constexpr size_t kPcsAtOnce = 4096;
// CUPTI's limits of the logarithm of cycles.
constexpr int kShortestPeriod = 5, kLongestPeriod = 31;

/// A struct of PC sampling's parameters for a context, empty otherwise.
#define KILN_SAMPLING_PARAMS(type, name) \
  type name{};                           \
  name.size = type##Size;                \
  name.ctx = context_

/// Memory into which CUPTI writes the samples of many pcs.
class PcBuffer {
 public:
  explicit PcBuffer(size_t reasons) : pcs_(kPcsAtOnce), stalls_(kPcsAtOnce * reasons) {
    for (size_t i = 0; i < pcs_.size(); ++i) {
      pcs_[i].size = sizeof(CUpti_PCSamplingPCData);
      pcs_[i].stallReason = &stalls_[i * reasons];
    }
    data.size = sizeof data;
    data.collectNumPcs = pcs_.size();
    data.pPcData = pcs_.data();
  }
  PcBuffer(const PcBuffer&) = delete;
  PcBuffer& operator=(const PcBuffer&) = delete;

  CUpti_PCSamplingData data = {};

 private:
  std::vector<CUpti_PCSamplingPCData> pcs_;
  std::vector<CUpti_PCSamplingStallReason> stalls_;
};

class Sampler : public PcSampler {
 public:
  Sampler(Device device, std::shared_ptr<const Library> library, CUcontext context)
      : device_(std::move(device)), library_(std::move(library)), context_(context) {}
  ~Sampler() override {
    // Also here, so that the next one to attach finds CUPTI as new (see finish()).
    if (enabled_) disable(), library_->cuptiFinalize();
  }

  Status enable(const SamplingOptions& options) {
    // Where hardware counters were read before, CUPTI would count the kernels as the driver's own (see finish()).
    KILN_CUPTI_TRY(library_, cuptiFinalize());
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingEnableParams, p);
    KILN_CUPTI_TRY(library_, cuptiPCSamplingEnable(&p));
    enabled_ = true;
    KILN_CHECK_OK(read_reasons());
    return configure(options);
  }

  Status start() override {
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingStartParams, p);
    KILN_CUPTI_TRY(library_, cuptiPCSamplingStart(&p));
    return {};
  }

  Status stop() override {
    // The samples of what still runs are wanted too. Its error comes after stopping, which must be done either way.
    Status idle = device_.synchronize();
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingStopParams, p);
    KILN_CUPTI_TRY(library_, cuptiPCSamplingStop(&p));
    KILN_CHECK_OK(std::move(idle));
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingGetDataParams, get);
    get.pcSamplingData = &taken_->data;
    do {
      const CUptiResult code = library_->cuptiPCSamplingGetData(&get);
      if (code == CUPTI_ERROR_OUT_OF_MEMORY)
        return error(ErrorKind::kDevice,
                     "the GPU's buffer of samples overflowed: sample more rarely than every {} cycles, or less work",
                     int64_t{1} << run_.period_log2);
      if (code != CUPTI_SUCCESS) return library_->failure(code, "cuptiPCSamplingGetData(&p)");
      take(taken_->data);
    } while (taken_->data.remainingNumPcs > 0);
    return {};
  }

  int64_t samples() const override { return run_.total; }

  Result<SampleRun> finish() override {
    const CUptiResult code = disable();
    if (code != CUPTI_SUCCESS) return library_->failure(code, "cuptiPCSamplingDisable(&p)");
    // Disabling writes what was left into the buffer that configure() gave.
    take(at_end_->data);
    // CUPTI looks at a process's modules when it attaches for the first time only: attached again, it would not know
    // the kernels that were not sampled then (H200, CUPTI 13.0). After this it attaches as if for the first time.
    KILN_CUPTI_TRY(library_, cuptiFinalize());
    for (auto& [key, pcs] : seen_) {
      SampledFunction f;
      f.name = key.first, f.code = key.second;
      for (auto& [pc, counts] : pcs) f.pcs.push_back({pc, counts});
      run_.functions.push_back(std::move(f));
    }
    return std::move(run_);
  }

 private:
  Status read_reasons() {
    size_t count = 0;
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingGetNumStallReasonsParams, p);
    p.numStallReasons = &count;
    KILN_CUPTI_TRY(library_, cuptiPCSamplingGetNumStallReasons(&p));
    std::vector<char> texts(count * CUPTI_STALL_REASON_STRING_SIZE);
    std::vector<char*> names(count);
    for (size_t i = 0; i < count; ++i) names[i] = &texts[i * CUPTI_STALL_REASON_STRING_SIZE];
    reasons_.resize(count);
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingGetStallReasonsParams, get);
    get.numStallReasons = count;
    get.stallReasonIndex = reasons_.data();
    get.stallReasons = names.data();
    KILN_CUPTI_TRY(library_, cuptiPCSamplingGetStallReasons(&get));
    for (size_t i = 0; i < count; ++i) counters_[reasons_[i]] = parse_stall_counter(names[i]);
    return {};
  }

  Status configure(const SamplingOptions& options) {
    using Info = CUpti_PCSamplingConfigurationInfo;
    taken_ = std::make_unique<PcBuffer>(reasons_.size());
    at_end_ = std::make_unique<PcBuffer>(reasons_.size());
    std::vector<Info> infos;
    auto attribute = [&](CUpti_PCSamplingConfigurationAttributeType type) -> decltype(Info::attributeData)& {
      infos.emplace_back().attributeType = type;
      return infos.back().attributeData;
    };
    // Whole statements are sampled, so launches need not be distinguished, and kernels may overlap.
    attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE).collectionModeData.collectionMode =
        CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL)
        .enableStartStopControlData.enableStartStopControl = 1;
    attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT).outputDataFormatData.outputDataFormat =
        CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED;
    auto& stalls = attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON).stallReasonData;
    stalls.stallReasonCount = reasons_.size();
    stalls.pStallReasonIndex = reasons_.data();
    attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
        .samplingDataBufferData.samplingDataBuffer = &at_end_->data;
    if (options.period_log2)
      attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD).samplingPeriodData.samplingPeriod =
          static_cast<uint32_t>(options.period_log2);
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingConfigurationInfoParams, p);
    p.numAttributes = infos.size();
    p.pPCSamplingConfigurationInfo = infos.data();
    KILN_CUPTI_TRY(library_, cuptiPCSamplingSetConfigurationAttribute(&p));
    // Read back: without a wish, CUPTI chooses a period by the GPU.
    Info period = {};
    period.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    p.numAttributes = 1;
    p.pPCSamplingConfigurationInfo = &period;
    KILN_CUPTI_TRY(library_, cuptiPCSamplingGetConfigurationAttribute(&p));
    run_.period_log2 = static_cast<int>(period.attributeData.samplingPeriodData.samplingPeriod);
    return {};
  }

  CUptiResult disable() {
    KILN_SAMPLING_PARAMS(CUpti_PCSamplingDisableParams, p);
    enabled_ = false;
    return library_->cuptiPCSamplingDisable(&p);
  }

  void take(const CUpti_PCSamplingData& data) {
    run_.total += static_cast<int64_t>(data.totalSamples);
    run_.dropped += static_cast<int64_t>(data.droppedSamples);
    run_.elsewhere += static_cast<int64_t>(data.nonUsrKernelsTotalSamples);
    for (size_t i = 0; i < data.totalNumPcs; ++i) {
      // The records are packed: no references into them. Their names belong to CUPTI's other records too, and stay.
      const CUpti_PCSamplingPCData& record = data.pPcData[i];
      const uint64_t code = record.cubinCrc, pc = record.pcOffset;
      StallCounts& counts = seen_[{source_name(record.functionName ? record.functionName : ""), code}][pc];
      for (size_t s = 0; s < record.stallReasonCount; ++s) {
        const uint32_t reason = record.stallReason[s].pcSamplingStallReasonIndex;
        const auto counter = counters_.find(reason);
        if (counter == counters_.end() || !counter->second) continue;
        auto& slots = counter->second->idle ? counts.idle : counts.all;
        slots[static_cast<size_t>(counter->second->stall)] += record.stallReason[s].samples;
      }
    }
  }

  Device device_;
  std::shared_ptr<const Library> library_;
  CUcontext context_;
  bool enabled_ = false;
  std::vector<uint32_t> reasons_;
  std::map<uint32_t, std::optional<StallCounter>> counters_;
  std::unique_ptr<PcBuffer> taken_, at_end_;  // at_end_: what CUPTI still has when it is disabled
  std::map<std::pair<std::string, uint64_t>, std::map<uint64_t, StallCounts>> seen_;
  SampleRun run_;
};

/// The device's context, current on this thread.
Result<CUcontext> context_of(const Device& device, const runtime::Driver& driver) {
  runtime::Backend& backend = device.impl()->backend();
  KILN_TRY([[maybe_unused]] void* stream, backend.native_stream(backend.default_stream()));
  CUcontext context = nullptr;
  KILN_CU_TRY(&driver, cuCtxGetCurrent(&context));
  return context;
}

}  // namespace

Result<std::unique_ptr<PcSampler>> PcSampler::attach(const Device& device, const SamplingOptions& options) {
  if (!device.is_cuda())
    return error(ErrorKind::kUnsupported, "program counters are sampled on GPUs; {} has none", device.name());
  if (options.period_log2 && (options.period_log2 < kShortestPeriod || options.period_log2 > kLongestPeriod))
    return error(ErrorKind::kValue, "a sample is taken every {} to 2^{} cycles, not every 2^{}", 1 << kShortestPeriod,
                 kLongestPeriod, options.period_log2);
  KILN_TRY(std::shared_ptr<const Library> library, Library::open());
  KILN_CHECK_OK(library->need(Group::kLines));
  KILN_TRY(std::shared_ptr<const runtime::Driver> driver, runtime::Driver::open());
  KILN_TRY(CUcontext context, context_of(device, *driver));
  auto sampler = std::make_unique<Sampler>(device, std::move(library), context);
  KILN_CHECK_OK(sampler->enable(options));
  return std::unique_ptr<PcSampler>(std::move(sampler));
}

#else

Result<std::unique_ptr<PcSampler>> PcSampler::attach(const Device& device, const SamplingOptions&) {
  if (!device.is_cuda())
    return error(ErrorKind::kUnsupported, "program counters are sampled on GPUs; {} has none", device.name());
  return built_without();
}

#endif

}  // namespace kiln::profiler::cupti
