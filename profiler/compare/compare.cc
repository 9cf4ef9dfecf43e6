#include "profiler/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "kiln/graph.h"
#include "profiler/measure/nvml.h"
#include "support/diag.h"

namespace kiln::profiler {

namespace {

constexpr int kOtherSamples = 12;  // of the cache state that is not judged
// One replay is too short for the event clock, so several are timed together.
constexpr int kGraphSamples = 7, kGraphReplays = 10;
constexpr double kLongReplays = 0.1;  // seconds of replays that no clock is too coarse for
constexpr double kLongRun = 0.5;      // seconds
/// Seconds for the figures beside the verdict, of one contender each: fewer samples of those that are slow.
constexpr double kExtraSeconds = 1;
constexpr double kSoonDone = 1;      // seconds before an answer is due at which nothing more is begun
constexpr double kFromCaches = 1.1;  // of memory's ceiling: beyond it the bytes did not all come from there
constexpr double kRedraw = 0.2;      // seconds between lines of progress

std::string now_utc() {
  std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::vector<double> times(const std::vector<Sample>& samples) {
  std::vector<double> us;
  for (const Sample& s : samples)
    if (s.us > 0) us.push_back(s.us);
  return us;
}

double median_known(const std::vector<Sample>& samples, double Sample::*field) {
  std::vector<double> known;
  for (const Sample& s : samples)
    if (s.*field >= 0) known.push_back(s.*field);
  return known.empty() ? -1 : median(known);
}

uint32_t flags_of(const std::vector<Sample>& samples) {
  std::vector<double> us = times(samples), mhz;
  if (us.empty()) return 0;
  uint32_t flags = shape_flags(us, summarize(us));
  for (const Sample& s : samples) {
    if (!s.held) flags |= kNotHeld;
    if (s.sm_mhz > 0) mhz.push_back(s.sm_mhz);
  }
  return flags | clock_flags(mhz);
}

// One contest while it runs.
class Run {
 public:
  Run(std::vector<Contender> contenders, const ContestOptions& options)
      : contenders_(std::move(contenders)), options_(options) {}

  Result<Contest> run() {
    KILN_CHECK_OK(prepare());
    KILN_CHECK_OK(check_outputs());
    if (!contest_.interrupted) KILN_CHECK_OK(take_pairs());
    for (size_t i = 0; i < contenders_.size() && options_.extras; ++i) {
      if (!contest_.rows[i].is_measured() || stopped()) continue;
      if (!contest_.cut.empty()) {
        contest_.rows[i].no_graph = contest_.rows[i].no_roof = "left out, so that there is an answer in time";
        continue;
      }
      measure_other_state(i);
      measure_graph(i);
      place_under_roof(i);
    }
    contest_.throttle = throttle_->text();
    for (ContestRow& row : contest_.rows) row.facts.graph = {};  // nothing of the contenders lives on in the result
    return std::move(contest_);
  }

 private:
  void say(const std::string& what) {
    if (options_.progress) options_.progress(what);
  }
  bool stopped() {
    if (!contest_.interrupted && options_.stop && options_.stop()) contest_.interrupted = true;
    return contest_.interrupted;
  }
  const Device& device() const { return contenders_[options_.baseline].device; }
  Launchable launchable(size_t i) const { return {contenders_[i].name, device(), contenders_[i].launch}; }

  Status prepare() {
    if (options_.baseline >= contenders_.size())
      return error(ErrorKind::kValue, "there are {} contenders, so none is number {}", contenders_.size(),
                   options_.baseline);
    for (const Contender& c : contenders_)
      if (!(c.device == device()))
        return error(ErrorKind::kDevice, "'{}' is on {} and '{}' on {}: contenders are compared on one device", c.name,
                     c.device.name(), contenders_[options_.baseline].name, device().name());
    DeviceInfo info = device().info();
    contest_.device = device().name();
    contest_.hardware = info.name;
    contest_.target = info.target;
    contest_.driver = info.driver;
    contest_.when = now_utc();
    contest_.cache = options_.cache;
    contest_.baseline = options_.baseline;
    for (const Contender& c : contenders_) {
      ContestRow row;
      row.name = c.name;
      row.facts = c.facts;
      row.problem = c.problem;
      contest_.rows.push_back(std::move(row));
    }
    throttle_.emplace(device());
    const Status& base = contest_.rows[options_.baseline].problem;
    return base.ok() ? Status{} : without_baseline(base.error());
  }
  Diagnostic without_baseline(Diagnostic d) const {
    return with_note(std::move(d), fmt::format("the baseline is '{}': without it there is nothing to compare with",
                                               contenders_[options_.baseline].name));
  }

  // Launches once, outside of any clock, and looks at what came out.
  Status first_run(size_t i) {
    const Contender& c = contenders_[i];
    ResultCheck& check = contest_.rows[i].check;
    run_s_[i] = c.ran_s;
    if (c.ran_s < kLongRun) {
      if (c.poison) KILN_CHECK_OK(c.poison());
      const double start = steady_seconds();
      KILN_CHECK_OK(c.launch());
      KILN_CHECK_OK(c.device.synchronize());
      run_s_[i] = steady_seconds() - start;
    }
    if (!c.output) {
      check.unknown = "there is no result to compare; name the tensor that a launch writes with out=NAME";
      return {};
    }
    KILN_TRY(Tensor out, c.output());
    if (options_.check) {
      auto checked = options_.check(i, out);
      if (checked.ok())
        check = *checked;
      else
        check.unknown = checked.error().message;
      return {};
    }
    KILN_TRY(Values got, values_of(out));
    const double tolerance = options_.tolerance >= 0 ? options_.tolerance : default_tolerance(got.dtype);
    if (i == options_.baseline)
      want_ = std::move(got), check = check_values(*want_, *want_, tolerance);
    else if (want_)
      check = check_values(got, *want_, tolerance);
    else
      check.unknown = "the baseline shows no result to compare with";
    return {};
  }

  Status check_outputs() {
    contest_.reference = options_.check ? options_.reference : contenders_[options_.baseline].name;
    say("checking " + contenders_[options_.baseline].name);
    if (Status s = first_run(options_.baseline); !s.ok()) return without_baseline(std::move(s.error()));
    for (size_t i = 0; i < contenders_.size(); ++i) {
      ContestRow& row = contest_.rows[i];
      if (i == options_.baseline || !row.problem.ok()) continue;
      if (stopped()) {
        row.check.unknown = "stopped before its turn";
        continue;
      }
      say(fmt::format("checking {} ({} of {})", row.name, i + 1, contenders_.size()));
      Status ran = first_run(i);
      if (!ran.ok() && ran.error().kind == ErrorKind::kInterrupted) {
        contest_.interrupted = true;
        row.check.unknown = "stopped in its turn";
      } else if (!ran.ok()) {
        row.problem = std::move(ran.error());
      }
    }
    want_.reset();
    return {};
  }

  Status take_pairs() {
    auto timer = Timer::make(device());
    if (!timer.ok()) return std::move(timer.error());
    timer_.emplace(std::move(*timer));
    contest_.method = timer_->method();
    std::vector<size_t> who;
    std::vector<SampleTaker> takers;
    size_t baseline = 0;
    for (size_t i = 0; i < contenders_.size(); ++i) {
      if (!contest_.rows[i].problem.ok()) continue;
      if (i == options_.baseline) baseline = takers.size();
      who.push_back(i);
      takers.push_back(timer_->taker(launchable(i), options_.cache));
    }
    PairOptions options{.timeout_s = options_.timeout_s,
                        .max_pairs = options_.max_pairs,
                        .control = true,
                        .seed = options_.seed,
                        .stop = [this] { return stopped(); }};
    cut_to_time(options, who);
    const double start = steady_seconds();
    double said = start, first = 0;
    options.after_round = [&](int pairs, size_t active) {
      const double now = steady_seconds();
      throttle_->look(now);
      if (first == 0) first = now;
      if (now - said < kRedraw) return;
      said = now;
      // Pairs take about what they took until now; the first moment of them is known from the second on.
      const double each = pairs > 1 ? (now - first) / (pairs - 1) : 0;
      const double left = std::max(std::min(start + options.timeout_s - now, each * (options.max_pairs - pairs)),
                                   each * (options.least_pairs - pairs));
      say(fmt::format("pair {}: {} of {} undecided, at most {:.0f} s left (Ctrl-C keeps them)", pairs, active,
                      takers.size() - 1, std::max(left, 0.0)));
    };
    if (options.warm_up) say(fmt::format("warming up {}, at most {:.0f} s", takers.size(), options_.timeout_s / 5));
    KILN_TRY(Pairs result, run_pairs(takers, baseline, options, steady_seconds));
    contest_.control_first = std::move(result.control_first);
    contest_.control_second = std::move(result.control_second);
    contest_.timed_out = result.timed_out;
    contest_.interrupted = contest_.interrupted || result.interrupted;
    ContestRow& base = contest_.rows[options_.baseline];
    for (size_t k = 0; k < contest_.control_first.size(); ++k)
      base.samples.insert(base.samples.end(), {contest_.control_first[k], contest_.control_second[k]});
    for (size_t k = 0; k < who.size(); ++k) {
      if (who[k] == options_.baseline) continue;
      ContestRow& row = contest_.rows[who[k]];
      row.samples = std::move(result.rows[k].own);
      row.base = std::move(result.rows[k].base);
      row.decision = result.rows[k].decision;
      if (!result.rows[k].problem.ok()) row.problem = std::move(result.rows[k].problem);
      base.samples.insert(base.samples.end(), row.base.begin(), row.base.end());
    }
    if (!contest_.cut.empty()) return {};  // too few samples to tell a drift from noise
    for (ContestRow& row : contest_.rows)
      row.flags = flags_of(row.samples) | (throttle_->slowed() && row.is_measured() ? kThrottled : 0u);
    return {};
  }

  /// Fewer pairs than verdicts need where those would take longer than there is time.
  void cut_to_time(PairOptions& options, const std::vector<size_t>& who) {
    if (options_.due_s <= 0 || who.size() < 2) return;
    const double base = run_s_[options_.baseline];
    double round = 0;  // seconds of one pair of each
    for (size_t i : who)
      if (i != options_.baseline) round += run_s_[i] + base;
    const double left = std::max(options_.due_s - (steady_seconds() - begun_), 0.0);
    const double needed = kLeastPairs * (round + 2 * base) + round;  // with the control's, and some to warm up
    if (needed <= left) return;
    const int pairs = std::clamp(static_cast<int>((left - kSoonDone) / round), 1, kLeastPairs - 1);
    options.least_pairs = options.max_pairs = pairs;
    options.timeout_s = left;
    options.warm_up = options.control = false;
    double longest = 0;
    for (size_t i : who) longest = std::max(longest, run_s_[i]);
    contest_.cut = fmt::format(
        "a run takes up to {:.1f} s: {} of the {} pairs that a verdict needs. budget={:.0f} takes them all; tensors "
        "with a tenth of the work have verdicts in seconds",
        longest, pairs, kLeastPairs, std::ceil(needed / 5) * 5);
    if (options_.announce)
      options_.announce(fmt::format("about {:.0f} s more: a run takes up to {:.1f} s", pairs * round, longest));
  }

  // What fails here was measured in its first state: the row stays, without these figures.
  void measure_other_state(size_t i) {
    ContestRow& row = contest_.rows[i];
    say(row.name + ", " + std::string(name(options_.cache == Cache::kCold ? Cache::kHot : Cache::kCold)));
    SampleTaker take = timer_->taker(launchable(i), options_.cache == Cache::kCold ? Cache::kHot : Cache::kCold);
    const double until = steady_seconds() + kExtraSeconds;
    for (int k = 0; k < kOtherSamples && !stopped() && (k == 0 || steady_seconds() < until); ++k) {
      auto sample = take();
      if (!sample.ok()) {
        if (sample.error().kind != ErrorKind::kInterrupted) row.problem = std::move(sample.error());
        return;
      }
      if (sample->us > 0) row.other_us.push_back(sample->us);
    }
  }

  void measure_graph(size_t i) {
    ContestRow& row = contest_.rows[i];
    if (!row.problem.ok() || stopped()) return;
    std::function<Status()> launch = contenders_[i].facts.graph;
    if (!launch) {
      auto graph = Graph::capture(device(), contenders_[i].launch);
      if (!graph.ok()) {
        row.no_graph = graph.error().message;
        return;
      }
      row.launches = graph->size();
      launch = [kept = *graph] { return kept.launch(); };
    }
    const double run_s = row.us().median / 1e6;
    if (run_s > kLongRun) {
      row.no_graph = fmt::format("a run takes {:.1f} s, beside which launches do not count", run_s);
      return;
    }
    say(row.name + ", graph");
    const int replays = std::clamp(static_cast<int>(kLongReplays / run_s), 1, kGraphReplays);
    const double until = steady_seconds() + kExtraSeconds;
    for (int k = 0; k < kGraphSamples && !stopped() && (k < 2 || steady_seconds() < until); ++k) {
      auto us = timer_->back_to_back(device(), launch, replays);
      if (!us.ok()) {
        row.no_graph = us.error().message;
        row.graph_us.clear();
        return;
      }
      if (k > 0) row.graph_us.push_back(*us);  // the first uploads the graph
    }
  }

  void place_under_roof(size_t i) {
    ContestRow& row = contest_.rows[i];
    const Facts& f = row.facts;
    if (f.bytes <= 0 && f.flop <= 0) {
      row.no_roof = "neither bytes nor FLOP are known; give bytes=N and flop=N";
      return;
    }
    if (!contest_.memory && no_ceiling_.empty()) {
      say("copy, for the roofline");
      auto copy = copy_ceiling(device());
      if (copy.ok())
        contest_.memory = *copy;
      else
        no_ceiling_ = copy.error().message;
    }
    if (!contest_.memory) {
      row.no_roof = no_ceiling_;
      return;
    }
    std::optional<Ceiling> math;
    if (f.product && f.flop > 0) {
      say("a large product, for the roofline");
      auto product = product_ceiling(device(), *f.product);
      if (!product.ok()) {
        row.no_roof = product.error().message;
        return;
      }
      math = contest_.math = *product;
    }
    if (f.bytes <= 0 && !math) {
      row.no_roof = "FLOP are known for matrix products only; give bytes=N";
      return;
    }
    const Roofline roof = roofline(row.us().median, f.bytes, f.flop, *contest_.memory, math ? &*math : nullptr);
    // No measurement is that far off: what one kernel wrote, or the sample before, was read from a cache.
    if (roof.bound == "memory" && roof.share > kFromCaches)
      row.no_roof = fmt::format("its bytes are {:.0f} % of what memory moves in that time: caches served some of them",
                                roof.share * 100);
    else
      row.roof = roof;
  }

  std::vector<Contender> contenders_;
  const ContestOptions& options_;
  const double begun_ = steady_seconds();
  std::vector<double> run_s_ = std::vector<double>(contenders_.size());  // of the run whose result was checked
  Contest contest_;
  std::optional<Timer> timer_;
  std::optional<ThrottleWatch> throttle_;
  std::string no_ceiling_;
  std::optional<Values> want_;  // the baseline's result, while results are checked
};

}  // namespace

Summary ContestRow::us() const { return summarize(times(samples)); }
double ContestRow::call_us() const { return median_known(samples, &Sample::call_us); }
double ContestRow::sm_mhz() const { return median_known(samples, &Sample::sm_mhz); }

std::vector<std::string> Contest::wrong() const {
  std::vector<std::string> names;
  for (const ContestRow& row : rows)
    if (row.check.known() && !row.check.ok()) names.push_back(row.name);
  return names;
}

const ContestRow* Contest::find(std::string_view row_name) const {
  for (const ContestRow& row : rows)
    if (row.name == row_name) return &row;
  return nullptr;
}

Result<Contest> run_contest(std::vector<Contender> contenders, const ContestOptions& options) {
  return Run(std::move(contenders), options).run();
}

}  // namespace kiln::profiler
