#include "bench/launch/launch_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "kiln/kernel.h"
#include "kiln/kiln.h"
#include "kiln/runtime.h"
#include "runtime/device/device.h"
#include "support/diag.h"
#if KILN_HAS_CUDA
#include "runtime/cuda/driver.h"
#endif

namespace kiln::bench {
namespace {

using Args = std::vector<std::optional<Arg>>;
using Clock = std::chrono::steady_clock;

constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def one(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


@triton.jit
def three(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def eight(a, b, c, d, n, m, k, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(a + i, tl.load(b + i) + tl.load(c + i) * tl.load(d + i) + (n + m + k) * s)
)";

using Row = std::function<void(const LaunchCost&)>;

// Fills in the times of `cost`: interleaved rounds of calls, the queue drained between rounds.
template <class A, class B, class Drain>
void measure(A raw, B ours, Drain drain, LaunchCost& cost) {
  // A round of 200 fits a stream's queue, so no call waits for the device.
  constexpr int kRounds = 240, kCalls = 200;
  auto one_round = [&](auto& fn, std::vector<double>& out) {
    // Outside of the time: the queue is empty when a round begins.
    drain();
    auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) fn();
    out.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kCalls);
  };
  std::vector<double> extra;
  for (int r = 0; r < kRounds; ++r) {
    // The order changes every round, so that neither side always follows the other.
    if (r % 2)
      one_round(raw, cost.raw_ns), one_round(ours, cost.kiln_ns);
    else
      one_round(ours, cost.kiln_ns), one_round(raw, cost.raw_ns);
    // By rounds: the difference of neighbours holds while the clock wanders.
    extra.push_back(cost.kiln_ns.back() - cost.raw_ns.back());
  }
  for (auto* times : {&cost.raw_ns, &cost.kiln_ns, &extra}) std::sort(times->begin(), times->end());
  cost.extra_ns = extra[extra.size() / 2];
}

void print_row(const LaunchCost& c) {
  auto middle = [](const std::vector<double>& t) { return t[t.size() / 2]; };
  fmt::print("{:8} {:18} {:24} {:>9.0f} {:>9.0f} {:>11.0f} {:>9.0f} {:>+12.0f}\n", c.device, c.api,
             fmt::format("{}, {} slots", c.what, c.slots), c.raw_ns.front(), middle(c.raw_ns), c.kiln_ns.front(),
             middle(c.kiln_ns), c.extra_ns);
}

// The launch of `name` on the device, against `raw(loaded kernel, slots)`.
template <class Raw>
Status compare(const Device& device, const char* name, const std::string& what, const Args& args, int64_t slots,
               Raw raw, const Row& row) {
  KILN_TRY(Kernel kernel, Kernel::from_source(kSource, "launch_bench.py", name));
  // Compiles it; what is measured is a launch of a kernel that is loaded.
  KILN_CHECK_OK(kernel.launch({1, 1, 1}, args));
  KILN_CHECK_OK(device.synchronize());
  Status failed;
  auto ours = [&] {
    if (auto status = kernel.launch({1, 1, 1}, args); !status.ok()) failed = std::move(status);
  };
  auto drain = [&] {
    if (auto status = device.synchronize(); !status.ok()) failed = std::move(status);
  };
  LaunchCost cost = {device.name(), what, slots, {}, {}};
  measure(raw, ours, drain, cost);
  KILN_CHECK_OK(failed);
  row(cost);
  return {};
}

/// What is freed at the end of a scope, of the C API.
template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, decltype([](T* handle) { Free(handle); })>;

Status status_of(kiln_error* failed) {
  if (!failed) return {};
  const Owned<kiln_error, kiln_error_free> owned(failed);
  return error(ErrorKind::kInternal, "{}", kiln_error_message(failed));
}

/// The same kernel through include/kiln/kiln.h: kiln_launch on `stream`, with the slots.
template <class Raw, class Drain>
Status compare_c(const Device& device, const char* name, const char* signature, const std::string& what,
                 std::span<const uint64_t> slots, void* stream, Raw raw, Drain drain, const Row& row) {
  kiln_device* opened = nullptr;
  kiln_kernel* parsed = nullptr;
  kiln_image* compiled = nullptr;
  kiln_function* loaded = nullptr;
  KILN_CHECK_OK(status_of(kiln_device_open(device.is_cuda() ? "cuda:0" : "cpu", &opened)));
  const Owned<kiln_device, kiln_device_free> keeps_device(opened);
  KILN_CHECK_OK(status_of(kiln_kernel_parse(kSource, "launch_bench.py", name, &parsed)));
  const Owned<kiln_kernel, kiln_kernel_free> keeps_kernel(parsed);
  const char* const constexprs[] = {"BLOCK=16"};
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  options.signature = signature;
  options.constexprs = constexprs;
  options.num_constexprs = 1;
  options.device = opened;
  KILN_CHECK_OK(status_of(kiln_compile(parsed, &options, &compiled)));
  const Owned<kiln_image, kiln_image_free> keeps_image(compiled);
  KILN_CHECK_OK(status_of(kiln_load(compiled, opened, &loaded)));
  const Owned<kiln_function, kiln_function_free> keeps_function(loaded);
  Status failed;
  LaunchCost cost = {device.name(), what, static_cast<int64_t>(slots.size()), {}, {}};
  cost.api = "C kiln_launch";
  measure(
      raw,
      [&] {
        if (kiln_error* e = kiln_launch(loaded, 1, 1, 1, slots.data(), slots.size(), stream)) failed = status_of(e);
      },
      drain, cost);
  drain();
  KILN_CHECK_OK(failed);
  row(cost);
  return {};
}

constexpr const char* kOneC = "*fp32:16";
constexpr const char* kEightC = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, i32, fp32";

#if KILN_HAS_CUDA
// The raw side: cuLaunchKernel of the same code with as many parameters, through a driver table of our own, on our own
// stream of the same primary context.
class RawLaunch {
 public:
  static Result<RawLaunch> make(std::shared_ptr<const runtime::Driver> driver, const KernelInfo& info) {
    RawLaunch raw(std::move(driver), static_cast<unsigned>(info.num_warps * 32));
    KILN_CU_TRY(raw.driver_, cuModuleLoadDataEx(&raw.module_, info.ptx.c_str(), 0, nullptr, nullptr));
    KILN_CU_TRY(raw.driver_, cuModuleGetFunction(&raw.function_, raw.module_, info.name.c_str()));
    // Non-blocking, or each launch would be ordered with the default stream.
    KILN_CU_TRY(raw.driver_, cuStreamCreate(&raw.stream_, CU_STREAM_NON_BLOCKING));
    return raw;
  }
  RawLaunch(RawLaunch&& o) noexcept
      : driver_(std::move(o.driver_)),
        module_(o.module_),
        function_(o.function_),
        stream_(o.stream_),
        threads_(o.threads_) {
    o.driver_ = nullptr;
  }
  ~RawLaunch() {
    if (!driver_) return;
    // First the stream's end: the module must not be unloaded under a running kernel.
    if (stream_) driver_->cuStreamSynchronize(stream_), driver_->cuStreamDestroy(stream_);
    if (module_) driver_->cuModuleUnload(module_);
  }
  void operator()(void** params) const {
    driver_->cuLaunchKernel(function_, 1, 1, 1, threads_, 1, 1, 0, stream_, params, nullptr);
  }
  void* stream() const { return stream_; }
  Status drain() const {
    KILN_CU_TRY(driver_, cuStreamSynchronize(stream_));
    return {};
  }

 private:
  RawLaunch(std::shared_ptr<const runtime::Driver> driver, unsigned threads)
      : driver_(std::move(driver)), threads_(threads) {}

  std::shared_ptr<const runtime::Driver> driver_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  unsigned threads_;
};

Status bench_cuda(const Device& device, const Args& one, const Args& eight, const Row& row) {
  KILN_TRY(std::shared_ptr<const runtime::Driver> driver, runtime::Driver::open());
  auto against_raw = [&](const char* name, const Args& args, int64_t slots) -> Status {
    KILN_TRY(Kernel kernel, Kernel::from_source(kSource, "launch_bench.py", name));
    KILN_TRY(KernelInfo info, kernel.compile(args));  // also makes the context current
    KILN_TRY(RawLaunch raw, RawLaunch::make(driver, info));
    const uint64_t address = std::get<Tensor>(*args[0]).address();
    uint64_t values[8];
    void* params[8];
    // Four tensors come first; the numbers are zeros, on whose values no time depends.
    for (size_t i = 0; i < 8; ++i) values[i] = i < 4 ? address : 0, params[i] = &values[i];
    KILN_CHECK_OK(compare(
        device, name, "cuLaunchKernel", args, slots, [&] { raw(params); }, row));
    return compare_c(
        device, name, slots == 1 ? kOneC : kEightC, "cuLaunchKernel", {values, static_cast<size_t>(slots)},
        raw.stream(), [&] { raw(params); }, [&] { (void)raw.drain(); }, row);
  };
  KILN_CHECK_OK(against_raw("one", one, 1));
  return against_raw("eight", eight, 8);
}
#endif

Result<std::pair<Args, Args>> arguments(const Device& device) {
  const int64_t shape[] = {1024};
  KILN_TRY(Tensor t, Tensor::zeros(device, DType::kF32, shape));
  return std::pair{Args{t, int64_t{16}}, Args{t, t, t, t, int64_t{7}, int64_t{32}, int64_t{5}, 1.5, int64_t{16}}};
}

// The raw side on the CPU: the call of a function with the signature of a host kernel.
void empty_entry(const uint64_t*, const int32_t*, int64_t, int64_t, void*) {}

Status bench_cpu(const Runtime& runtime, const Row& row) {
  KILN_TRY(Device cpu, runtime.open("cpu"));
  KILN_TRY(auto args, arguments(cpu));
  // Volatile, or the compiler would see the empty function and drop the call.
  runtime::HostEntry volatile entry = empty_entry;
  const int32_t grid[3] = {1, 1, 1};
  uint64_t slots[8] = {};
  auto raw = [&] { entry(slots, grid, 0, 1, nullptr); };
  KILN_CHECK_OK(compare(cpu, "one", "call of the code", args.first, 1, raw, row));
  KILN_CHECK_OK(compare(cpu, "eight", "call of the code", args.second, 8, raw, row));
  for (size_t i = 0; i < 4; ++i) slots[i] = std::get<Tensor>(*args.second[i]).address();
  const auto wait_for_none = [] {};
  KILN_CHECK_OK(compare_c(cpu, "one", kOneC, "call of the code", {slots, 1}, nullptr, raw, wait_for_none, row));
  return compare_c(cpu, "eight", kEightC, "call of the code", {slots, 8}, nullptr, raw, wait_for_none, row);
}

}  // namespace

Result<std::optional<RawCall>> raw_launch([[maybe_unused]] const Device& device) {
#if KILN_HAS_CUDA
  if (device.is_cuda()) {
    struct Held {
      RawLaunch raw;
      Tensor tensor;
      uint64_t address = tensor.address();
      void* params[3] = {&address, &address, &address};
    };
    // More elements than any of the kernels writes.
    const int64_t shape[] = {1024};
    KILN_TRY(std::shared_ptr<const runtime::Driver> driver, runtime::Driver::open());
    KILN_TRY(Tensor tensor, Tensor::zeros(device, DType::kF32, shape));
    KILN_TRY(Kernel kernel, Kernel::from_source(kSource, "launch_bench.py", "three"));
    KILN_TRY(KernelInfo info, kernel.compile(Args{tensor, tensor, tensor, int64_t{16}}));
    KILN_TRY(RawLaunch raw, RawLaunch::make(std::move(driver), info));
    // Held together, since the parameters point to the address inside.
    auto held = std::shared_ptr<Held>(new Held{std::move(raw), std::move(tensor)});
    return std::optional(RawCall{[held] { held->raw(held->params); }, [held] { return held->raw.drain(); }});
  }
#endif
  return std::optional<RawCall>();
}

Status measure_launches(const Row& row) {
  const Runtime runtime;
#if KILN_HAS_CUDA
  if (auto gpu = runtime.open("cuda:0"); gpu.ok()) {
    KILN_TRY(auto args, arguments(*gpu));
    KILN_CHECK_OK(bench_cuda(*gpu, args.first, args.second, row));
  }
#endif
  return bench_cpu(runtime, row);
}

Status run_launch_bench() {
  fmt::print("launch, ns of CPU time per call{:32} {:>9} {:>9} {:>11} {:>9} {:>12}\n", "", "raw min", "median",
             "kiln min", "median", "difference");
  if (auto gpu = Runtime().open("cuda:0"); !gpu.ok()) fmt::print("no GPU rows: {}\n", gpu.error().message);
  return measure_launches(print_row);
}

}  // namespace kiln::bench
