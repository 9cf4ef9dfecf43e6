#include "profiler/measure/measure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "support/diag.h"

namespace kiln::profiler {

namespace {

constexpr int kWindow = 5;          // samples per warm-up window
constexpr double kSettled = 0.005;  // windows' medians move by less
constexpr int kSettledWindows = 3;  // consecutive
constexpr int kAtLeast = 3;         // samples that quartiles need

uint32_t few_samples(size_t n) { return n < kAtLeast ? uint32_t{kFewSamples} : 0; }

}  // namespace

uint32_t shape_flags(std::span<const double> samples, const Summary& s) {
  uint32_t flags = 0;
  if (std::abs(theil_sen_slope(samples)) * s.n > 0.01 * s.median) flags |= kDrift;
  if (s.n >= 10 && lag1_autocorrelation(samples) > 0.3) flags |= kAutocorrelated;
  return flags;
}

uint32_t clock_flags(std::span<const double> mhz) {
  constexpr double kSpan = 0.02;
  if (mhz.empty()) return 0;
  auto [low, high] = std::minmax_element(mhz.begin(), mhz.end());
  return *high - *low > kSpan * median(mhz) ? uint32_t{kClockChanged} : 0;
}

Result<bool> warm_up(const Sampler& sample, double until_s, const std::function<double()>& now_s) {
  double previous = 0;
  int settled = 0;
  while (settled < kSettledWindows) {
    std::array<double, kWindow> window{};
    for (double& us : window) {
      // The clock is read before each sample, because one sample may take longer than the whole warm-up.
      if (now_s() >= until_s) return false;
      KILN_TRY(us, sample());
    }
    double m = median(window);
    settled = previous > 0 && std::abs(m - previous) <= kSettled * previous ? settled + 1 : 0;
    previous = m;
  }
  return true;
}

std::string_view name(Cache cache) {
  switch (cache) {
    case Cache::kCold:
      return "cold";
    case Cache::kHot:
      return "hot";
  }
  return "";
}

std::string flag_names(uint32_t flags) {
  constexpr std::pair<Flag, std::string_view> kNames[] = {{kNotSettled, "not settled"},
                                                          {kNoisy, "noisy"},
                                                          {kDrift, "drift"},
                                                          {kAutocorrelated, "autocorrelated"},
                                                          {kClockChanged, "clock changed"},
                                                          {kThrottled, "throttled"},
                                                          {kNotHeld, "CPU time included"},
                                                          {kStopped, "interrupted"},
                                                          {kFewSamples, "too few samples"}};
  std::string out;
  for (const auto& [flag, text] : kNames)
    if (flags & flag) out += (out.empty() ? "" : ", ") + std::string(text);
  return out;
}

Result<Measurement> measure_samples(const Sampler& take, const MeasureOptions& options,
                                    const std::function<double()>& now_s) {
  double start = now_s(), least_us = 0, noise = 0, total_us = 0;
  int taken_so_far = 0;
  // A quiet measurement ends with enough samples; another one is as long as it may be.
  auto left_s = [&] {
    const double now = now_s() - start, until_timeout = std::max(0.0, options.timeout_s - now);
    if (taken_so_far < kAtLeast || noise >= options.max_noise || total_us <= 0) return until_timeout;
    const double each_us = total_us / taken_so_far, more = std::max(options.min_samples - taken_so_far + 0.0,
                                                                    options.min_total_s * 1e6 / each_us - taken_so_far);
    return std::clamp(more * now / taken_so_far, 0.0, until_timeout);
  };
  auto sample = [&]() -> Result<double> {
    if (options.stop && options.stop()) return error(ErrorKind::kInterrupted, "interrupted");
    if (options.progress) options.progress({taken_so_far, least_us, left_s()});
    auto us = take();
    if (us.ok() && *us > 0) least_us = least_us > 0 ? std::min(least_us, *us) : *us;
    return us;
  };
  Measurement m;
  m.cache = options.cache;
  std::vector<double> warming;
  auto settled = warm_up(
      [&]() -> Result<double> {
        KILN_TRY(const double us, sample());
        if (us > 0) warming.push_back(us);
        return us;
      },
      start + options.timeout_s / 5, now_s);
  // What was taken until then is what there is.
  if (!settled.ok() && settled.error().kind == ErrorKind::kInterrupted && !warming.empty()) {
    m.samples = std::move(warming);
    m.us = summarize(m.samples);
    m.flags |= kNotSettled | kStopped | few_samples(m.samples.size());
    return m;
  }
  KILN_TRY(const bool steady, std::move(settled));
  if (!steady) m.flags |= kNotSettled;

  // Sums for stddev/mean as samples arrive (Welford).
  double running_mean = 0, squares = 0;
  while (true) {
    int n = static_cast<int>(m.samples.size());
    bool enough = n >= options.min_samples && total_us >= options.min_total_s * 1e6;
    if (enough && noise < options.max_noise) break;
    bool out_of_time = now_s() - start >= options.timeout_s && n + m.discarded >= kAtLeast;
    if (out_of_time || n >= options.max_samples) {
      if (noise >= options.max_noise) m.flags |= kNoisy;
      break;
    }
    auto taken = sample();
    if (!taken.ok() && taken.error().kind == ErrorKind::kInterrupted && n > 0) {
      m.flags |= kStopped;
      break;
    }
    KILN_TRY(const double us, std::move(taken));
    // Below the clock's resolution; counted, so that the table can report how many.
    if (!(us > 0)) {
      ++m.discarded;
      continue;
    }
    m.samples.push_back(us);
    total_us += us;
    double delta = us - running_mean;
    running_mean += delta / (n + 1);
    squares += delta * (us - running_mean);
    taken_so_far = n + 1;
    noise = n > 0 ? std::sqrt(squares / n) / running_mean : 0;
  }
  if (m.samples.empty())
    return error(ErrorKind::kDevice, "all {} samples were below the clock's resolution", m.discarded);
  m.us = summarize(m.samples);
  m.flags |= shape_flags(m.samples, m.us) | few_samples(m.samples.size());
  return m;
}

}  // namespace kiln::profiler
