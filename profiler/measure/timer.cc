// One timed launch on a device, with its caches flushed or warm.
#include "profiler/measure/timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "kiln/tensor.h"
#include "profiler/measure/gate.h"
#include "support/diag.h"
#include "support/pieces.h"

namespace kiln::profiler {

struct Timer::Parts {
  Device device;
  Tensor buffer;               // GPU: a write of it replaces every line of the L2
  std::vector<char> host;      // CPU: read and written through the last-level cache
  std::unique_ptr<Gate> gate;  // null: see method
  std::string method;
  char value = 0;

  Status flush() {
    ++value;
    if (device.is_cuda()) return buffer.fill(value);
    constexpr size_t kLine = 64;
    for (size_t i = 0; i < host.size(); i += kLine) host[i] = static_cast<char>(host[i] + value);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return {};
  }

  Result<Sample> on_host(const Launchable& what, Cache cache) {
    if (cache == Cache::kCold) {
      KILN_CHECK_OK(flush());
    } else {
      KILN_CHECK_OK(what.launch());
      KILN_CHECK_OK(what.device.synchronize());
    }
    const double start = steady_seconds();
    KILN_CHECK_OK(what.launch());
    KILN_CHECK_OK(what.device.synchronize());
    return Sample{(steady_seconds() - start) * 1e6};
  }

  // The stream does nothing until all of the sample is queued.
  Result<Sample> gated(const Launchable& what, Cache cache) {
    KILN_CHECK_OK(gate->stamp(Gate::kBefore));
    KILN_CHECK_OK(flush());
    if (cache == Cache::kHot) KILN_CHECK_OK(what.launch());  // refills the caches
    KILN_CHECK_OK(gate->close());
    // Whatever fails from here on, the stream must go on.
    struct Opened {
      Gate& gate;
      ~Opened() { gate.open(); }
    };
    Event begin, end, last;
    Sample sample;
    {
      Opened opened{*gate};
      KILN_TRY(begin, what.device.record());
      const double start = steady_seconds();
      KILN_CHECK_OK(what.launch());
      sample.call_us = (steady_seconds() - start) * 1e6;
      KILN_TRY(end, what.device.record());
      KILN_CHECK_OK(gate->stamp(Gate::kAfter));
      KILN_TRY(last, what.device.record());
    }
    KILN_TRY(double ms, what.device.elapsed_ms(begin, end));
    KILN_CHECK_OK(last.synchronize());
    sample.us = ms * 1e3;
    sample.sm_mhz = gate->sm_mhz();
    sample.held = !gate->ran_out();
    return sample;
  }

  // The flush keeps the stream busy while the CPU queues. A launch that was queued only after it had ended would have
  // its own CPU time in the sample: such a sample is taken again behind a longer flush.
  Result<Sample> behind_flushes(const Launchable& what, Cache cache, int& fills) {
    constexpr int kMostFills = 64;
    for (;;) {
      KILN_TRY(Event start, what.device.record());
      const double queue_start = steady_seconds();
      for (int i = 0; i < fills; ++i) KILN_CHECK_OK(flush());
      if (cache == Cache::kHot) KILN_CHECK_OK(what.launch());
      KILN_TRY(Event begin, what.device.record());
      const double call_start = steady_seconds();
      KILN_CHECK_OK(what.launch());
      const double queued = steady_seconds();
      KILN_TRY(Event end, what.device.record());
      KILN_TRY(double ms, what.device.elapsed_ms(begin, end));
      KILN_TRY(double busy_ms, what.device.elapsed_ms(start, begin));
      const bool held = (queued - queue_start) * 1e3 < busy_ms;
      if (held || fills >= kMostFills) return Sample{ms * 1e3, (queued - call_start) * 1e6, -1, held};
      fills = std::min(kMostFills, 2 * fills);
    }
  }
};

Result<Timer> Timer::make(const Device& device) {
  auto parts = std::make_shared<Parts>();
  parts->device = device;
  DeviceInfo info = device.info();
  if (device.is_cuda()) {
    // Long enough that without a gate, too, the CPU has mostly queued the launch before the flush ends.
    constexpr int64_t kLeast = int64_t{256} << 20;
    const int64_t shape[] = {std::max(kLeast, 2 * info.l2_bytes) / 4};
    KILN_TRY(parts->buffer, Tensor::empty(device, DType::kI32, shape));
    auto gate = Gate::make(device);
    if (gate.ok())
      parts->gate = std::move(*gate), parts->method = "time between device events, the launch queued behind a gate";
    else
      parts->method = "time between device events, the launch queued behind flushes (" + gate.error().message + ")";
  } else {
    constexpr int64_t kLeast = int64_t{32} << 20, kMost = int64_t{512} << 20;
    const auto bytes = static_cast<size_t>(std::clamp(info.l2_bytes, kLeast, kMost));
    parts->host.reserve(bytes);
    KILN_CHECK_OK(in_pieces_of(bytes, [&](size_t, size_t end) {
      parts->host.resize(end);
      return Status();
    }));
    parts->method = "steady clock around call and wait";
  }
  return Timer(std::move(parts));
}

const std::string& Timer::method() const { return parts_->method; }

SampleTaker Timer::taker(const Launchable& what, Cache cache) const {
  std::shared_ptr<Parts> parts = parts_;
  if (!what.device.is_cuda()) return [parts, what, cache] { return parts->on_host(what, cache); };
  if (!parts->gate)
    return [parts, what, cache, fills = 1]() mutable { return parts->behind_flushes(what, cache, fills); };
  // A launch that waits for the device once may have allocated; one that always does cannot be held back.
  return [parts, what, cache, fills = 1, ran_out = 0]() mutable -> Result<Sample> {
    constexpr int kTries = 3;
    while (ran_out < kTries) {
      KILN_TRY(Sample sample, parts->gated(what, cache));
      if (sample.held) {
        ran_out = 0;
        return sample;
      }
      ++ran_out;
    }
    return parts->behind_flushes(what, cache, fills);
  };
}

Sampler Timer::sampler(const Launchable& what, Cache cache) const {
  return [take = taker(what, cache)]() -> Result<double> {
    KILN_TRY(Sample sample, take());
    return sample.us;
  };
}

Result<double> Timer::back_to_back(const Device& device, const std::function<Status()>& launch, int repeats) const {
  if (parts_->gate) KILN_CHECK_OK(parts_->gate->close());
  struct Opened {
    Gate* gate;
    ~Opened() {
      if (gate) gate->open();
    }
  };
  Event begin, end;
  {
    Opened opened{parts_->gate.get()};
    KILN_TRY(begin, device.record());
    for (int i = 0; i < repeats; ++i) KILN_CHECK_OK(launch());
    KILN_TRY(end, device.record());
  }
  KILN_TRY(double ms, device.elapsed_ms(begin, end));
  return ms * 1e3 / repeats;
}

Result<Measurement> measure(const Launchable& what, const MeasureOptions& options) {
  KILN_TRY(Timer timer, Timer::make(what.device));
  return measure_samples(timer.sampler(what, options.cache), options, steady_seconds);
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace kiln::profiler
