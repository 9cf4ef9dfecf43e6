#include "runtime/cuda/cuda_backend.h"

#include <fmt/format.h>

#include "support/diag.h"

#if !KILN_HAS_CUDA

namespace kiln::runtime {

Result<std::unique_ptr<Backend>> make_cuda_backend(int, void*) { return std::move(cuda_device_count().error()); }

}  // namespace kiln::runtime

#else

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/driver_assembler.h"
#include "runtime/cuda/fault.h"
#include "runtime/cuda/fill_memory.h"
#include "runtime/cuda/roomy_kernel.h"
#include "runtime/cuda/tensor_maps.h"
#include "runtime/cuda/wait.h"
#include "support/knobs.h"
#include "support/ptx_name.h"
#include "support/stop.h"
#include "support/trace.h"

namespace kiln::runtime {
namespace {

class CudaBackend;

constexpr int kInlineParams = 64;  // of a launch without memory of its own

class CudaStream : public StreamImpl {
 public:
  enum class Owner { kKiln, kCaller };
  CudaStream(CudaBackend& backend, CUstream handle, Owner owner = Owner::kKiln);
  ~CudaStream() override;
  Status synchronize() override;
  Status wait(const EventImpl& event) override;
  bool is_idle() override;

  using StreamImpl::set_capturing;

  CudaBackend& cuda;
  CUstream handle;
  const Owner owner;
  /// The kernel launched last, and how many were launched, since the stream was last known to be idle.
  std::atomic<const LoadedKernel*> last_kernel{nullptr};
  std::atomic<int64_t> launches{0};
  std::atomic<bool> several{false};                           // kernels, not one again and again
  std::vector<std::shared_ptr<const LoadedKernel>> captured;  // kernels that the graph being captured launches
};

class CudaEvent : public EventImpl {
 public:
  CudaEvent(CudaBackend& backend, CUevent event, bool captured) : cuda(backend), handle(event), is_captured(captured) {}
  ~CudaEvent() override;
  Status synchronize() override;
  bool is_done() override;

  CudaBackend& cuda;
  CUevent handle;
  const bool is_captured;  // a mark in a graph, which the driver cannot be asked of: it would end the capture
};

class CudaGraph : public CapturedWork {
 public:
  CudaGraph(CudaBackend& backend, CUgraphExec exec, int64_t size,
            std::vector<std::shared_ptr<const LoadedKernel>> kernels)
      : cuda_(backend), exec_(exec), size_(size), kernels_(std::move(kernels)) {}
  ~CudaGraph() override;
  Status launch(StreamImpl& stream) override;
  int64_t size() const override { return size_; }

 private:
  CudaBackend& cuda_;
  CUgraphExec exec_;
  int64_t size_;
  std::vector<std::shared_ptr<const LoadedKernel>> kernels_;  // that its nodes launch
};

class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(CudaBackend& backend, const KernelImage& image) : cuda(backend) {
    name_ = image.name;
    num_params_ = image.num_params;
    threads = static_cast<unsigned>((image.num_warps + image.extra_warps) * 32);
    if (!image.tensor_maps.empty())
      tensor_maps = std::make_unique<TensorMaps>(image.name, image.tensor_maps, image.num_params);
    shared_bytes = static_cast<unsigned>(image.shared_bytes);
    num_ctas = static_cast<unsigned>(image.num_ctas);
    launch_pdl = image.launch_pdl;
    own_params = image.num_params;
    is_plain = !tensor_maps && own_params <= kInlineParams && num_ctas == 1 && !image.roomy;
  }
  ~CudaKernel() override;
  void note_roomy(bool ran) const { ran_roomy_.store(ran, std::memory_order_relaxed); }
  Status finish_load(const KernelImage& image);

  CudaBackend& cuda;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  unsigned threads, shared_bytes;
  int own_params;  // without tensor maps
  bool launch_pdl;
  bool is_plain;                            // its parameters are its slots, its programs blocks, and it has one code
  unsigned num_ctas;                        // blocks of a program, neighbours along x
  std::unique_ptr<TensorMaps> tensor_maps;  // null: the kernel takes none
  std::unique_ptr<RoomyKernel> roomy;       // null: launches choose no other code
};

class CudaBackend : public Backend {
 public:
  /// `context`: the caller's; null: the primary one.
  CudaBackend(std::shared_ptr<const Driver> driver, CUdevice device, int ordinal, CUcontext context)
      : driver_(std::move(driver)),
        launch_kernel_(driver_->cuLaunchKernel),
        device_(device),
        name_(fmt::format("cuda:{}", ordinal)),
        context_(context),
        is_callers_context_(context != nullptr),
        stream_(*this, nullptr) {
    capability_ = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                  attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    max_shared_ = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  }
  ~CudaBackend() override {
    if (!context_) return;
    if (is_hung()) return;  // the end of the process frees it all
    if (usable()) {
      if (CUstream handle = std::exchange(stream_.handle, nullptr)) driver_->cuStreamDestroy(handle);
    }
    if (!is_callers_context_) driver_->cuDevicePrimaryCtxRelease(device_);
  }

  DeviceInfo info() override {
    DeviceInfo info;
    char text[256] = {};
    if (driver_->cuDeviceGetName(text, sizeof text, device_) == CUDA_SUCCESS) info.name = text;
    info.driver = driver_->version_text();
    char bus[32] = {};
    if (driver_->cuDeviceGetPCIBusId(bus, sizeof bus, device_) == CUDA_SUCCESS) info.pci_bus = bus;
    info.compute_units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    size_t total = 0;
    if (driver_->cuDeviceTotalMem(&total, device_) == CUDA_SUCCESS) info.memory_bytes = static_cast<int64_t>(total);
    info.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    info.shared_bytes = max_shared_;
    info.max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    return info;
  }
  int capability() const override { return capability_; }

  Result<DeviceAddress> reserve(int64_t bytes) override {
    KILN_CHECK_OK(activate());
    if (limit_ >= 0 && reserved_ + bytes > limit_) return error(ErrorKind::kMemory, "over KILN_CUDA_MEMORY");
    CUdeviceptr pointer = 0;
    if (CUresult code = driver_->cuMemAlloc(&pointer, static_cast<size_t>(bytes)); code != CUDA_SUCCESS)
      return check(code, "cuMemAlloc(&pointer, bytes)").error();
    reserved_ += bytes;
    return pointer;
  }
  void release(DeviceAddress address, int64_t bytes) override {
    reserved_ -= bytes;
    free_when_idle([this, address] { driver_->cuMemFree(address); });
  }
  Result<std::shared_ptr<void>> shared_memory(int64_t bytes) override {
    KILN_CHECK_OK(activate());
    void* memory = nullptr;
    // With unified addressing, which every supported GPU has, kernels see it at the host's address.
    KILN_CHECK_OK(check(driver_->cuMemHostAlloc(&memory, static_cast<size_t>(bytes), CU_MEMHOSTALLOC_DEVICEMAP),
                        "cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP)"));
    std::memset(memory, 0, static_cast<size_t>(bytes));
    return std::shared_ptr<void>(memory, [this](void* m) { free_when_idle([this, m] { driver_->cuMemFreeHost(m); }); });
  }
  int64_t free_bytes() override {
    size_t free = 0, total = 0;
    if (!context_ || !usable() || driver_->cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return -1;
    auto bytes = static_cast<int64_t>(free);
    return limit_ >= 0 ? std::min(bytes, limit_ - reserved_) : bytes;
  }

  Result<std::unique_ptr<StreamImpl>> new_stream() override {
    KILN_CHECK_OK(activate());
    CUstream handle = nullptr;
    KILN_CHECK_OK(check(driver_->cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING)"));
    return std::unique_ptr<StreamImpl>(new CudaStream(*this, handle));
  }
  Result<std::unique_ptr<StreamImpl>> stream_of(void* native) override {
    KILN_CHECK_OK(activate());
    return std::unique_ptr<StreamImpl>(
        new CudaStream(*this, static_cast<CUstream>(native), CudaStream::Owner::kCaller));
  }
  StreamImpl& default_stream() override { return stream_; }
  Result<void*> native_stream(StreamImpl& stream) override {
    KILN_CHECK_OK(activate());
    return static_cast<void*>(queue(stream).handle);
  }

  Result<std::unique_ptr<EventImpl>> record(StreamImpl& stream) override {
    KILN_CHECK_OK(activate());
    CUevent handle = nullptr;
    KILN_CHECK_OK(check(driver_->cuEventCreate(&handle, CU_EVENT_DEFAULT), "cuEventCreate(&handle, CU_EVENT_DEFAULT)"));
    auto event = std::make_unique<CudaEvent>(*this, handle, stream.is_capturing());
    KILN_CHECK_OK(
        check(driver_->cuEventRecord(handle, queue(stream).handle), "cuEventRecord(handle, stream)", &queue(stream)));
    return std::unique_ptr<EventImpl>(std::move(event));
  }
  Result<double> elapsed_ms(const EventImpl& from, EventImpl& to) override {
    auto* start = dynamic_cast<const CudaEvent*>(&from);
    auto* end = dynamic_cast<CudaEvent*>(&to);
    if (!start || !end || &start->cuda != this || &end->cuda != this)
      return error(ErrorKind::kValue, "the events belong to another device than {}", name_);
    if (start->is_captured) return not_in_graph("the time between events");
    KILN_CHECK_OK(end->synchronize());
    float ms = 0;
    KILN_CHECK_OK(
        check(driver_->cuEventElapsedTime(&ms, start->handle, end->handle), "cuEventElapsedTime(&ms, from, to)"));
    return double{ms};
  }
  Status synchronize() override {
    if (!context_) return broken_status();
    if (captures_.load(std::memory_order_relaxed) > 0) return not_in_graph("a wait for the device");
    KILN_CHECK_OK(activate());
    std::vector<CudaStream*> all{&stream_};
    {
      std::lock_guard lock(mutex_);
      all.insert(all.end(), streams_.begin(), streams_.end());
    }
    for (CudaStream* stream : all) KILN_CHECK_OK(wait_for(*stream, 0));
    KILN_CHECK_OK(check(driver_->cuCtxSynchronize(), "cuCtxSynchronize()", &stream_));
    std::lock_guard lock(mutex_);
    idle(stream_);
    for (CudaStream* stream : streams_) idle(*stream);
    return {};
  }

  Status copy_in(DeviceAddress target, const void* source, size_t bytes, StreamImpl& stream,
                 CopyReturns returns) override {
    if (bytes == 0) return {};
    KILN_CHECK_OK(activate());
    CudaStream& q = queue(stream);
    trace::Scope span(trace::kSpans, trace::Step::kCopyIn, {}, static_cast<int64_t>(bytes), q.id());
    if (q.is_capturing()) return not_in_graph("a copy from the host");
    if (returns == CopyReturns::kWhenDone) KILN_CHECK_OK(wait_for(q, 0));  // the driver's own wait cannot be ended
    KILN_CHECK_OK(check(driver_->cuMemcpyHtoDAsync(target, source, bytes, q.handle),
                        "cuMemcpyHtoDAsync(target, source, bytes, stream)", &q));
    // From pageable memory the call returns when the source was read; from pinned memory only this makes it so.
    return returns == CopyReturns::kQueued ? Status() : q.synchronize();
  }
  Status copy_out(void* target, DeviceAddress source, size_t bytes, StreamImpl& stream, CopyReturns returns) override {
    if (bytes == 0) return {};
    KILN_CHECK_OK(activate());
    CudaStream& q = queue(stream);
    trace::Scope span(trace::kSpans, trace::Step::kCopyOut, {}, static_cast<int64_t>(bytes), q.id());
    if (q.is_capturing()) return not_in_graph("a copy to the host");
    if (returns == CopyReturns::kWhenDone) KILN_CHECK_OK(wait_for(q, 0));
    KILN_CHECK_OK(check(driver_->cuMemcpyDtoHAsync(target, source, bytes, q.handle),
                        "cuMemcpyDtoHAsync(target, source, bytes, stream)", &q));
    return returns == CopyReturns::kQueued ? Status() : q.synchronize();
  }
  Status copy(DeviceAddress target, DeviceAddress source, size_t bytes, StreamImpl& stream) override {
    if (bytes == 0) return {};
    KILN_CHECK_OK(activate());
    CudaStream& q = queue(stream);
    trace::Scope span(trace::kSpans, trace::Step::kCopy, {}, static_cast<int64_t>(bytes), q.id());
    return check(driver_->cuMemcpyDtoDAsync(target, source, bytes, q.handle),
                 "cuMemcpyDtoDAsync(target, source, bytes, stream)", &q);
  }
  Status fill(DeviceAddress target, uint64_t pattern, int element_bytes, int64_t count, StreamImpl& stream) override {
    if (count == 0) return {};
    KILN_CHECK_OK(activate());
    CudaStream& q = queue(stream);
    trace::Scope span(trace::kSpans, trace::Step::kFill, {}, count * element_bytes, q.id());
    const FillCall last = fill_memory(*driver_, target, pattern, element_bytes, static_cast<size_t>(count), q.handle);
    return check(last.code, last.call, &q);
  }

  const Assembler* assembler() override { return &assembler_; }
  Result<std::shared_ptr<LoadedKernel>> load(const KernelImage& image) override {
    if (image.shared_bytes > max_shared_)
      return error(ErrorKind::kLaunch, "kernel '{}' needs {} bytes of shared memory per program, and {} has {}",
                   image.name, image.shared_bytes, name_, max_shared_);
    KILN_CHECK_OK(activate());
    auto kernel = std::make_shared<CudaKernel>(*this, image);
    KILN_CHECK_OK(kernel->finish_load(image));
    return std::shared_ptr<LoadedKernel>(kernel);
  }

  Status launch(const LoadedKernel& loaded, const Grid& grid, const uint64_t* slots, StreamImpl& stream,
                double timeout_s) override {
    const auto& kernel = static_cast<const CudaKernel&>(loaded);
    if (broken_.load(std::memory_order_relaxed)) return broken_status();
    CudaStream& q = queue(stream);
    if (timeout_s <= 0) timeout_s = timeout_s_;
    if (timeout_s > 0) [[unlikely]]
      return launch_and_wait(kernel, grid, slots, q, timeout_s);
    return put(kernel, grid, slots, q);
  }
  [[gnu::always_inline]] inline Status put(const CudaKernel& kernel, const Grid& grid, const uint64_t* slots,
                                           CudaStream& q) {
    // The driver reads each parameter, in its own size, from the low bytes of its slot.
    void* params[kInlineParams];
    if (!kernel.is_plain) return launch_unusual(kernel, grid, slots, q, params);
    for (int i = 0; i < kernel.own_params; ++i) params[i] = const_cast<uint64_t*>(slots + i);
    return submit(kernel, grid, q, params);
  }

  [[gnu::noinline]] Status launch_and_wait(const CudaKernel& kernel, const Grid& grid, const uint64_t* slots,
                                           CudaStream& q, double timeout_s) {
    if (q.is_capturing()) return not_in_graph("a launch with a timeout");
    KILN_CHECK_OK(put(kernel, grid, slots, q));
    KILN_CHECK_OK(wait_for(q, timeout_s));
    idle(q);
    return {};
  }

  /// What few kernels have: tensor maps, many parameters, several blocks of a program, a code for few blocks.
  [[gnu::noinline]] Status launch_unusual(const CudaKernel& kernel, const Grid& grid, const uint64_t* slots,
                                          CudaStream& q, void** params) {
    std::unique_ptr<void*[]> many;
    const int own = kernel.own_params, count = own + (kernel.tensor_maps ? kernel.tensor_maps->count() : 0);
    if (count > kInlineParams) many.reset(new void*[static_cast<size_t>(count)]), params = many.get();
    for (int i = 0; i < own; ++i) params[i] = const_cast<uint64_t*>(slots + i);
    EncodedMaps maps;
    if (kernel.tensor_maps) {
      trace::Scope step(trace::kSteps, trace::Step::kTensorMap);
      auto empty_tensor = [this](bool stored) { return empty_tensor_address(stored); };
      KILN_TRY(maps, kernel.tensor_maps->encode(*driver_, slots, empty_tensor));
      for (int i = own; i < count; ++i) params[i] = const_cast<CUtensorMap*>(&(*maps)[static_cast<size_t>(i - own)]);
    }
    if (grid[0] > INT32_MAX / kernel.num_ctas)
      return error(ErrorKind::kLaunch, "kernel '{}': {} programs of {} blocks along x, and a grid has {} at most",
                   kernel.name(), grid[0], kernel.num_ctas, INT32_MAX);
    const Grid blocks = {grid[0] * kernel.num_ctas, grid[1], grid[2]};
    KILN_TRY(const CudaKernel* code, code_for(kernel, blocks));
    return submit(*code, blocks, q, params);
  }

  /// What a launch of so many blocks runs.
  Result<const CudaKernel*> code_for(const CudaKernel& kernel, const Grid& blocks) {
    if (!kernel.roomy) return &kernel;
    const LoadedKernel* roomy = nullptr;
    if (kernel.roomy->takes(blocks)) {
      auto loaded = kernel.roomy->load(*this, *driver_);
      if (!loaded.ok() && broken_.load()) return std::move(loaded.error());
      if (loaded.ok()) roomy = *loaded;
    }
    kernel.note_roomy(roomy != nullptr);
    return roomy ? static_cast<const CudaKernel*>(roomy) : &kernel;
  }

  /// `blocks` along x, y and z.
  [[gnu::always_inline]] inline Status submit(const CudaKernel& kernel, const Grid& blocks, CudaStream& q,
                                              void** params) {
    const CUresult code = call_driver(kernel, blocks, q, params);
    if (code != CUDA_SUCCESS || q.is_capturing()) [[unlikely]]
      return after_submit(code, kernel, blocks, q, params);
    count_launch(kernel, q);
    return {};
  }
  /// Of a launch that was refused, or recorded.
  [[gnu::noinline]] Status after_submit(CUresult code, const CudaKernel& kernel, const Grid& blocks, CudaStream& q,
                                        void** params) {
    if (code != CUDA_SUCCESS) {
      // The driver refuses a launch on a thread where another context is current, or none: asking it before each launch
      // would cost what the launches of a loop never need.
      if (!is_current()) {
        KILN_CHECK_OK(activate());
        code = call_driver(kernel, blocks, q, params);
      }
      if (code != CUDA_SUCCESS) return refused(code, kernel, blocks, q);
    }
    if (q.is_capturing())
      q.captured.push_back(kernel.shared_from_this());
    else
      count_launch(kernel, q);
    return {};
  }
  static void count_launch(const CudaKernel& kernel, CudaStream& q) {
    const LoadedKernel* last = q.last_kernel.load(std::memory_order_relaxed);
    if (last != &kernel) {
      if (last) q.several.store(true, std::memory_order_relaxed);
      q.last_kernel.store(&kernel, std::memory_order_relaxed);
    }
    q.launches.store(q.launches.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[gnu::always_inline]] inline CUresult call_driver(const CudaKernel& kernel, const Grid& blocks, CudaStream& q,
                                                     void** params) const {
    trace::Scope step(trace::kSteps, trace::Step::kDriver, {}, 0, q.id());
    if (kernel.launch_pdl) return launch_early(kernel, blocks, q, params);
    return launch_kernel_(kernel.function, blocks[0], blocks[1], blocks[2], kernel.threads, 1, 1, kernel.shared_bytes,
                          q.handle, params, nullptr);
  }

  /// A launch that may begin before the one that it follows has ended (programmatic dependent launch).
  [[gnu::noinline]] CUresult launch_early(const CudaKernel& kernel, const Grid& blocks, const CudaStream& q,
                                          void** params) const {
    CUlaunchAttribute early = {};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {};
    config.gridDimX = blocks[0], config.gridDimY = blocks[1], config.gridDimZ = blocks[2];
    config.blockDimX = kernel.threads, config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = kernel.shared_bytes;
    config.hStream = q.handle;
    config.attrs = &early, config.numAttrs = 1;
    return driver_->cuLaunchKernelEx(&config, kernel.function, params, nullptr);
  }

  Status call(std::function<Status()>, StreamImpl&) override {
    return error(ErrorKind::kUnsupported, "{} runs no work of the calling thread", name_);
  }
  Status begin_capture(StreamImpl& stream) override {
    KILN_CHECK_OK(activate());
    CudaStream& q = queue(stream);
    if (q.is_capturing()) return not_in_graph("another capture");
    // Relaxed: what cannot be captured is refused above this call, and other threads may go on as they like.
    // Set before the call and until after the last one: other threads must not take the stream for one that runs.
    q.set_capturing(true);
    Status begun = check(driver_->cuStreamBeginCapture(q.handle, CU_STREAM_CAPTURE_MODE_RELAXED),
                         "cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)", &q);
    if (begun.ok())
      ++captures_;
    else
      q.set_capturing(false);
    return begun;
  }
  Result<std::unique_ptr<CapturedWork>> end_capture(StreamImpl& stream) override {
    CudaStream& q = queue(stream);
    CUgraph graph = nullptr;
    Status ended = activate();
    if (ended.ok())
      ended = check(driver_->cuStreamEndCapture(q.handle, &graph), "cuStreamEndCapture(stream, &graph)", &q);
    q.set_capturing(false);
    --captures_;
    std::vector<std::shared_ptr<const LoadedKernel>> kernels = std::exchange(q.captured, {});
    KILN_CHECK_OK(ended);
    struct Owned {
      ~Owned() { driver.cuGraphDestroy(graph); }
      const Driver& driver;
      CUgraph graph;
    } owned{*driver_, graph};
    size_t nodes = 0;
    KILN_CHECK_OK(check(driver_->cuGraphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes(graph, nullptr, &nodes)"));
    CUgraphExec exec = nullptr;
    KILN_CHECK_OK(check(driver_->cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate(&exec, graph, 0)"));
    return std::unique_ptr<CapturedWork>(
        std::make_unique<CudaGraph>(*this, exec, static_cast<int64_t>(nodes), std::move(kernels)));
  }
  Status launch_graph(CUgraphExec exec, StreamImpl& stream) {
    KILN_CHECK_OK(activate());
    CudaStream& q = queue(stream);
    if (q.is_capturing()) return not_in_graph("the launch of another graph");
    return check(driver_->cuGraphLaunch(exec, q.handle), "cuGraphLaunch(graph, stream)", &q);
  }

  /// Makes the context current on this thread, and the context itself at the first use.
  Status activate() {
    if (!ready_.load(std::memory_order_acquire)) KILN_CHECK_OK(first_use());
    if (broken_.load(std::memory_order_relaxed)) return broken_status();
    if (is_current()) return {};
    return check(driver_->cuCtxSetCurrent(context_), "cuCtxSetCurrent(context)");
  }
  bool is_current() {
    CUcontext current = nullptr;
    driver_->cuCtxGetCurrent(&current);
    return current == context_;
  }
  /// For destructors: the context is there, current and not broken. Silent.
  bool usable() { return ready_.load() && !broken_.load() && driver_->cuCtxSetCurrent(context_) == CUDA_SUCCESS; }

  /// A wait was given up while a kernel ran, and one still runs. Whatever the driver frees then waits for its end.
  bool is_hung() {
    if (!hung_.load(std::memory_order_relaxed) || !usable()) return false;
    std::vector<std::function<void()>> kept;
    std::vector<CUstream> left;
    {
      std::lock_guard lock(mutex_);
      auto runs = [&](CUstream s) { return s && driver_->cuStreamQuery(s) == CUDA_ERROR_NOT_READY; };
      // One that records a graph cannot be asked.
      auto stream_runs = [&](const CudaStream* s) { return s->is_capturing() || runs(s->handle); };
      if (stream_runs(&stream_) || std::any_of(streams_.begin(), streams_.end(), stream_runs) ||
          std::any_of(left_streams_.begin(), left_streams_.end(), runs))
        return true;
      if (hung_.exchange(false)) --hung_devices;
      kept.swap(kept_);
      left.swap(left_streams_);
    }
    for (const auto& free : kept) free();
    for (CUstream s : left) driver_->cuStreamDestroy(s);
    return false;
  }
  /// For destructors. What is freed beside a kernel that hangs stays until none does, so that the prompt goes on.
  template <class Free>
  void free_when_idle(const Free& free) {
    if (!usable()) return;
    if (is_hung()) {
      std::lock_guard lock(mutex_);
      if (hung_) return void(kept_.emplace_back(free));
    }
    free();
  }

  /// A driver call's result. A fault marks the device broken for good and names the kernel that ran last.
  Status check(CUresult code, std::string_view call, CudaStream* stream = nullptr) {
    if (code == CUDA_SUCCESS) return {};
    std::string_view what = fault_text(code);
    if (what.empty()) return driver_->failure(code, call);
    std::lock_guard lock(mutex_);
    if (!broken_.load()) {
      std::string fault = describe_fault(what, code, stream);
      broken_.store(true);
      return error(ErrorKind::kLaunch, "{}", fault);
    }
    return lost();
  }

  /// Until the stream has nothing left to do. kInterrupted and (timeout) kLaunch name the kernel that runs on. A fault
  /// is left for the call that follows to report.
  Status wait_for(CudaStream& stream, double timeout_s) {
    // A profile shows where the driver waits, and not where somebody asks again and again.
    if (timeout_s <= 0 && trace::on(trace::kSpans)) return {};
    Stop stop(timeout_s);
    const CUresult code = wait_until_ready([&] { return driver_->cuStreamQuery(stream.handle); }, stop);
    if (code != CUDA_ERROR_NOT_READY) return {};
    return still_running(&stream, stop, timeout_s);
  }
  Status wait_for(CUevent event) {
    if (trace::on(trace::kSpans)) return {};
    Stop stop(0);
    if (wait_until_ready([&] { return driver_->cuEventQuery(event); }, stop) != CUDA_ERROR_NOT_READY) return {};
    return still_running(nullptr, stop, 0);
  }

  const Driver& driver() const { return *driver_; }
  const std::string& name() const { return name_; }
  int attribute(CUdevice_attribute which) const {
    int value = 0;
    return driver_->cuDeviceGetAttribute(&value, which, device_) == CUDA_SUCCESS ? value : 0;
  }
  void idle(CudaStream& stream) {
    stream.launches.store(0, std::memory_order_relaxed);
    stream.several.store(false, std::memory_order_relaxed);
    stream.last_kernel.store(nullptr, std::memory_order_relaxed);
  }
  /// A kernel that is being unloaded must not be named by a later fault through a dead pointer.
  void forget(const LoadedKernel& kernel) {
    const LoadedKernel* expected = &kernel;
    if (stream_.last_kernel.compare_exchange_strong(expected, nullptr)) stream_.launches.store(0);
    std::lock_guard lock(mutex_);
    for (CudaStream* stream : streams_) {
      expected = &kernel;
      if (stream->last_kernel.compare_exchange_strong(expected, nullptr)) stream->launches.store(0);
    }
  }
  void add(CudaStream* stream) {
    std::lock_guard lock(mutex_);
    streams_.push_back(stream);
  }
  void remove(CudaStream* stream) {
    const bool there = usable();
    {
      std::lock_guard lock(mutex_);
      std::erase(streams_, stream);
      if (stream->owner == CudaStream::Owner::kCaller) return;
      if (there && hung_) return left_streams_.push_back(stream->handle);
    }
    if (there) driver_->cuStreamDestroy(stream->handle);
  }

 private:
  /// Zeros to read, or bytes to write, in place of a tensor that has no elements and so perhaps no memory.
  Result<uint64_t> empty_tensor_address(bool stored) {
    KILN_CHECK_OK(activate());
    std::lock_guard lock(mutex_);
    if (!empty_tensors_) {
      if (captures_.load() > 0) return not_in_graph("the first launch with a descriptor of an empty tensor");
      CUdeviceptr memory = 0;
      if (CUresult code = driver_->cuMemAlloc(&memory, 2 * kEmptyTensorBytes); code != CUDA_SUCCESS)
        return driver_->failure(code, "cuMemAlloc(&memory, bytes)");
      if (CUresult code = driver_->cuMemsetD32Async(memory, 0, kEmptyTensorBytes / 2, stream_.handle);
          code != CUDA_SUCCESS)
        return driver_->failure(code, "cuMemsetD32Async(memory, 0, n, stream)");
      if (CUresult code = driver_->cuStreamSynchronize(stream_.handle); code != CUDA_SUCCESS)
        return driver_->failure(code, "cuStreamSynchronize(stream)");
      empty_tensors_ = memory;
    }
    return empty_tensors_ + (stored ? kEmptyTensorBytes : 0);
  }

  Status first_use() {
    std::lock_guard lock(mutex_);
    if (ready_.load()) return {};
    trace::Scope span(trace::kSpans, trace::Step::kContext, name_);
    KILN_TRY(std::optional<int64_t> limit, knob_bytes(Knob::kCudaMemory));
    limit_ = limit.value_or(-1);
    KILN_TRY(timeout_s_, knob_seconds(Knob::kTimeout));
    if (!context_) KILN_CU_TRY(driver_, cuDevicePrimaryCtxRetain(&context_, device_));
    KILN_CU_TRY(driver_, cuCtxSetCurrent(context_));
    if (!stream_.handle) KILN_CU_TRY(driver_, cuStreamCreate(&stream_.handle, CU_STREAM_NON_BLOCKING));
    ready_.store(true, std::memory_order_release);
    return {};
  }
  Status refused(CUresult code, const CudaKernel& kernel, const Grid& blocks, CudaStream& stream) {
    if (!fault_text(code).empty()) return check(code, "cuLaunchKernel", &stream);
    Diagnostic d = driver_->failure(code, "cuLaunchKernel");
    return error(ErrorKind::kLaunch,
                 "kernel '{}' over a grid of {}x{}x{} with {} threads and {} bytes of shared memory per program: {}",
                 kernel.name(), blocks[0] / kernel.num_ctas, blocks[1], blocks[2], kernel.threads, kernel.shared_bytes,
                 d.message);
  }
  Status broken_status() {
    if (!broken_.load()) return {};
    std::lock_guard lock(mutex_);
    return lost();
  }
  /// The fault itself was told when it showed.
  Diagnostic lost() const {
    return error(ErrorKind::kDevice, "the context of {} is lost since {} failed; start kiln again to use it", name_,
                 culprit_);
  }
  std::string describe_fault(std::string_view what, CUresult code, CudaStream* stream) {
    // The stream that reported it need not be the one that ran the kernel: the whole context fails at once.
    const LoadedKernel* kernel = stream ? stream->last_kernel.load() : nullptr;
    int64_t launches = stream ? stream->launches.load() : 0;
    bool several = stream && stream->several.load();
    int busy = kernel != nullptr;
    auto look = [&](CudaStream* other) {
      if (other == stream || !other->last_kernel.load()) return;
      ++busy;
      if (!kernel)
        kernel = other->last_kernel.load(), launches = other->launches.load(), several = other->several.load();
    };
    look(&stream_);
    for (CudaStream* other : streams_) look(other);
    std::string name = driver_->error_name(code);
    culprit_ = kernel && !several && busy == 1 ? fmt::format("kernel '{}'", kernel->name()) : "a kernel";
    if (!kernel) return fmt::format("a kernel on {} {} ({})", name_, what, name);
    if (!several && busy == 1) return fmt::format("kernel '{}' on {} {} ({})", kernel->name(), name_, what, name);
    return fmt::format("a kernel on {} {} ({}); kernel '{}' was launched last, of {} since the stream was last idle",
                       name_, what, name, kernel->name(), launches);
  }
  Status still_running(CudaStream* stream, const Stop& stop, double timeout_s) {
    if (!hung_.exchange(true)) ++hung_devices;
    std::lock_guard lock(mutex_);
    const LoadedKernel* kernel = stream ? stream->last_kernel.load() : stream_.last_kernel.load();
    for (CudaStream* other : streams_)
      if (!kernel) kernel = other->last_kernel.load();
    const std::string what =
        kernel ? fmt::format("kernel '{}' still runs on {}", kernel->name(), name_) : name_ + " is still at work";
    if (stop.cause() == StopCause::kTimeout)
      return with_note(error(ErrorKind::kLaunch, "{} after {} s, its timeout", what, timeout_s),
                       "a kernel on a GPU cannot be stopped: what comes next waits for it; ending kiln ends it");
    return with_note(error(ErrorKind::kInterrupted, "interrupted; {}", what),
                     "a kernel on a GPU cannot be stopped: what comes next waits for it; ending kiln ends it");
  }
  static CudaStream& queue(StreamImpl& stream) { return static_cast<CudaStream&>(stream); }

  // What a launch reads is side by side.
  std::shared_ptr<const Driver> driver_;
  decltype(Driver::cuLaunchKernel) launch_kernel_;
  std::atomic<bool> ready_{false}, broken_{false}, hung_{false};
  CUdevice device_;
  std::string name_;
  int capability_ = 0;
  int64_t max_shared_ = 0;
  int64_t limit_ = -1;
  double timeout_s_ = 0;  // of launches that bring none; 0: none
  std::atomic<int64_t> reserved_{0};
  std::atomic<int> captures_{0};  // streams that are being captured
  std::mutex mutex_;
  CUcontext context_ = nullptr;
  const bool is_callers_context_;
  std::string culprit_;                      // once broken_
  std::vector<CudaStream*> streams_;         // other than stream_
  std::vector<CUstream> left_streams_;       // closed while a kernel hung
  std::vector<std::function<void()>> kept_;  // to be freed when none hangs
  static constexpr size_t kEmptyTensorBytes = 256;
  CUdeviceptr empty_tensors_ = 0;  // lives as long as the context
  const DriverAssembler assembler_{driver_, [this] { return activate(); }};
  CudaStream stream_;  // its handle is made at the first use
};

CudaStream::CudaStream(CudaBackend& backend, CUstream h, Owner o)
    : StreamImpl(backend), cuda(backend), handle(h), owner(o) {
  if (handle || owner == Owner::kCaller) cuda.add(this);
}

CudaStream::~CudaStream() {
  if (handle || owner == Owner::kCaller) cuda.remove(this);
}

Status CudaStream::synchronize() {
  if (is_capturing()) return not_in_graph("a wait for the device");
  KILN_CHECK_OK(cuda.activate());
  KILN_CHECK_OK(cuda.wait_for(*this, 0));
  KILN_CHECK_OK(cuda.check(cuda.driver().cuStreamSynchronize(handle), "cuStreamSynchronize(stream)", this));
  cuda.idle(*this);
  return {};
}

Status CudaStream::wait(const EventImpl& event) {
  auto* e = dynamic_cast<const CudaEvent*>(&event);
  if (!e) return error(ErrorKind::kValue, "the event belongs to another device than {}", cuda.name());
  KILN_CHECK_OK(cuda.activate());
  return cuda.check(cuda.driver().cuStreamWaitEvent(handle, e->handle, 0), "cuStreamWaitEvent(stream, event, 0)", this);
}

bool CudaStream::is_idle() {
  if (!cuda.usable()) return true;
  if (is_capturing()) return false;  // the driver cannot be asked
  return cuda.driver().cuStreamQuery(handle) != CUDA_ERROR_NOT_READY;
}

CudaGraph::~CudaGraph() {
  cuda_.free_when_idle([&driver = cuda_.driver(), graph = exec_] { driver.cuGraphExecDestroy(graph); });
}

Status CudaGraph::launch(StreamImpl& stream) { return cuda_.launch_graph(exec_, stream); }

CudaEvent::~CudaEvent() {
  cuda.free_when_idle([&driver = cuda.driver(), event = handle] { driver.cuEventDestroy(event); });
}

Status CudaEvent::synchronize() {
  if (is_captured) return not_in_graph("a wait for an event");
  KILN_CHECK_OK(cuda.activate());
  KILN_CHECK_OK(cuda.wait_for(handle));
  return cuda.check(cuda.driver().cuEventSynchronize(handle), "cuEventSynchronize(event)");
}

bool CudaEvent::is_done() {
  if (!cuda.usable()) return true;
  if (is_captured) return false;
  return cuda.driver().cuEventQuery(handle) != CUDA_ERROR_NOT_READY;
}

CudaKernel::~CudaKernel() {
  cuda.forget(*this);
  if (module) cuda.free_when_idle([&driver = cuda.driver(), loaded = module] { driver.cuModuleUnload(loaded); });
}

Status CudaKernel::finish_load(const KernelImage& image) {
  const Driver& driver = cuda.driver();
  CUresult code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!image.cubin.empty()) code = driver.cuModuleLoadDataEx(&module, image.cubin.data(), 0, nullptr, nullptr);
  if (code != CUDA_SUCCESS && !image.ptx.empty()) {
    // No cubin, or one from a newer toolkit than this driver reads: the driver compiles the PTX itself.
    char log[8192] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    code = driver.cuModuleLoadDataEx(&module, image.ptx.c_str(), 2, options, values);
    if (code != CUDA_SUCCESS && fault_text(code).empty() && log[0]) {
      Diagnostic d = driver.failure(code, "cuModuleLoadDataEx(&module, ptx)");
      return with_note(error(ErrorKind::kDevice, "kernel '{}' does not load: {}", image.name, d.message),
                       fmt::format("the driver says: {}", log));
    }
  }
  if (code != CUDA_SUCCESS) {
    Status status = cuda.check(code, "cuModuleLoadDataEx(&module, image)");
    if (!fault_text(code).empty()) return status;  // of a kernel before, which this call happened to meet
    return error(status.error().kind, "kernel '{}' does not load: {}", image.name, status.error().message);
  }
  KILN_CHECK_OK(cuda.check(driver.cuModuleGetFunction(&function, module, ptx_name(image.name).c_str()),
                           "cuModuleGetFunction(&function, module, name)"));
  if (shared_bytes > 0)
    KILN_CHECK_OK(cuda.check(driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                       static_cast<int>(shared_bytes)),
                             "cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)"));
  int value = 0;
  if (driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS) registers_ = value;
  if (driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function) == CUDA_SUCCESS)
    local_bytes_ = value;
  if (image.roomy)
    roomy = std::make_unique<RoomyKernel>(image, cuda.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  return {};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cuda_backend(int ordinal, void* context) {
  KILN_TRY(std::shared_ptr<const Driver> driver, Driver::shared());
  KILN_TRY(const int count, cuda_device_count());
  if (ordinal >= count)
    return error(ErrorKind::kDevice, "no device cuda:{}: there {} {} GPU{}", ordinal, count == 1 ? "is" : "are", count,
                 count == 1 ? "" : "s");
  CUdevice device = 0;
  KILN_CU_TRY(driver, cuDeviceGet(&device, ordinal));
  return std::unique_ptr<Backend>(
      std::make_unique<CudaBackend>(driver, device, ordinal, static_cast<CUcontext>(context)));
}

}  // namespace kiln::runtime

#endif
