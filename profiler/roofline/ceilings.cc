#include "profiler/roofline/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "kiln/blas.h"
#include "kiln/interrupt.h"
#include "kiln/kernel.h"
#include "profiler/measure/copy.h"
#include "profiler/measure/measure.h"
#include "profiler/report/table.h"
#include "runtime/device/device.h"
#include "support/diag.h"

namespace kiln::profiler {

namespace {

// What was measured of one device.
class Measured : public runtime::Companion {
 public:
  template <class Make>
  Result<Ceiling> get(const std::string& key, Make&& make) {
    std::lock_guard lock(mutex_);
    auto found = ceilings_.find(key);
    if (found != ceilings_.end()) return found->second;
    // To allocate what is measured takes long, too.
    if (interrupt_requested()) return error(ErrorKind::kInterrupted, "interrupted");
    KILN_TRY(Ceiling made, make());
    ceilings_[key] = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Ceiling> ceilings_;
};

Result<Measured*> measured(const Device& device) {
  KILN_TRY(runtime::Companion * found,
           device.impl()->companion("profiler ceilings",
                                    [](runtime::DeviceImpl&) -> Result<std::unique_ptr<runtime::Companion>> {
                                      return std::unique_ptr<runtime::Companion>(std::make_unique<Measured>());
                                    }));
  return static_cast<Measured*>(found);
}

// A ceiling is what is reached at best, so the fast quarter of the samples counts. Of what was cut short nothing is
// kept: the ceiling would stay.
Result<double> best_us(const Launchable& what, Cache cache = Cache::kCold) {
  MeasureOptions options;
  options.cache = cache;
  options.max_noise = 0.01;
  options.min_total_s = 0.05;
  options.timeout_s = 3;
  options.stop = interrupt_requested;  // neither copies nor products of a library on the host look at that
  KILN_TRY(Measurement m, measure(what, options));
  if (m.flags & kStopped) return error(ErrorKind::kInterrupted, "interrupted");
  return m.us.q1;
}

Result<Ceiling> measure_copy(const Device& device) {
  const int64_t wanted = device.is_cuda() ? int64_t{1} << 30 : int64_t{1} << 28;
  const int64_t memory = device.info().memory_bytes;
  const int64_t bytes = std::min(wanted, std::max<int64_t>(memory / 16, 1 << 20));
  KILN_TRY(Launchable copy, copy_launchable(device, bytes));
  KILN_TRY(double us, best_us(copy));
  const double moved = 2.0 * static_cast<double>(bytes);
  return Ceiling{moved / us, fmt::format("copy of {}", report::human_bytes(static_cast<double>(bytes)))};
}

constexpr const char* kKernels = R"(
import triton
import triton.language as tl

@triton.jit
def multiply_add(out, a, b, rounds, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = i.to(tl.float32)
    for _ in range(0, rounds):
        for k in tl.static_range(STEPS):
            x = x * a + b
    tl.store(out + tl.program_id(0) * BLOCK + i, x)

@triton.jit
def read_through(x, out, blocks, rounds, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    at = tl.program_id(0)
    for _ in range(0, rounds):
        for k in tl.static_range(STEPS):
            total += tl.load(x + (at % blocks) * BLOCK + i, cache_modifier=".cg")
            at += tl.num_programs(0)
    tl.store(out + tl.program_id(0) * BLOCK + i, total)
)";
constexpr int64_t kBlocksPerSm = 16;  // of 4 warps: an SM is full

Result<Ceiling> measure_vector(const Device& device) {
  // On the CPU a tile that stays in registers, on a GPU 8 elements per thread: independent chains hide the latency.
  const int64_t block = device.is_cuda() ? 1024 : 64, rounds = device.is_cuda() ? 256 : 4096, steps = 16;
  const int64_t programs = device.info().compute_units * (device.is_cuda() ? kBlocksPerSm : 4);
  KILN_TRY(Kernel kernel, Kernel::from_source(kKernels, "<ceilings>", "multiply_add"));
  KILN_TRY(Tensor out, Tensor::empty(device, DType::kF32, std::vector<int64_t>{programs * block}));
  std::vector<std::optional<Arg>> args = {Arg(out), Arg(0.999), Arg(0.001), Arg(rounds), Arg(block), Arg(steps)};
  Launchable run{"multiply-adds", device, [kernel, args, programs] { return kernel.launch({programs, 1, 1}, args); }};
  KILN_CHECK_OK(run.launch());
  KILN_TRY(double us, best_us(run));
  return Ceiling{2.0 * static_cast<double>(programs * block * rounds * steps) / us,
                 fmt::format("f32 multiply-adds in registers, {} programs", programs)};
}

Result<Ceiling> measure_l2(const Device& device) {
  if (!device.is_cuda())
    return error(ErrorKind::kUnsupported, "the caches of {} are not measured: its cores do not share them evenly",
                 device.name());
  const int64_t block = 1024, steps = 8, rounds = 16, l2 = device.info().l2_bytes;
  int64_t blocks = 1;  // a third of the L2 at most: it is in parts, and each may keep a copy
  while (2 * blocks * block * 4 <= l2 / 3) blocks *= 2;
  const int64_t programs = device.info().compute_units * kBlocksPerSm;
  KILN_TRY(Kernel kernel, Kernel::from_source(kKernels, "<ceilings>", "read_through"));
  KILN_TRY(Tensor x, Tensor::full(device, DType::kF32, std::vector<int64_t>{blocks * block}, 1));
  KILN_TRY(Tensor out, Tensor::empty(device, DType::kF32, std::vector<int64_t>{programs * block}));
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(out), Arg(blocks), Arg(rounds), Arg(block), Arg(steps)};
  Launchable run{"reads", device, [kernel, args, programs] { return kernel.launch({programs, 1, 1}, args); }};
  KILN_CHECK_OK(run.launch());
  KILN_TRY(double us, best_us(run, Cache::kHot));
  return Ceiling{
      4.0 * static_cast<double>(programs * block * rounds * steps) / us,
      fmt::format("reads of {} that lie in the L2", report::human_bytes(4.0 * static_cast<double>(blocks * block)))};
}

Result<Ceiling> measure_product(const Device& device, DType operand) {
  const int64_t n = !device.is_cuda() ? 1024 : size_of(operand) <= 2 ? 8192 : 4096;
  const int64_t shape[] = {n, n}, turned[] = {1, n};
  KILN_TRY(Tensor a, Tensor::full(device, operand, shape, 1));
  KILN_TRY(Tensor rows, Tensor::full(device, operand, shape, 1));
  // Both operands lie along K: the one form that every type has.
  KILN_TRY(Tensor b, rows.as_strided(shape, turned, 0));
  MatmulOptions options;
  options.impl = fastest_impl(device.is_cuda());
  KILN_TRY(options.out, matmul(a, b, options));
  Launchable product{"product", device, [a, b, options]() -> Status {
                       KILN_TRY([[maybe_unused]] Tensor out, matmul(a, b, options));
                       return {};
                     }};
  KILN_TRY(double us, best_us(product));
  const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  return Ceiling{flop / us, fmt::format("{} {} {}x{}x{}", name(*options.impl), name(operand), n, n, n)};
}

}  // namespace

Result<Ceiling> copy_ceiling(const Device& device) {
  KILN_TRY(Measured * kept, measured(device));
  return kept->get("copy", [&] { return measure_copy(device); });
}

Result<Ceiling> product_ceiling(const Device& device, DType operand) {
  KILN_TRY(Measured * kept, measured(device));
  return kept->get(std::string(name(operand)), [&] { return measure_product(device, operand); });
}

Result<Ceiling> vector_ceiling(const Device& device) {
  KILN_TRY(Measured * kept, measured(device));
  return kept->get("vector", [&] { return measure_vector(device); });
}

Result<Ceiling> l2_ceiling(const Device& device) {
  KILN_TRY(Measured * kept, measured(device));
  return kept->get("l2", [&] { return measure_l2(device); });
}

Roofline roofline(double us, double bytes, double flop, const Ceiling& memory, const Ceiling* math) {
  const double moving = bytes > 0 ? bytes / memory.per_us : 0, computing = math && flop > 0 ? flop / math->per_us : 0;
  return {std::max(moving, computing) / us, moving >= computing ? "memory" : "math"};
}

}  // namespace kiln::profiler
