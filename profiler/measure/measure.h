// One thing timed: warm-up, cold and hot caches, a stopping rule. Times are microseconds.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/measure/stats.h"

namespace kiln::profiler {

/// Something that can be timed: `launch` puts its work once on the device's default stream and does not wait.
struct Launchable {
  std::string name;
  Device device;
  std::function<Status()> launch;
};

/// kCold: caches flushed before each sample. kHot: the launch ran just before, so what fits in a cache is there.
enum class Cache { kCold, kHot };
std::string_view name(Cache cache);

/// How far a measurement is.
struct MeasureProgress {
  int samples = 0;
  double least_us = 0;  // 0: no sample yet
  double left_s = 0;    // until its end, as its samples are so far; at most until its timeout
};

struct MeasureOptions {
  Cache cache = Cache::kCold;
  double max_noise = 0.005;  // stop when stddev/mean is below
  double min_total_s = 0.5;  // and this much time has been measured
  int min_samples = 10;
  int max_samples = 2000;
  double timeout_s = 15;            // of wall time, warm-up included; at least three samples are taken
  std::function<bool()> stop = {};  // asked before each sample, which then fails with kInterrupted
  std::function<void(const MeasureProgress&)> progress = {};  // told before each sample
};

/// Problems of a measurement; printed beside it.
enum Flag : uint32_t {
  kNotSettled = 1 << 0,      // warm-up ended by its time limit
  kNoisy = 1 << 1,           // stopped by the timeout or max_samples, above max_noise
  kDrift = 1 << 2,           // |Theil–Sen slope| · n > 1 % of the median
  kAutocorrelated = 1 << 3,  // lag-1 autocorrelation > 0.3
  kClockChanged = 1 << 4,    // the clocks of the samples span more than 2 %
  kThrottled = 1 << 5,       // the clock was throttled
  kNotHeld = 1 << 6,         // CPU time of the launch is in a sample: the launch waits for the device
  kStopped = 1 << 7,         // ended by an interrupt
  kFewSamples = 1 << 8,      // fewer than three: no spread can be told
};
/// "noisy, drift"; empty for none.
std::string flag_names(uint32_t flags);

struct Measurement {
  Summary us;
  Cache cache = Cache::kCold;
  int discarded = 0;  // samples that the device's clock gave no positive time for
  uint32_t flags = 0;
  std::vector<double> samples;
};

/// Takes one sample in microseconds.
using Sampler = std::function<Result<double>()>;

/// Warm-up until three consecutive medians of five samples move by less than 0.5 % (or a fifth of the timeout is gone),
/// then samples until the stopping rule. `now_s` is a clock in seconds; tests pass their own. A sample that fails with
/// kInterrupted ends it: what was taken until then is the result, of the warm-up if there is nothing else.
Result<Measurement> measure_samples(const Sampler& sample, const MeasureOptions& options,
                                    const std::function<double()>& now_s);

/// kDrift and kAutocorrelated, from samples in their order.
uint32_t shape_flags(std::span<const double> samples, const Summary& summary);

/// kClockChanged, from the clocks of samples.
uint32_t clock_flags(std::span<const double> mhz);

/// Runs the sampler until it settles as measure_samples does; false when `until_s` came first.
Result<bool> warm_up(const Sampler& sample, double until_s, const std::function<double()>& now_s);

Result<Measurement> measure(const Launchable& what, const MeasureOptions& options = {});

}  // namespace kiln::profiler
