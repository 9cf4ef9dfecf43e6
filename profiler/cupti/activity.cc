#include "profiler/cupti/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "profiler/cupti/decode.h"
#include "profiler/cupti/library.h"
#include "profiler/cupti/nvtx_listener.h"
#if KILN_HAS_CUPTI
#include "runtime/cuda/driver.h"
#endif
#include "support/diag.h"
#include "support/trace.h"

namespace kiln::profiler::cupti {

#if KILN_HAS_CUPTI

namespace {

// Records of some 15,000 launches.
constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kBufferAlign = 64;
// Made and touched before the profile starts, so that launches do not wait for page faults; CUPTI's own thread makes
// more when these run short.
constexpr size_t kSpareBuffers = 4;

// What is asked for, and what a profile lacks where CUPTI refuses it. Without the kernels there is no profile.
struct Asked {
  CUpti_ActivityKind kind;
  const char* shows;
};
constexpr const char* kLibraryRanges = "NVTX ranges of libraries";
constexpr CUpti_ActivityKind kKernels = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
constexpr Asked kAsked[] = {
    {kKernels, "kernels"},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between GPUs"},
    {CUPTI_ACTIVITY_KIND_MEMSET, "fills"},
    {CUPTI_ACTIVITY_KIND_DRIVER, "calls of the driver"},
    {CUPTI_ACTIVITY_KIND_RUNTIME, "calls of the CUDA runtime"},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "waits"},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, "overheads of the driver and of the profiler"},
    {CUPTI_ACTIVITY_KIND_JIT, "what the driver compiles"},
    {CUPTI_ACTIVITY_KIND_MARKER, kLibraryRanges},
};

// How the calls begin that a profile shows, in all their versions; each of them costs its callers time, so the others
// are left out. Libraries on top of the CUDA runtime launch by its calls, and then the driver's are not reported.
constexpr std::string_view kDriverCalls[] = {
    "cuLaunch",      "cuGraphLaunch",    "cuGraphInstantiate", "cuMemcpy",           "cuMemset",
    "cuMemAlloc",    "cuMemFree",        "cuMemHostAlloc",     "cuMemHostRegister",  "cuStreamSynchronize",
    "cuStreamQuery", "cuCtxSynchronize", "cuStreamWaitEvent",  "cuEventSynchronize", "cuEventQuery",
    "cuModuleLoad",  "cuModuleUnload",   "cuLibraryLoad",      "cuLibraryUnload",    "cuOccupancy",
};
constexpr std::string_view kRuntimeCalls[] = {
    "cudaLaunch",
    "cudaGraphLaunch",
    "cudaGraphInstantiate",
    "cudaMemcpy",
    "cudaMemset",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaHostRegister",
    "cudaStreamSynchronize",
    "cudaStreamQuery",
    "cudaStreamWaitEvent",
    "cudaEventSynchronize",
    "cudaEventQuery",
    "cudaDeviceSynchronize",
    "cudaOccupancy",
};

// Where CUPTI's threads take and return buffers. Its callbacks carry no user data, and may run after
// our statics are gone: one, never destroyed.
class Buffers {
 public:
  static Buffers& get() {
    static auto* buffers = new Buffers;
    return *buffers;
  }

  /// Buffers go to `decoder` until close().
  void open(Decoder* decoder) {
    {
      std::lock_guard lock(spare_mutex_);
      while (spare_.size() < kSpareBuffers) {
        uint8_t* made = make();
        if (!made) break;
        spare_.push_back(made);
      }
    }
    std::lock_guard lock(decoder_mutex_);
    decoder_ = decoder;
  }

  void close() {
    {
      std::lock_guard lock(decoder_mutex_);
      decoder_ = nullptr;
    }
    std::lock_guard lock(spare_mutex_);
    for (uint8_t* buffer : spare_) std::free(buffer);
    spare_.clear();
  }

  static void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
    *buffer = get().take();
    *size = *buffer ? kBufferBytes : 0;  // none: CUPTI drops records and counts them
    *max_records = 0;                    // as many as fit
  }

  static void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    get().give_back(buffer, valid);
  }

 private:
  static uint8_t* make() {
    auto* buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlign, kBufferBytes));
    if (buffer) std::memset(buffer, 0, kBufferBytes);
    return buffer;
  }

  // On the thread that launches: no lock that decoding holds.
  uint8_t* take() {
    {
      std::lock_guard lock(spare_mutex_);
      if (!spare_.empty()) {
        uint8_t* buffer = spare_.back();
        spare_.pop_back();
        return buffer;
      }
    }
    return make();
  }

  void give_back(uint8_t* buffer, size_t valid) {
    std::lock_guard lock(decoder_mutex_);
    if (!decoder_) {
      std::free(buffer);
      return;
    }
    decoder_->read(buffer, valid);
    std::memset(buffer, 0, valid);  // CUPTI is configured to expect zeroed buffers
    keep(buffer);
    if (uint8_t* more = is_short() ? make() : nullptr) keep(more);
  }

  void keep(uint8_t* buffer) {
    std::lock_guard lock(spare_mutex_);
    spare_.push_back(buffer);
  }
  bool is_short() {
    std::lock_guard lock(spare_mutex_);
    return spare_.size() < 2;
  }

  std::mutex decoder_mutex_;
  Decoder* decoder_ = nullptr;
  std::mutex spare_mutex_;
  std::vector<uint8_t*> spare_;
};

uint64_t CUPTIAPI timestamp() { return static_cast<uint64_t>(trace::now_ns()); }

void CUPTIAPI no_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

class ActivityCollector final : public Collector {
 public:
  explicit ActivityCollector(std::shared_ptr<const Library> library)
      : library_(std::move(library)), lib_(library_.get()), decoder_(*lib_) {}
  ~ActivityCollector() override {
    if (attached_) abandon();
  }

  Status start() override {
    attached_ = true;
    Status s = attach();
    if (!s.ok()) abandon();
    return s;
  }

  Status stop(Timeline& into) override {
    KILN_ASSERT(attached_, "a collector is stopped once, after its start");
    // First off, then flush: flushing makes records of its own. The device is idle, so every record is complete, and
    // the second flush leaves none behind in buffers that are not full.
    Failure first = disable();
    first.keep(lib_->cuptiActivityFlushAll(0), "cuptiActivityFlushAll(0)");
    first.keep(lib_->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll(forced)");
    size_t dropped = 0;
    first.keep(lib_->cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), "cuptiActivityGetNumDroppedRecords");
    first.keep(detach());
    decoder_.finish(into.end, into);
    for (Unknown& u : refused_) into.unknown.push_back(std::move(u));
    if (auto why = why_no_library_ranges(lib_->library.path()))
      into.unknown.push_back({kLibraryRanges, *std::move(why)});
    into.dropped += static_cast<int64_t>(dropped);
    if (dropped)
      into.unknown.push_back({fmt::format("{} records", dropped), "CUPTI had no buffer for them and dropped them"});
    // What was seen stands; that something of it may be missing is said.
    if (first.code != CUPTI_SUCCESS)
      into.unknown.push_back({"whether all of the GPU's side was seen", lib_->failure(first.code, first.call).message});
    return {};
  }

 private:
  Status attach() {
    KILN_CHECK_OK(subscribe());
    KILN_CUPTI_TRY(lib_, cuptiActivityEnableLatencyTimestamps(1));
    KILN_CUPTI_TRY(lib_, cuptiActivityRegisterTimestampCallback(timestamp));
    KILN_CUPTI_TRY(lib_, cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    uint8_t zeroed = 1;  // else the thread that launches would clear each buffer
    size_t size = sizeof zeroed;
    KILN_CUPTI_TRY(lib_, cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed));
    Buffers::get().open(&decoder_);
    KILN_CUPTI_TRY(lib_, cuptiActivityRegisterCallbacks(Buffers::request, Buffers::complete));
    size_t earlier = 0;  // detaching drops a record of its own
    KILN_CUPTI_TRY(lib_, cuptiActivityGetNumDroppedRecords(nullptr, 0, &earlier));
    for (const Asked& asked : kAsked) {
      CUptiResult code = lib_->cuptiActivityEnable(asked.kind);
      if (code == CUPTI_SUCCESS) continue;
      Diagnostic refused = lib_->failure(code, fmt::format("cuptiActivityEnable({})", int{asked.kind}));
      if (asked.kind == kKernels) return refused;
      refused_.push_back({asked.shows, std::move(refused.message)});
    }
    // Single calls that are enabled once CUDA runs are not reported (CUPTI 13.0), so: all of them, and then fewer.
    for (CUpti_CallbackId call : calls_but(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, kDriverCalls))
      KILN_CUPTI_TRY(lib_, cuptiActivityEnableDriverApi(call, 0));
    for (CUpti_CallbackId call : calls_but(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, kRuntimeCalls))
      KILN_CUPTI_TRY(lib_, cuptiActivityEnableRuntimeApi(call, 0));
    return {};
  }

  Status subscribe() {
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = {};
    CUpti_SubscriberParams params = {};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "Kiln";
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = sizeof holder;
    CUptiResult code = lib_->cuptiSubscribe_v2(&subscriber_, no_callback, nullptr, &params);
    if (code == CUPTI_SUCCESS) {
      subscribed_ = true;
      return {};
    }
    holder[sizeof holder - 1] = 0;
    if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && holder[0])
      return error(ErrorKind::kDevice, "another profiler is attached to this process: {}", holder);
    return lib_->failure(code, "cuptiSubscribe_v2(&subscriber_, …)");
  }

  // Every call of a domain whose name does not begin like one of `chosen`.
  std::vector<CUpti_CallbackId> calls_but(CUpti_CallbackDomain domain, CUpti_CallbackId end,
                                          std::span<const std::string_view> chosen) const {
    std::vector<CUpti_CallbackId> others;
    for (CUpti_CallbackId id = 1; id < end; ++id) {
      const char* text = nullptr;
      if (lib_->cuptiGetCallbackName(domain, id, &text) != CUPTI_SUCCESS || !text) continue;
      const std::string_view name = text;
      if (std::none_of(chosen.begin(), chosen.end(), [&](std::string_view begin) { return name.starts_with(begin); }))
        others.push_back(id);
    }
    return others;
  }

  // Of a profile that nobody will read.
  void abandon() {
    if (subscribed_) (void)disable();
    (void)detach();
  }

  // The first of several failures.
  struct Failure {
    void keep(CUptiResult other, const char* what) {
      if (code == CUPTI_SUCCESS && other != CUPTI_SUCCESS) code = other, call = what;
    }
    void keep(const Failure& other) { keep(other.code, other.call); }

    CUptiResult code = CUPTI_SUCCESS;
    const char* call = "";
  };

  Failure disable() {
    Failure first;
    for (const Asked& asked : kAsked) {
      CUptiResult code = lib_->cuptiActivityDisable(asked.kind);
      if (refused_.empty()) first.keep(code, "cuptiActivityDisable");
    }
    return first;
  }

  // Gives the process back as it was. Without cuptiFinalize launches keep costing 0.6 µs more, and graphs several times
  // their time (H200, CUPTI 13.0); after it CUPTI attaches again as if for the first time.
  Failure detach() {
    attached_ = false;
    Failure first;
    // Without a subscription nothing was changed: the present state belongs to another profile.
    if (!std::exchange(subscribed_, false)) return first;
    first.keep(lib_->cuptiUnsubscribe(subscriber_), "cuptiUnsubscribe");
    first.keep(lib_->cuptiFinalize(), "cuptiFinalize");
    Buffers::get().close();
    return first;
  }

  std::shared_ptr<const Library> library_;
  const Library* lib_;
  Decoder decoder_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::vector<Unknown> refused_;
  bool attached_ = false, subscribed_ = false;
};

}  // namespace

Result<std::unique_ptr<Collector>> make_activity_collector() {
  KILN_TRY([[maybe_unused]] auto driver, runtime::Driver::open());  // its own error is the clearest
  KILN_TRY(auto library, Library::open());
  return std::unique_ptr<Collector>(std::make_unique<ActivityCollector>(std::move(library)));
}

#else

Result<std::unique_ptr<Collector>> make_activity_collector() { return built_without(); }

#endif

}  // namespace kiln::profiler::cupti
