#include "profiler/ceilings.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "kiln/blas.h"
#include "profiler/measure.h"
#include "profiler/report/table.h"
#include "runtime/device.h"
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

// A ceiling is what is reached at best, so the fast quarter of the samples counts.
Result<double> best_us(const Launchable& what) {
  MeasureOptions options;
  options.max_noise = 0.01;
  options.min_total_s = 0.05;
  options.timeout_s = 3;
  KILN_TRY(Measurement m, measure(what, options));
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

Result<Ceiling> measure_product(const Device& device, DType operand) {
  const int64_t n = !device.is_cuda() ? 1024 : size_of(operand) <= 2 ? 8192 : 4096;
  const int64_t shape[] = {n, n}, turned[] = {1, n};
  KILN_TRY(Tensor a, Tensor::full(device, operand, shape, 1));
  KILN_TRY(Tensor rows, Tensor::full(device, operand, shape, 1));
  // Both operands lie along K: the one form that every type has.
  KILN_TRY(Tensor b, rows.as_strided(shape, turned, 0));
  MatmulOptions options;
  options.impl = device.is_cuda() ? MatmulImpl::kCublasLtBest : MatmulImpl::kOpenBlas;
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

Roofline roofline(double us, double bytes, double flop, const Ceiling& memory, const Ceiling* math) {
  const double moving = bytes > 0 ? bytes / memory.per_us : 0, computing = math && flop > 0 ? flop / math->per_us : 0;
  return {std::max(moving, computing) / us, moving >= computing ? "memory" : "math"};
}

}  // namespace kiln::profiler
