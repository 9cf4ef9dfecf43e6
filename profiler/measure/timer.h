// Samplers: device events on a GPU, the steady clock around launch and wait on the CPU.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "profiler/measure/measure.h"

namespace kiln::profiler {

/// A sample with what else the device says of it; what is unknown is negative.
struct Sample {
  double us = 0;        // on the device's clock
  double call_us = -1;  // CPU time of the launch; on the CPU, where the work is done in the call, unknown
  double sm_mhz = -1;   // clock of a GPU's multiprocessors around it
  bool held = true;     // CPU time is not in `us`: the stream was held back, or kept busy, until all was queued

  /// Thousands of cycles; negative when the clock is unknown.
  double kcycles() const { return sm_mhz > 0 ? us * sm_mhz / 1e3 : -1; }
};
using SampleTaker = std::function<Result<Sample>()>;

/// Makes samplers of one device: owns the buffer that flushes its caches, and what holds back a GPU's stream while a
/// sample is queued.
class Timer {
 public:
  /// kInterrupted: Ctrl-C came; a buffer as large as the caches of a server's CPU takes 0.2 s.
  static Result<Timer> make(const Device& device);
  SampleTaker taker(const Launchable& what, Cache cache) const;
  /// The times alone.
  Sampler sampler(const Launchable& what, Cache cache) const;
  /// Microseconds of one launch of `repeats` in a row, with nothing between them.
  Result<double> back_to_back(const Device& device, const std::function<Status()>& launch, int repeats) const;
  /// What a time is: "time between device events, the launch queued behind a gate".
  const std::string& method() const;

 private:
  struct Parts;
  explicit Timer(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<Parts> parts_;
};

/// Seconds of the steady clock.
double steady_seconds();

}  // namespace kiln::profiler
