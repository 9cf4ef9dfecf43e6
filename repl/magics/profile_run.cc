#include "repl/magics/profile_run.h"

#include "profiler/measure/stats.h"
#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

using profiler::ProfileSession;
using profiler::StepAction;
using profiler::Timeline;

namespace {

Status run_kept(const std::function<Status()>& run) {
  trace::Scope step(trace::kSpans, trace::Step::kRange, profiler::kStepRange);
  return run();
}

}  // namespace

Result<PlainCalls> plain_calls(const Device& device, const std::function<Status()>& run, int64_t runs) {
  profiler::SessionOptions options;
  options.details = trace::kSpans | trace::kSteps;
  options.device_work = false;
  KILN_TRY(auto session, ProfileSession::start(device, options));
  for (int64_t i = 0; i < runs; ++i) KILN_CHECK_OK(run());
  KILN_TRY(Timeline seen, session->stop());
  std::vector<double> launches, graphs;
  for (const profiler::Span& s : seen.spans) {
    if (s.step == trace::Step::kDriver) launches.push_back(static_cast<double>(s.duration()) / 1e3);
    if (s.step == trace::Step::kGraphLaunch) graphs.push_back(static_cast<double>(s.duration()) / 1e3);
  }
  auto middle = [](const std::vector<double>& us) { return us.empty() ? -1 : profiler::median(us); };
  return PlainCalls{middle(launches), middle(graphs)};
}

Result<ProfileCycles> profile_cycles(script::Session& session, const std::string& statement,
                                     const ProfileRunOptions& options) {
  const profiler::Schedule& schedule = options.schedule;
  if (schedule.wait < 0 || schedule.warmup < 0 || schedule.active < 1 || schedule.repeat < 1)
    return error(ErrorKind::kValue, "a profile keeps at least one run: active= and repeat= are 1 or more");
  const auto stopped = session.interrupt_watch();
  if (session.computed_tensor(trimmed(statement)))
    return with_note(error(ErrorKind::kValue, "'{}' is computed already: nothing would run", trimmed(statement)),
                     "help: profile what makes it, as in x + 1");
  KILN_TRY(Device device, session.device());
  KILN_TRY(auto prepared, statement_runner(session, statement, "<%profile>"));
  auto run = [&]() -> Status {
    KILN_CHECK_OK(prepared());
    if (session.exit_code()) return error(ErrorKind::kValue, "the statement ended the script");
    return {};
  };
  const bool plain = options.plain_calls && device.is_cuda();
  PlainCalls plain_us;
  if (plain && schedule.warmup > 0) {
    KILN_CHECK_OK(run());
    KILN_TRY(plain_us, plain_calls(device, run, schedule.active));
  }
  ProfileCycles out;
  std::vector<Timeline>& cycles = out.timelines;
  const int64_t last = schedule.skip_first + schedule.cycle() * schedule.repeat;
  std::unique_ptr<ProfileSession> profile;
  bool warming = false;
  for (int64_t i = 0; i < last; ++i) {
    if (options.before_run) options.before_run();
    const StepAction action = schedule.at(i);
    if (warming && action == StepAction::kActive) {
      // Attached as later, so that the first run that is kept does not pay for attaching.
      KILN_TRY([[maybe_unused]] Timeline forgotten, profile->stop());
      profile.reset();
    }
    warming = action == StepAction::kWarmup;
    if (!profile && action != StepAction::kWait) {
      KILN_TRY(profile, ProfileSession::start(device, options.session));
    }
    Status ran = action == StepAction::kActive ? run_kept(run) : run();
    // A statement that caught it was cut short nevertheless.
    if (ran.ok() && stopped()) ran = error(ErrorKind::kInterrupted, "interrupted");
    const bool interrupted = !ran.ok() && ran.error().kind == ErrorKind::kInterrupted;
    if (!interrupted) KILN_CHECK_OK(ran);
    if (action == StepAction::kActive && (interrupted || schedule.ends_cycle(i))) {
      KILN_TRY(Timeline seen, profile->stop());
      if (interrupted) seen.unknown.push_back(profiler::cut_short("Ctrl-C"));
      cycles.push_back(std::move(seen));
      profile.reset();
    }
    if (!interrupted) continue;
    if (cycles.empty()) return std::move(ran.error());
    out.interrupted = std::move(ran);
    break;
  }
  if (plain && schedule.warmup == 0 && out.interrupted.ok()) {
    KILN_TRY(plain_us, plain_calls(device, run, schedule.active));
  }
  for (Timeline& t : cycles) t.plain_call_us = plain_us.launch_us, t.plain_graph_us = plain_us.graph_us;
  return out;
}

Result<Timeline> profile_statement(MagicContext& context, const std::string& statement,
                                   const ProfileRunOptions& options) {
  KILN_TRY(auto cycles, profile_cycles(context.session, statement, options));
  KILN_CHECK_OK(std::move(cycles.interrupted));
  return std::move(cycles.timelines.back());
}

}  // namespace kiln::repl
