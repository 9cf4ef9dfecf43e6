#include "profiler/tune/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>

#include "compiler/target/target.h"
#include "kiln/check.h"
#include "profiler/measure/stats.h"
#include "profiler/roofline/occupancy.h"
#include "profiler/tune/halving.h"
#include "profiler/tune/output_check.h"
#include "profiler/tune/prune.h"
#include "profiler/tune/records.h"
#include "runtime/launch/args.h"
#include "runtime/launch/kernel_launched.h"
#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln::profiler {

namespace {

constexpr double kCompileShare = 0.6;  // of the budget: configurations not compiled by then are skipped
// How late a Ctrl-C or the end of the budget is seen while kernels compile.
constexpr auto kPoll = std::chrono::milliseconds(50);

constexpr std::string_view kStates[] = {"measured", "pruned", "failed", "wrong", "skipped"};
constexpr const char* kStopped = "stopped before its turn";
constexpr const char* kNoTime = "the budget was spent before its turn";

std::string describe(const Arg& arg) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return fmt::format("{}", i); }
    std::string operator()(uint64_t i) const { return fmt::format("{}", i); }
    std::string operator()(double d) const { return fmt::format("{}", d); }
    std::string operator()(const std::string& s) const { return "'" + s + "'"; }
    std::string operator()(DType t) const { return std::string(kiln::name(t)); }
    std::string operator()(const Tensor& t) const { return fmt::format("tensor {}", t ? t.address() : 0); }
    std::string operator()(const Tensor* t) const { return operator()(*t); }
    std::string operator()(const Kernel& k) const { return k ? k.name() : "None"; }
    std::string operator()(const LanguageFunction& f) const { return f.path; }
    std::string operator()(const std::shared_ptr<const ArgTuple>& t) const {
      std::string items;
      for (const Arg& item : t->items) items += describe(item) + ", ";
      return fmt::format("({}) {}", items, fmt::join(t->fields, " "));
    }
    std::string operator()(const std::shared_ptr<const TensorDescriptor>& d) const {
      return fmt::format("descriptor {}", static_cast<const void*>(d.get()));
    }
  };
  return std::visit(Visitor{}, arg);
}

/// What a launch is beside its code. Two descriptors are two launches, though they may describe the same.
std::string launch_text(const TuneCandidate& c) {
  std::string text = fmt::format("{}x{}x{}", c.grid[0], c.grid[1], c.grid[2]);
  if (!c.kernel) return text;
  auto params = c.kernel.params();
  for (size_t i = 0; i < c.args.size() && i < params.size(); ++i)
    if (!params[i].is_constexpr) text += "," + (c.args[i] ? describe(*c.args[i]) : std::string("-"));
  return text;
}

/// What decides which addresses a launch uses: all but warps, stages and blocks.
std::string accesses_text(const TuneCandidate& c) {
  std::string text = fmt::format("{}x{}x{}", c.grid[0], c.grid[1], c.grid[2]);
  for (const auto& arg : c.args) text += "," + (arg ? describe(*arg) : std::string("-"));
  return text;
}

std::string grid_line(const TuneCandidate& c) {
  return fmt::format("\ngrid {}x{}x{}", c.grid[0], c.grid[1], c.grid[2]);
}

/// What a record is found by: the configuration, and the constexprs that it, a heuristic or the launch has given.
std::string identity(const TuneCandidate& c) {
  std::string text = c.config + "\n" + key_text(c.options);
  if (!c.kernel) return text;
  auto params = c.kernel.params();
  for (size_t i = 0; i < c.args.size() && i < params.size(); ++i)
    if (params[i].is_constexpr) text += fmt::format(", {}={}", params[i].name, c.args[i] ? describe(*c.args[i]) : "-");
  return text;
}

class Tuner {
 public:
  Tuner(const Device& device, std::span<const TuneCandidate> candidates, const TuneOptions& options)
      : device_(device), candidates_(candidates), options_(options), start_(steady_seconds()) {
    result_.rows.resize(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) result_.rows[i].config = candidates[i].config;
  }

  Result<TuneResult> run() {
    if (read_records()) {
      result_.from_records = true;
      result_.best = best_row(result_.rows);
      return finish();
    }
    compile();
    prune_some();
    if (options_.before_launches) KILN_CHECK_OK(options_.before_launches());
    KILN_CHECK_OK(try_out());
    KILN_CHECK_OK(measure_rest());
    result_.best = best_row(result_.rows);
    KILN_CHECK_OK(confirm());
    write_records();
    return finish();
  }

 private:
  TuneRow& row(size_t i) { return result_.rows[i]; }
  double elapsed() const { return steady_seconds() - start_; }
  bool stopped() {
    if (!result_.interrupted && options_.should_stop && options_.should_stop()) result_.interrupted = true;
    return result_.interrupted;
  }
  void drop(size_t i, TuneState state, std::string reason) {
    row(i).state = state;
    row(i).reason = std::move(reason);
    std::erase(open_, i);
  }
  void report(TunePhase phase, int done, int total, double left_s = 0) {
    if (!options_.on_progress) return;
    TuneProgress p;
    p.phase = phase, p.done = done, p.total = total;
    p.best = leader_, p.best_us = leader_us_;
    p.elapsed_s = elapsed(), p.left_s = left_s;
    options_.on_progress(p);
  }
  Result<TuneResult> finish() {
    result_.total_s = elapsed();
    return std::move(result_);
  }

  Status confirm() {
    if (!options_.confirm || result_.interrupted || result_.best < 0) return {};
    KILN_TRY(const std::optional<InTurns> slower, options_.confirm(result_));
    if (!slower) return {};
    // Their samples keep their spread. Only what comes in the last rung can be the best.
    for (const auto& [i, us] : {std::pair(slower->row, slower->us), std::pair(slower->against, slower->against_us)}) {
      TuneRow& r = row(static_cast<size_t>(i));
      const double scale = r.us.empty() ? 0 : us / r.median_us();
      for (double& sample : r.us) sample *= scale;
      if (r.us.empty()) r.us = {us};
      r.state = TuneState::kMeasured;
      r.rung = row(static_cast<size_t>(result_.best)).rung;
      r.from_record = false;
    }
    result_.best = best_row(result_.rows);
    return {};
  }

  std::string record_identity(size_t i, bool is_verdict) const {
    const TuneCandidate& c = candidates_[i];
    std::string text = identity(c);
    if (is_verdict || options_.records_per_grid) text += grid_line(c);
    // The first configuration is what the others are compared with: with a grid too small for it they look wrong.
    const TuneCandidate& first = candidates_.front();
    if (is_verdict)
      text += fmt::format("\n{}\nbeside {}{}", fmt::join(argument_lines(c), "\n"), identity(first), grid_line(first));
    return text;
  }
  static bool is_verdict(TuneState s) { return s == TuneState::kFailed || s == TuneState::kWrong; }

  std::optional<TuneRow> find_record(size_t i) {
    for (const bool verdict : {false, true})
      if (auto found = options_.records->find(options_.record_key, record_identity(i, verdict))) return found;
    return std::nullopt;
  }

  /// True when every configuration has a record. Otherwise those without are open, and the best of the others, which is
  /// measured beside them: times of another day do not compare with today's.
  bool read_records() {
    int best = -1;
    if (options_.records) {
      for (size_t i = 0; i < candidates_.size(); ++i)
        if (auto found = find_record(i)) {
          row(i) = std::move(*found);
          row(i).config = candidates_[i].config;
        }
      best = best_row(result_.rows);
    }
    bool complete = best >= 0;
    for (size_t i = 0; i < candidates_.size(); ++i) complete &= row(i).from_record;
    if (complete) return true;
    if (best >= 0) first_rung_ = row(static_cast<size_t>(best)).rung + 1;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (best >= 0 && static_cast<int>(i) != best && row(i).from_record) continue;
      row(i) = TuneRow{};
      row(i).config = candidates_[i].config;
      open_.push_back(i);
    }
    return false;
  }

  void write_records() {
    if (!options_.records || result_.interrupted || result_.best < 0) return;
    std::set<std::string> stored;  // a configuration that is listed twice is pruned the second time: the first counts
    for (size_t i = 0; i < candidates_.size(); ++i) {
      // A skipped one is not known to be anything, and is tried the next time.
      if (row(i).from_record || row(i).state == TuneState::kSkipped) continue;
      const std::string identity = record_identity(i, is_verdict(row(i).state));
      if (stored.insert(identity).second) options_.records->store(options_.record_key, identity, row(i));
    }
  }

  void compile() {
    const double begin = steady_seconds();
    compiled_.resize(candidates_.size());
    std::vector<size_t> todo;
    for (size_t i : std::vector<size_t>(open_)) {
      if (candidates_[i].problem.empty())
        todo.push_back(i);
      else
        drop(i, TuneState::kFailed, candidates_[i].problem);
    }
    struct Outcome {
      std::optional<Result<KernelInfo>> info;
      double ms = 0;
    };
    std::vector<Outcome> outcomes(todo.size());
    std::mutex mutex;
    std::condition_variable ready;
    std::set<std::string> guarded;
    size_t next = 0, running = 0;
    int done = 0;
    bool stop = false;
    auto work = [&] {
      std::unique_lock lock(mutex);
      while (!stop && next < todo.size()) {
        const size_t at = next++;
        const TuneCandidate& c = candidates_[todo[at]];
        // Once for each set of addresses: other warps and stages make the same accesses.
        const bool guard = options_.check_accesses && guarded.insert(accesses_text(c)).second;
        lock.unlock();
        const double from = steady_seconds();
        Result<KernelInfo> info = c.kernel.compile(c.args, c.options);
        const double ms = (steady_seconds() - from) * 1e3;
        // Ahead of its launch, which tells what is wrong with it.
        if (guard && info.ok()) (void)compile_checked(c.kernel, c.args, c.options);
        lock.lock();
        outcomes[at].info.emplace(std::move(info));
        outcomes[at].ms = ms;
        ++done;
        ready.notify_all();
      }
      --running;
      ready.notify_all();
    };
    const size_t cpus = options_.threads > 0 ? static_cast<size_t>(options_.threads)
                                             : std::max<size_t>(1, std::thread::hardware_concurrency());
    running = std::min(cpus, todo.size());
    std::vector<std::thread> workers;
    for (size_t n = running; n > 0; --n) try {
        workers.emplace_back(work);
      } catch (const std::system_error&) {  // the system has no more of them: those that there are do the work
        std::lock_guard lock(mutex);
        running -= n;
        break;
      }
    if (workers.empty()) {
      running = 1;
      work();
    }
    {
      std::unique_lock lock(mutex);
      const int total = static_cast<int>(todo.size());
      report(TunePhase::kCompiling, 0, total);
      while (running > 0) {
        ready.wait_for(lock, kPoll);
        // One is compiled at least, however small the budget is.
        stop = stopped() || (done > 0 && elapsed() > kCompileShare * options_.budget_s);
        const double spent = steady_seconds() - begin;
        report(TunePhase::kCompiling, done, total, done ? spent / done * (total - done) : 0);
      }
    }
    for (std::thread& t : workers) t.join();
    for (size_t at = 0; at < todo.size(); ++at) {
      const size_t i = todo[at];
      if (!outcomes[at].info) {
        drop(i, TuneState::kSkipped, result_.interrupted ? kStopped : kNoTime);
        continue;
      }
      row(i).compile_ms = outcomes[at].ms;
      if (!outcomes[at].info->ok()) {
        drop(i, TuneState::kFailed, outcomes[at].info->error().message);
        continue;
      }
      compiled_[i] = Compiled{**outcomes[at].info, candidates_[i].config, launch_text(candidates_[i])};
      fill_facts(i);
    }
    result_.compile_s = steady_seconds() - begin;
  }

  void fill_facts(size_t i) {
    const KernelInfo& info = compiled_[i]->info;
    TuneRow& r = row(i);
    r.registers = info.registers;
    r.spill_bytes = info.spill_bytes;
    r.shared_bytes = info.shared_bytes;
    const target::Target* t = target::find(info.target);
    if (!t || !t->is_cuda() || info.registers < 0) return;
    r.occupancy = occupancy(*t, {.threads = (info.num_warps + info.extra_warps) * 32,
                                 .registers_per_thread = info.registers,
                                 .shared_bytes = info.shared_bytes})
                      .fraction;
  }

  void prune_some() {
    const DeviceInfo info = device_.info();
    std::vector<const Compiled*> compiled(candidates_.size());
    for (size_t i : open_) compiled[i] = compiled_[i] ? &*compiled_[i] : nullptr;
    const std::vector<std::string> reasons =
        prune(compiled, {target::find(info.target), info.shared_bytes, info.max_threads_per_block});
    for (size_t i = 0; i < reasons.size(); ++i)
      if (!reasons[i].empty()) drop(i, TuneState::kPruned, reasons[i]);
  }

  Status launch_once(size_t i) {
    const TuneCandidate& c = candidates_[i];
    if (c.prepare) KILN_CHECK_OK(c.prepare());
    KILN_CHECK_OK(c.launch());
    return device_.synchronize();
  }

  Status look_at_accesses(size_t i) {
    const TuneCandidate& c = candidates_[i];
    if (c.prepare) KILN_CHECK_OK(c.prepare());
    auto looked = launch_checked(c.kernel, c.grid, c.args, c.options);
    if (!looked.ok() && looked.error().kind == ErrorKind::kUnsupported) {
      result_.unchecked = why_unchecked(looked.error());
      return {};
    }
    return looked.ok() ? Status() : Status(std::move(looked.error()));
  }

  /// One launch of each, which also compares what it leaves.
  Status try_out() {
    OutputCheck* const check = options_.check;
    const std::vector<size_t> all = open_;
    int done = 0;
    for (size_t i : all) {
      report(TunePhase::kChecking, done++, static_cast<int>(all.size()));
      if (stopped()) {
        drop(i, TuneState::kSkipped, kStopped);
        continue;
      }
      // The first is tried whatever the time, so that there is something to measure.
      // Half of what compiling may leave is for trying out.
      if (open_.front() != i && elapsed() > (1 + kCompileShare) / 2 * options_.budget_s) {
        drop(i, TuneState::kSkipped, kNoTime);
        continue;
      }
      auto launch = [&] { return launch_once(i); };
      auto look = [&] { return look_at_accesses(i); };
      Status status;
      std::string difference;
      // Before the launch, which might fault or write over what the others read.
      if (options_.check_accesses && looked_at_.insert(accesses_text(candidates_[i])).second) status = look();
      if (!status.ok()) {
      } else if (!check) {
        status = launch();
      } else if (!check->has_reference()) {
        status = options_.check_accesses ? check->take_reference(launch, look) : check->take_reference(launch);
      } else if (auto d = check->differs(launch); d.ok()) {
        difference = std::move(*d);
      } else {
        status = std::move(d.error());
      }
      if (!status.ok() && status.error().kind == ErrorKind::kInterrupted) {
        result_.interrupted = true;
        drop(i, TuneState::kSkipped, kStopped);
      } else if (!status.ok()) {
        drop(i, TuneState::kFailed, status.error().message);
      } else if (!difference.empty()) {
        drop(i, TuneState::kWrong, difference);
      }
    }
    return {};
  }

  Status measure_rest() {
    const double begin = steady_seconds();
    const std::vector<size_t> contenders = open_;
    std::vector<Sampler> samplers;
    std::optional<Timer> timer;
    if (!options_.bench && !contenders.empty()) {
      KILN_TRY(Timer made, Timer::make(device_));
      timer.emplace(std::move(made));
    }
    for (size_t i : contenders) {
      const TuneCandidate& c = candidates_[i];
      if (options_.bench) {
        samplers.push_back([this, &c] { return options_.bench(c); });
        continue;
      }
      Sampler timed = timer->sampler({c.config, device_, [&c] { return c.launch(); }}, options_.cache);
      samplers.push_back([&c, timed]() -> Result<double> {
        if (c.prepare) KILN_CHECK_OK(c.prepare());
        return timed();
      });
    }
    if (options_.bench) {
      measure_by_hand(contenders, samplers);
    } else {
      halve_them(contenders, samplers);
    }
    result_.measure_s = steady_seconds() - begin;
    return {};
  }

  /// The caller's own benchmark repeats and averages by itself.
  void measure_by_hand(const std::vector<size_t>& contenders, const std::vector<Sampler>& samplers) {
    for (size_t n = 0; n < contenders.size(); ++n) {
      const size_t i = contenders[n];
      if (stopped()) {
        drop(i, TuneState::kSkipped, kStopped);
        continue;
      }
      Result<double> us = samplers[n]();
      if (!us.ok() && us.error().kind == ErrorKind::kInterrupted) {
        result_.interrupted = true;
        drop(i, TuneState::kSkipped, kStopped);
      } else if (!us.ok()) {
        drop(i, TuneState::kFailed, us.error().message);
      } else {
        row(i).state = TuneState::kMeasured;
        row(i).us = {*us};
        row(i).rung = first_rung_;
        if (leader_ < 0 || *us < leader_us_) leader_ = static_cast<int>(i), leader_us_ = *us;
        report(TunePhase::kMeasuring, static_cast<int>(n) + 1, static_cast<int>(contenders.size()));
      }
    }
  }

  void halve_them(const std::vector<size_t>& contenders, const std::vector<Sampler>& samplers) {
    HalvingOptions halving;
    halving.budget_s = std::max(0.0, std::min(options_.measure_s, options_.budget_s - elapsed()));
    halving.warm_up_s = std::min(options_.warm_up_s, halving.budget_s / 10);
    halving.seed = options_.seed;
    halving.should_stop = [this] { return stopped(); };
    halving.on_progress = [&](const HalvingProgress& p) {
      if (p.best >= 0) leader_ = static_cast<int>(contenders[static_cast<size_t>(p.best)]), leader_us_ = p.best_us;
      report(TunePhase::kMeasuring, p.alive, static_cast<int>(contenders.size()), p.left_s);
    };
    HalvingResult halved = halve(samplers, halving);
    if (halved.end == HalvingEnd::kInterrupted) result_.interrupted = true;
    for (size_t n = 0; n < contenders.size(); ++n) {
      const size_t i = contenders[n];
      Heat& heat = halved.heats[n];
      row(i).us = std::move(heat.us);
      row(i).rung = first_rung_ + heat.rung;
      if (!heat.failure.empty())
        drop(i, TuneState::kFailed, heat.failure);
      else if (row(i).us.empty())
        drop(i, TuneState::kSkipped, result_.interrupted ? kStopped : kNoTime);
      else
        row(i).state = TuneState::kMeasured;
    }
  }

  Device device_;
  std::span<const TuneCandidate> candidates_;
  const TuneOptions& options_;
  double start_;
  TuneResult result_;
  std::vector<std::optional<Compiled>> compiled_;
  std::set<std::string> looked_at_;  // launches whose accesses were checked
  std::vector<size_t> open_;         // candidates that may still win
  int first_rung_ = 0;               // above those of records: what is measured now is compared with today's best alone
  int leader_ = -1;
  double leader_us_ = 0;
};

}  // namespace

std::string_view name(TuneState state) { return kStates[static_cast<size_t>(state)]; }

std::optional<TuneState> parse_tune_state(std::string_view text) {
  for (size_t i = 0; i < std::size(kStates); ++i)
    if (kStates[i] == text) return static_cast<TuneState>(i);
  return std::nullopt;
}

std::string_view name(TunePhase phase) {
  switch (phase) {
    case TunePhase::kCompiling:
      return "compiling";
    case TunePhase::kChecking:
      return "checking";
    case TunePhase::kMeasuring:
      return "measuring";
  }
  return "";
}

double TuneRow::median_us() const { return us.empty() ? 0 : median(us); }

int TuneResult::count(TuneState state) const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [&](const TuneRow& r) { return r.state == state; }));
}

int best_row(std::span<const TuneRow> rows) {
  int best = -1;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TuneRow& r = rows[i];
    if (r.state != TuneState::kMeasured || r.us.empty()) continue;
    if (best >= 0) {
      const TuneRow& b = rows[static_cast<size_t>(best)];
      // Whoever is in a later rung beat the others with more samples.
      if (r.rung < b.rung || (r.rung == b.rung && r.median_us() >= b.median_us())) continue;
    }
    best = static_cast<int>(i);
  }
  return best;
}

Result<TuneResult> tune(const Device& device, std::span<const TuneCandidate> candidates, const TuneOptions& options) {
  return Tuner(device, candidates, options).run();
}

std::string to_json(const TuneResult& result) {
  using nlohmann::ordered_json;
  ordered_json rows = ordered_json::array();
  for (const TuneRow& r : result.rows) {
    ordered_json row = {{"config", r.config}, {"state", name(r.state)}};
    if (!r.reason.empty()) row["reason"] = r.reason;
    if (!r.us.empty()) row["median_us"] = r.median_us();
    row["rung"] = r.rung;
    row["registers"] = r.registers >= 0 ? ordered_json(r.registers) : ordered_json();
    row["spill_bytes"] = r.spill_bytes >= 0 ? ordered_json(r.spill_bytes) : ordered_json();
    row["shared_bytes"] = r.shared_bytes >= 0 ? ordered_json(r.shared_bytes) : ordered_json();
    row["occupancy"] = r.occupancy >= 0 ? ordered_json(r.occupancy) : ordered_json();
    row["compile_ms"] = r.compile_ms;
    row["from_record"] = r.from_record;
    row["samples_us"] = r.us;
    rows.push_back(std::move(row));
  }
  ordered_json j = {{"best", result.best >= 0 ? ordered_json(result.best) : ordered_json()},
                    {"interrupted", result.interrupted},
                    {"from_records", result.from_records},
                    {"compile_s", result.compile_s},
                    {"measure_s", result.measure_s},
                    {"total_s", result.total_s},
                    {"configurations", std::move(rows)}};
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<std::string> argument_lines(const TuneCandidate& c) {
  std::vector<std::string> lines;
  if (!c.kernel) return lines;
  const std::span<const ParamDesc> params = c.kernel.params();
  for (size_t i = 0; i < c.args.size() && i < params.size(); ++i) {
    if (params[i].is_constexpr || !c.args[i]) continue;
    if (const Tensor* t = runtime::tensor_in(*c.args[i]); t && *t)
      lines.push_back(fmt::format("{}: {} [{}] by [{}]", params[i].name, name(t->dtype()), fmt::join(t->shape(), ", "),
                                  fmt::join(t->strides(), ", ")));
    else if (const auto* d = std::get_if<std::shared_ptr<const TensorDescriptor>>(&*c.args[i]))
      lines.push_back(fmt::format("{}: descriptor [{}]", params[i].name, fmt::join((*d)->shape, ", ")));
    else if (const auto* n = std::get_if<int64_t>(&*c.args[i]))
      lines.push_back(fmt::format("{} = {}", params[i].name, *n));
  }
  return lines;
}

std::string record_key(const Kernel& kernel, const Device& device, std::span<const std::string> extra) {
  const DeviceInfo info = device.info();
  return fmt::format("kernel {}\ncode {}\ndevice {} {} x{}\ndriver {}\n{}\n", kernel.name(),
                     runtime::identity_of(kernel, device), info.name, info.target, info.compute_units, info.driver,
                     fmt::join(extra, "\n"));
}

}  // namespace kiln::profiler
