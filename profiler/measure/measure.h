// Timing: warm-up, cold and hot caches, a stopping rule, and interleaved pairs for ratios (docs/compare.md).
// Times are microseconds: device events on a GPU, the steady clock around launch and wait on the CPU.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
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

struct MeasureOptions {
  Cache cache = Cache::kCold;
  double max_noise = 0.005;  // stop when stddev/mean is below
  double min_total_s = 0.5;  // and this much time has been measured
  int min_samples = 10;
  int max_samples = 2000;
  double timeout_s = 15;  // of wall time, warm-up included; at least three samples are taken
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

/// A sample with further readings of the device; unknown ones are negative.
struct Sample {
  double us = 0;        // on the device's clock
  double call_us = -1;  // CPU time of the launch; on the CPU, where the work is done in the call, unknown
  double sm_mhz = -1;   // clock of a GPU's multiprocessors around it
  bool held = true;     // CPU time is not in `us`: the stream was gated, or kept busy, until all was queued

  /// Thousands of cycles; negative when the clock is unknown.
  double kcycles() const { return sm_mhz > 0 ? us * sm_mhz / 1e3 : -1; }
};
using SampleTaker = std::function<Result<Sample>()>;

/// Warm-up until three consecutive medians of five samples move by less than 0.5 % (or a fifth of the timeout is gone),
/// then samples until the stopping rule. `now_s` is a clock in seconds; tests pass their own. A sample that fails with
/// kInterrupted ends it; three samples or more give a result.
Result<Measurement> measure_samples(const Sampler& sample, const MeasureOptions& options,
                                    const std::function<double()>& now_s);

/// kDrift and kAutocorrelated, from samples in their order.
uint32_t shape_flags(std::span<const double> samples, const Summary& summary);

/// kClockChanged, from the clocks of samples.
uint32_t clock_flags(std::span<const double> mhz);

/// Runs the sampler until it settles as measure_samples does; false when `until_s` came first.
Result<bool> warm_up(const Sampler& sample, double until_s, const std::function<double()>& now_s);

Result<Measurement> measure(const Launchable& what, const MeasureOptions& options = {});

enum class Verdict { kFaster, kSlower, kSame, kUndecided };
std::string_view name(Verdict verdict);

struct CompareOptions {
  Cache cache = Cache::kCold;
  double timeout_s = 30;
  int max_pairs = 200;
  bool control = true;  // measure A against A too, for the noise floor
  uint64_t seed = 1;    // of the random AB/BA order
};

/// A against B over interleaved pairs. speedup > 1: A is faster.
struct Comparison {
  Summary a_us, b_us;
  double speedup = 1;   // exp(median of ln(tB/tA))
  Interval speedup_95;  // exact order statistics
  double floor = 0;     // |ln ratio| that A against A shows; 0 without a control
  Verdict verdict = Verdict::kUndecided;
  int pairs = 0;
  bool timed_out = false;  // fewer pairs than a decision needed
};

/// The verdict from log ratios ln(tB/tA): FASTER or SLOWER when the interval excludes 0 and the effect is above
/// max(0.5 %, floor), SAME when the interval lies inside ±0.5 %, else UNDECIDED.
Verdict decide(std::span<const double> log_ratios, double confidence, double floor);

/// Looks at n = 12, 20, 30, 50, 100 and 200 pairs; 99 % intervals until the last look.
Result<Comparison> compare_samples(const Sampler& a, const Sampler& b, const CompareOptions& options,
                                   const std::function<double()>& now_s);

/// Both must be of one device.
Result<Comparison> compare(const Launchable& a, const Launchable& b, const CompareOptions& options = {});

/// Makes samplers of one device: owns the buffer that flushes its caches, and the gate of a GPU's stream while a
/// sample is queued.
class Timer {
 public:
  static Result<Timer> make(const Device& device);
  SampleTaker taker(const Launchable& what, Cache cache) const;
  /// The times alone.
  Sampler sampler(const Launchable& what, Cache cache) const;
  /// Microseconds of one launch of `repeats` in a row, with nothing between them.
  Result<double> back_to_back(const Device& device, const std::function<Status()>& launch, int repeats) const;
  /// How times are taken: "time between device events, the launch queued behind a gate".
  const std::string& method() const;

 private:
  struct Parts;
  explicit Timer(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<Parts> parts_;
};

/// The device's copy: device to device on a GPU, memcpy with every worker thread on the CPU. Bytes read plus written
/// per launch are 2 · `bytes`. The buffers live in the launchable.
Result<Launchable> copy_launchable(const Device& device, int64_t bytes);

/// Seconds of the steady clock.
double steady_seconds();

}  // namespace kiln::profiler
