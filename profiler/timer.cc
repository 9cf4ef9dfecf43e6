// Samplers: one timed launch on a device, with its caches flushed or warm.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "kiln/tensor.h"
#include "profiler/measure.h"
#include "support/diag.h"

namespace kiln::profiler {

namespace {

// Worker threads that copy one slice each; the caller waits for all.
class ParallelCopy {
 public:
  ParallelCopy(int threads, size_t bytes) : from_(bytes, 1), to_(bytes, 2) {
    for (int i = 0; i < threads; ++i) workers_.emplace_back([this, i, threads] { work(i, threads); });
  }
  ~ParallelCopy() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    go_.notify_all();
    for (std::thread& t : workers_) t.join();
  }
  ParallelCopy(const ParallelCopy&) = delete;
  ParallelCopy& operator=(const ParallelCopy&) = delete;

  void run() {
    std::unique_lock lock(mutex_);
    ++round_;
    left_ = static_cast<int>(workers_.size());
    go_.notify_all();
    done_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  void work(int index, int threads) {
    size_t n = from_.size(), begin = n * index / threads, end = n * (index + 1) / threads;
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      go_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      lock.unlock();
      std::memcpy(to_.data() + begin, from_.data() + begin, end - begin);
      lock.lock();
      if (--left_ == 0) done_.notify_all();
    }
  }

  std::vector<char> from_, to_;
  std::mutex mutex_;
  std::condition_variable go_, done_;
  uint64_t round_ = 0;
  int left_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

struct Timer::Flusher {
  Device device;
  Tensor buffer;           // GPU: a write of it replaces every line of the L2
  std::vector<char> host;  // CPU: read and written through the last-level cache
  char value = 0;

  Status flush() {
    ++value;
    if (device.is_cuda()) return buffer.fill(value);
    constexpr size_t kLine = 64;
    for (size_t i = 0; i < host.size(); i += kLine) host[i] = static_cast<char>(host[i] + value);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return {};
  }
};

Result<Timer> Timer::make(const Device& device) {
  auto flusher = std::make_shared<Flusher>();
  flusher->device = device;
  DeviceInfo info = device.info();
  if (device.is_cuda()) {
    // Long enough that the CPU has queued the launch before the flush ends, so launch time stays out of the sample.
    constexpr int64_t kLeast = int64_t{256} << 20;
    const int64_t shape[] = {std::max(kLeast, 2 * info.l2_bytes) / 4};
    KILN_TRY(flusher->buffer, Tensor::empty(device, DType::kI32, shape));
  } else {
    constexpr int64_t kLeast = int64_t{32} << 20, kMost = int64_t{512} << 20;
    flusher->host.resize(static_cast<size_t>(std::clamp(info.l2_bytes, kLeast, kMost)));
  }
  return Timer(std::move(flusher));
}

Sampler Timer::sampler(const Launchable& what, Cache cache) {
  std::shared_ptr<Flusher> flusher = flusher_;
  if (!what.device.is_cuda())
    return [flusher, what, cache]() -> Result<double> {
      if (cache == Cache::kCold) {
        KILN_CHECK_OK(flusher->flush());
      } else {
        KILN_CHECK_OK(what.launch());
        KILN_CHECK_OK(what.device.synchronize());
      }
      double start = steady_seconds();
      KILN_CHECK_OK(what.launch());
      KILN_CHECK_OK(what.device.synchronize());
      return (steady_seconds() - start) * 1e6;
    };
  return [flusher, what, cache, fills = 1]() mutable -> Result<double> {
    // The flush keeps the stream busy while the CPU queues. A launch that was queued only after it had ended would have
    // its own CPU time in the sample: such a sample is taken again behind a longer flush.
    constexpr int kMostFills = 64;
    for (;;) {
      KILN_TRY(Event start, what.device.record());
      const double queue_start = steady_seconds();
      for (int i = 0; i < fills; ++i) KILN_CHECK_OK(flusher->flush());
      if (cache == Cache::kHot) KILN_CHECK_OK(what.launch());  // brings the data back
      KILN_TRY(Event begin, what.device.record());
      KILN_CHECK_OK(what.launch());
      const double queued_ms = (steady_seconds() - queue_start) * 1e3;
      KILN_TRY(Event end, what.device.record());
      KILN_TRY(double ms, what.device.elapsed_ms(begin, end));
      KILN_TRY(double busy_ms, what.device.elapsed_ms(start, begin));
      if (queued_ms < busy_ms || fills >= kMostFills) return ms * 1e3;
      fills = std::min(kMostFills, 2 * fills);
    }
  };
}

Result<Measurement> measure(const Launchable& what, const MeasureOptions& options) {
  KILN_TRY(Timer timer, Timer::make(what.device));
  return measure_samples(timer.sampler(what, options.cache), options, steady_seconds);
}

Result<Comparison> compare(const Launchable& a, const Launchable& b, const CompareOptions& options) {
  if (!(a.device == b.device)) return error(ErrorKind::kValue, "'{}' and '{}' are on two devices", a.name, b.name);
  KILN_TRY(Timer timer, Timer::make(a.device));
  return compare_samples(timer.sampler(a, options.cache), timer.sampler(b, options.cache), options, steady_seconds);
}

Result<Launchable> copy_launchable(const Device& device, int64_t bytes) {
  if (!device.is_cuda()) {
    auto copy = std::make_shared<ParallelCopy>(std::max(1, device.info().compute_units), static_cast<size_t>(bytes));
    return Launchable{"copy", device, [copy]() -> Status {
                        copy->run();
                        return {};
                      }};
  }
  const int64_t shape[] = {std::max<int64_t>(1, bytes / 4)};
  KILN_TRY(Tensor from, Tensor::zeros(device, DType::kI32, shape));
  KILN_TRY(Tensor to, Tensor::empty(device, DType::kI32, shape));
  return Launchable{"copy", device, [from, to]() -> Status { return to.copy_from(from); }};
}

}  // namespace kiln::profiler
