#include "profiler/compare/comparison.h"

#include "support/diag.h"

namespace kiln::profiler {

Result<Comparison> compare_samples(const Sampler& a, const Sampler& b, const CompareOptions& options,
                                   const std::function<double()>& now_s) {
  auto taker = [](const Sampler& sampler) -> SampleTaker {
    return [&sampler]() -> Result<Sample> {
      KILN_TRY(double us, sampler());
      // Pairs are compared by logarithms, and 0 has none.
      if (!(us > 0)) return error(ErrorKind::kDevice, "a sample was below the clock's resolution");
      return Sample{us};
    };
  };
  const SampleTaker takers[] = {taker(a), taker(b)};
  PairOptions pair_options{
      .timeout_s = options.timeout_s, .max_pairs = options.max_pairs, .control = options.control, .seed = options.seed};
  // The statistics of a contest, for one row against its baseline.
  KILN_TRY(Pairs pairs, run_pairs(takers, 1, pair_options, now_s));
  PairedRow& row = pairs.rows[0];
  KILN_CHECK_OK(std::move(row.problem));
  auto times = [](const std::vector<Sample>& samples) {
    std::vector<double> us;
    for (const Sample& s : samples) us.push_back(s.us);
    return summarize(us);
  };
  Comparison c;
  c.a_us = times(row.own);
  c.b_us = times(row.base);
  c.speedup = row.decision.speedup();
  c.speedup_95 = row.decision.speedup_95();
  c.floor = row.decision.floor;
  c.verdict = row.decision.verdict;
  c.pairs = row.decision.pairs;
  c.timed_out = pairs.timed_out;
  return c;
}

Result<Comparison> compare(const Launchable& a, const Launchable& b, const CompareOptions& options) {
  if (!(a.device == b.device)) return error(ErrorKind::kValue, "'{}' and '{}' are on two devices", a.name, b.name);
  KILN_TRY(Timer timer, Timer::make(a.device));
  return compare_samples(timer.sampler(a, options.cache), timer.sampler(b, options.cache), options, steady_seconds);
}

}  // namespace kiln::profiler
