#include "runtime/host/host_backend.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "runtime/host/thread_pool.h"
#include "support/diag.h"
#include "support/faults.h"
#include "support/knobs.h"
#include "support/stop.h"
#include "support/trace.h"

namespace kiln::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kHugePage = 2 << 20;
// Copies and fills shorter than this are done by the caller alone.
constexpr int64_t kParallelBytes = 4 << 20;
constexpr int64_t kPieceBytes = 1 << 20;
// Requests above this are first compared with what the system says is available: Linux would promise more and kill us
// later.
constexpr int64_t kCheckedBytes = 64 << 20;

class HostStream : public StreamImpl {
 public:
  explicit HostStream(Backend& backend) : StreamImpl(backend) {}
  // Work on the CPU is done when its call returns. So streams have nothing to wait for, and record only for graphs.
  Status synchronize() override { return is_capturing() ? Status(not_in_graph("a wait for the device")) : Status(); }
  Status wait(const EventImpl&) override { return {}; }
  bool is_idle() override { return true; }

  void begin() {
    recorded.clear();
    set_capturing(true);
  }
  void end() { set_capturing(false); }
  std::vector<std::function<Status()>> recorded;
};

class HostGraph : public CapturedWork {
 public:
  explicit HostGraph(std::vector<std::function<Status()>> work) : work_(std::move(work)) {}
  Status launch(StreamImpl&) override {
    for (const auto& step : work_) KILN_CHECK_OK(step());
    return {};
  }
  int64_t size() const override { return static_cast<int64_t>(work_.size()); }

 private:
  std::vector<std::function<Status()>> work_;
};

struct HostEvent : EventImpl {
  Status synchronize() override { return {}; }
  bool is_done() override { return true; }
  Clock::time_point time = Clock::now();
};

// Scratch of one thread, kept between launches.
struct Scratch {
  ~Scratch() { std::free(memory); }
  void* get(int64_t bytes) {
    if (bytes <= size) return memory;
    std::free(memory);
    // A whole page more than is asked for at most: aligned_alloc wants multiples of the alignment.
    size = (bytes + 4095) / 4096 * 4096;
    memory = std::aligned_alloc(4096, static_cast<size_t>(size));
    if (!memory) size = 0;
    return memory;
  }
  void* memory = nullptr;
  int64_t size = 0;
};

class HostKernel : public LoadedKernel {
 public:
  explicit HostKernel(const KernelImage& image)
      : entry(image.entry),
        scratch_bytes(image.scratch_bytes),
        take_failure(image.take_failure),
        place_at(image.place_at),
        keep(image.keep) {
    name_ = image.name;
    num_params_ = image.num_params;
  }
  HostEntry entry;
  int64_t scratch_bytes;
  std::function<Status()> take_failure;
  std::function<Place(uintptr_t)> place_at;
  std::shared_ptr<const void> keep;
  mutable std::atomic<int64_t> program_ns{0};
};

/// A launch under way, and what ended it before its time.
struct Running {
  Running(const HostKernel& k, const uint64_t* s, const int32_t* g, double timeout)
      : kernel(k), slots(s), sizes(g), timeout_s(timeout), stop(timeout) {}

  static void run_range(void* context, int64_t first, int64_t last, int thread) {
    auto& launch = *static_cast<Running*>(context);
    StopScope scope(&launch.stop);
    if (stop_wanted()) return launch.ended.store(true, std::memory_order_relaxed);
    struct Share {
      const Running& launch;
      int64_t first, last;
      void* scratch;
    } share{launch, first, last, launch.scratch ? launch.scratch[thread].memory : nullptr};
    auto call = [](void* c) {
      const auto& s = *static_cast<const Share*>(c);
      const HostKernel& k = s.launch.kernel;
      if (k.keep) return k.entry(s.launch.slots, s.launch.sizes, s.first, s.last, s.scratch);
      // The runtime's own functions poll nothing.
      for (int64_t p = s.first; p < s.last && !stop_wanted(); ++p)
        k.entry(s.launch.slots, s.launch.sizes, p, p + 1, s.scratch);
    };
    // Generated code owns nothing and holds no lock: a fault in it may end it where it stands.
    if (auto fault = faults::run_guarded(call, &share)) launch.note(*fault);
    if (launch.stop.cause() != StopCause::kNone) launch.ended.store(true, std::memory_order_relaxed);
  }

  void note(const faults::Fault& fault) {
    std::lock_guard lock(mutex);
    if (!first_fault) first_fault = fault;
    ended.store(true, std::memory_order_relaxed);
  }

  Status why_ended() const {
    if (first_fault) {
      Diagnostic d = error(ErrorKind::kLaunch, "kernel '{}' {}", kernel.name(), faults::describe(*first_fault));
      if (kernel.place_at)
        if (Place place = kernel.place_at(first_fault->code_at); place.line > 0)
          d.notes.push_back({"by this statement", std::move(place)});
      return with_note(std::move(d),
                       "help: a launch with check=True (or --check, or %check) names the tensor and the element; what "
                       "the kernel wrote before may have changed other memory");
    }
    if (stop.cause() == StopCause::kTimeout)
      return error(ErrorKind::kLaunch, "kernel '{}' was stopped after {} s, its timeout; what it wrote is incomplete",
                   kernel.name(), timeout_s);
    return error(ErrorKind::kInterrupted, "kernel '{}' was stopped; what it wrote is incomplete", kernel.name());
  }

  const HostKernel& kernel;
  const uint64_t* slots;
  const int32_t* sizes;
  Scratch* scratch = nullptr;  // one for each thread of the pool
  double timeout_s;
  Stop stop;
  std::atomic<bool> ended{false};
  std::mutex mutex;
  std::optional<faults::Fault> first_fault;
};

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "CPU";
}

const char* vector_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  return "sse2";
#else
  return "neon";
#endif
}

// Those this process may run on: a container or taskset gives less than the machine has.
int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

// A field of /proc/meminfo in bytes; -1 when it is not there.
int64_t meminfo(std::string_view field) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field)) return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
  return -1;
}

class HostBackend : public Backend {
 public:
  HostBackend(int threads, double timeout_s)
      : stream_(*this), pool_(threads), timeout_s_(timeout_s), scratch_(static_cast<size_t>(pool_.threads())) {}

  DeviceInfo info() override {
    DeviceInfo info;
    info.name = fmt::format("{} ({}, {} thread{})", cpu_model(), vector_isa(), pool_.threads(),
                            pool_.threads() == 1 ? "" : "s");
    info.compute_units = pool_.threads();
    info.memory_bytes = meminfo("MemTotal:");
    // The last level: what cold measurements have to overwrite.
    for (int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
      if (long bytes = sysconf(level); bytes > 0 && info.l2_bytes == 0) info.l2_bytes = bytes;
    return info;
  }
  int capability() const override { return 0; }

  Result<DeviceAddress> reserve(int64_t bytes) override {
    if (bytes > kCheckedBytes)
      if (int64_t available = free_bytes(); available >= 0 && bytes > available)
        return error(ErrorKind::kMemory, "not enough memory");
    size_t align = bytes >= kHugePage ? kHugePage : 4096;
    void* memory = std::aligned_alloc(align, (static_cast<size_t>(bytes) + align - 1) / align * align);
    if (!memory) return error(ErrorKind::kMemory, "not enough memory");
    // Faults of small pages cost more than the fill of a large tensor; the kernel is free to ignore the advice.
    if (bytes >= 2 * kHugePage) (void)madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    return reinterpret_cast<DeviceAddress>(memory);
  }
  void release(DeviceAddress address, int64_t) override { std::free(pointer(address)); }
  Result<std::shared_ptr<void>> shared_memory(int64_t) override {
    return error(ErrorKind::kUnsupported, "the cpu device shares all memory with the host");
  }
  int64_t free_bytes() override { return meminfo("MemAvailable:"); }

  Result<std::unique_ptr<StreamImpl>> new_stream() override {
    return std::unique_ptr<StreamImpl>(new HostStream(*this));
  }
  Result<std::unique_ptr<StreamImpl>> stream_of(void*) override {
    return error(ErrorKind::kUnsupported, "the cpu device has no streams of a vendor's library");
  }
  StreamImpl& default_stream() override { return stream_; }
  Result<void*> native_stream(StreamImpl&) override {
    return error(ErrorKind::kUnsupported, "the cpu device has no streams of a vendor's library");
  }
  Result<std::unique_ptr<EventImpl>> record(StreamImpl&) override { return std::unique_ptr<EventImpl>(new HostEvent); }
  Result<double> elapsed_ms(const EventImpl& from, EventImpl& to) override {
    auto *start = dynamic_cast<const HostEvent*>(&from), *end = dynamic_cast<const HostEvent*>(&to);
    if (!start || !end) return error(ErrorKind::kValue, "the events belong to another device than cpu");
    return std::chrono::duration<double, std::milli>(end->time - start->time).count();
  }
  Status synchronize() override { return stream_.synchronize(); }

  Status copy_in(DeviceAddress target, const void* source, size_t bytes, StreamImpl& stream, CopyReturns) override {
    if (stream.is_capturing()) return not_in_graph("a copy from the host");
    trace::Scope span(trace::kSpans, trace::Step::kCopyIn, {}, static_cast<int64_t>(bytes), stream.id());
    copy_bytes(pointer(target), source, bytes);
    return {};
  }
  Status copy_out(void* target, DeviceAddress source, size_t bytes, StreamImpl& stream, CopyReturns) override {
    if (stream.is_capturing()) return not_in_graph("a copy to the host");
    trace::Scope span(trace::kSpans, trace::Step::kCopyOut, {}, static_cast<int64_t>(bytes), stream.id());
    copy_bytes(target, pointer(source), bytes);
    return {};
  }
  Status copy(DeviceAddress target, DeviceAddress source, size_t bytes, StreamImpl& stream) override {
    return call(
        [=, this, id = stream.id()] {
          trace::Scope span(trace::kSpans, trace::Step::kCopy, {}, static_cast<int64_t>(bytes), id);
          copy_bytes(pointer(target), pointer(source), bytes);
          return Status();
        },
        stream);
  }
  Status fill(DeviceAddress target, uint64_t pattern, int element_bytes, int64_t count, StreamImpl& stream) override {
    if (stream.is_capturing())
      return call([=, this, &stream] { return fill(target, pattern, element_bytes, count, stream); }, stream);
    trace::Scope span(trace::kSpans, trace::Step::kFill, {}, count * element_bytes, stream.id());
    auto fill_all = [&](auto value) {
      auto* out = static_cast<decltype(value)*>(pointer(target));
      in_pieces(count * element_bytes, [=](int64_t first, int64_t last) {
        std::fill(out + first / element_bytes, out + last / element_bytes, value);
      });
    };
    switch (element_bytes) {
      case 1:
        fill_all(static_cast<uint8_t>(pattern));
        break;
      case 2:
        fill_all(static_cast<uint16_t>(pattern));
        break;
      case 4:
        fill_all(static_cast<uint32_t>(pattern));
        break;
      case 8:
        fill_all(pattern);
        break;
      default:
        KILN_UNREACHABLE("fill of {}-byte elements", element_bytes);
    }
    return {};
  }

  const Assembler* assembler() override { return nullptr; }
  Result<std::shared_ptr<LoadedKernel>> load(const KernelImage& image) override {
    KILN_ASSERT(image.entry, "kernel {} has no host entry", image.name);
    return std::shared_ptr<LoadedKernel>(std::make_shared<HostKernel>(image));
  }

  Status launch(const LoadedKernel& loaded, const Grid& grid, const uint64_t* slots, StreamImpl& stream,
                double timeout_s) override {
    const auto& kernel = static_cast<const HostKernel&>(loaded);
    if (stream.is_capturing()) return record(kernel, grid, slots, stream, timeout_s);
    const int32_t sizes[3] = {static_cast<int32_t>(grid[0]), static_cast<int32_t>(grid[1]),
                              static_cast<int32_t>(grid[2])};
    int64_t programs = int64_t{sizes[0]} * sizes[1] * sizes[2];
    trace::Scope span(trace::kSpans, trace::Step::kHostKernel, kernel.name(), 0, stream.id());
    if (trace::Event* event = span.event()) event->grid = grid;
    Running running(kernel, slots, sizes, timeout_s > 0 ? timeout_s : timeout_s_);
    if (kernel.scratch_bytes > 0 && pool_.is_orphaned()) {
      // The mutex may be that of a thread which only the parent has.
      Scratch own;
      if (!own.get(kernel.scratch_bytes)) return no_scratch(kernel);
      running.scratch = &own;
      pool_.run({&Running::run_range, &running, &kernel.program_ns, &running.ended}, programs);
    } else if (kernel.scratch_bytes > 0) {
      // Scratch belongs to the pool's threads, so two callers must not launch at once.
      std::lock_guard lock(scratch_mutex_);
      for (Scratch& scratch : scratch_)
        if (!scratch.get(kernel.scratch_bytes)) return no_scratch(kernel);
      running.scratch = scratch_.data();
      pool_.run({&Running::run_range, &running, &kernel.program_ns, &running.ended}, programs);
    } else {
      pool_.run({&Running::run_range, &running, &kernel.program_ns, &running.ended}, programs);
    }
    Status failed = kernel.take_failure ? kernel.take_failure() : Status{};
    return running.ended ? running.why_ended() : failed;
  }

  Status call(std::function<Status()> work, StreamImpl& stream) override {
    if (!stream.is_capturing()) return work();
    static_cast<HostStream&>(stream).recorded.push_back(std::move(work));
    return {};
  }
  Status begin_capture(StreamImpl& stream) override {
    if (stream.is_capturing()) return not_in_graph("another capture");
    static_cast<HostStream&>(stream).begin();
    return {};
  }
  Result<std::unique_ptr<CapturedWork>> end_capture(StreamImpl& stream) override {
    auto& host = static_cast<HostStream&>(stream);
    host.end();
    return std::unique_ptr<CapturedWork>(std::make_unique<HostGraph>(std::exchange(host.recorded, {})));
  }

 private:
  static Diagnostic no_scratch(const HostKernel& kernel) {
    return error(ErrorKind::kMemory, "out of memory: kernel '{}' needs {} bytes of scratch per thread", kernel.name(),
                 kernel.scratch_bytes);
  }
  static void* pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }

  Status record(const HostKernel& kernel, const Grid& grid, const uint64_t* slots, StreamImpl& stream,
                double timeout_s) {
    // The recorded launch keeps the kernel: its owner may drop it before the graph is launched.
    auto owned = kernel.weak_from_this().lock();
    if (!owned) return not_in_graph("a job of the runtime on the CPU");
    std::vector<uint64_t> copy(slots, slots + kernel.num_params());
    return call(
        [this, owned, grid, copy, timeout_s, &stream] { return launch(*owned, grid, copy.data(), stream, timeout_s); },
        stream);
  }

  // fn(first, last) over byte ranges that are multiples of kPieceBytes but for the last.
  template <class Fn>
  void in_pieces(int64_t bytes, Fn fn) {
    if (bytes < kParallelBytes) return fn(int64_t{0}, bytes);
    struct Context {
      Fn* fn;
      int64_t bytes;
    } context{&fn, bytes};
    auto run_range = [](void* c, int64_t first, int64_t last, int) {
      auto& range = *static_cast<Context*>(c);
      (*range.fn)(first * kPieceBytes, std::min(range.bytes, last * kPieceBytes));
    };
    pool_.run({run_range, &context, nullptr, nullptr}, (bytes + kPieceBytes - 1) / kPieceBytes);
  }

  void copy_bytes(void* target, const void* source, size_t bytes) {
    if (bytes == 0) return;  // the pointers may be null
    auto* out = static_cast<char*>(target);
    auto* in = static_cast<const char*>(source);
    if (out < in + bytes && in < out + bytes) {  // pieces of an overlapping copy would overwrite each other's input
      std::memmove(out, in, bytes);
      return;
    }
    in_pieces(static_cast<int64_t>(bytes), [=](int64_t first, int64_t last) {
      std::memcpy(out + first, in + first, static_cast<size_t>(last - first));
    });
  }

  HostStream stream_;
  ThreadPool pool_;
  double timeout_s_;  // of launches that bring none; 0: none
  std::mutex scratch_mutex_;
  std::vector<Scratch> scratch_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_host_backend() {
  KILN_TRY(std::optional<int64_t> threads, knob_int(Knob::kThreads, 1));
  int count = static_cast<int>(std::min<int64_t>(threads.value_or(usable_cpus()), 1024));
  KILN_TRY(double timeout_s, knob_seconds(Knob::kTimeout));
  return std::unique_ptr<Backend>(std::make_unique<HostBackend>(count, timeout_s));
}

}  // namespace kiln::runtime
