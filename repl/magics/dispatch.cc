// %dispatch.
#include <fmt/format.h>

#include "kiln/graph.h"
#include "profiler/measure/measure.h"
#include "profiler/measure/timer.h"
#include "profiler/profile/dispatch.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/latency.h"
#include "repl/editor/terminal.h"
#include "repl/magics/magics.h"
#include "repl/magics/profile_run.h"
#include "repl/magics/progress.h"
#include "repl/magics/statement_arguments.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using profiler::DispatchReport;
using profiler::DispatchWay;
using profiler::Timeline;

constexpr int64_t kRuns = 50;

/// Counts the runs of all parts, for the line on the terminal.
class Runs {
 public:
  Runs(MagicContext& context, int64_t each, int64_t parts) : progress_(context.session), each_(each), parts_(parts) {}
  void add_parts(int64_t more) { parts_ += more; }
  void next(std::string_view what) {
    progress_.show_share(what, static_cast<double>(done_) / static_cast<double>(std::max(parts_ * each_, done_ + 1)));
    ++done_;
  }

 private:
  Progress progress_;
  const int64_t each_;
  int64_t parts_, done_ = 0;
};

/// Times `run` without instrumentation: each call, and all of them with the wait for the last.
DispatchWay timed(std::string name, const Device& device, int64_t runs, const std::function<Status()>& run,
                  Runs& progress) {
  DispatchWay way;
  way.name = std::move(name);
  auto measure = [&]() -> Status {
    KILN_CHECK_OK(run());
    KILN_CHECK_OK(device.synchronize());
    std::vector<double> calls;
    const double begin = profiler::steady_seconds();
    for (int64_t i = 0; i < runs; ++i) {
      progress.next(way.name);
      const double start = profiler::steady_seconds();
      KILN_CHECK_OK(run());
      calls.push_back((profiler::steady_seconds() - start) * 1e6);
    }
    KILN_CHECK_OK(device.synchronize());
    way.elapsed_us = (profiler::steady_seconds() - begin) * 1e6 / static_cast<double>(runs);
    way.cpu_us = profiler::median(calls);
    return {};
  };
  Status done = measure();
  if (!done.ok()) way.problem = done.error().message;
  return way;
}

DispatchWay not_possible(std::string name, const Diagnostic& why) {
  DispatchWay way;
  way.name = std::move(name);
  way.problem = why.message;
  return way;
}

/// The same work as one graph, and an expression's without fusion.
void add_other_ways(MagicContext& context, const std::string& statement, const Device& device, int64_t runs,
                    const std::function<Status()>& run, DispatchReport& report, Runs& progress) {
  const std::string graph_name = device.is_cuda() ? "as one CUDA graph" : "as one graph";
  auto graph = Graph::capture(device, run);
  report.ways.push_back(graph.ok() ? timed(
                                         graph_name, device, runs, [&] { return graph->launch(); }, progress)
                                   : not_possible(graph_name, graph.error()));
  auto expr = context.session.expression(statement);
  if (!expr.ok() || !*expr) return;  // no expression: there is nothing to fuse or to take apart
  progress.add_parts(2);
  for (ExprVariant which : {ExprVariant::kFused, ExprVariant::kUnfused}) {
    const std::string name = fmt::format("its plan, {}", kiln::name(which));
    auto plan = variant(**expr, which, context.session.tensor_names());
    if (!plan.ok() || !plan->problem.ok()) {
      report.ways.push_back(not_possible(name, plan.ok() ? plan->problem.error() : plan.error()));
      continue;
    }
    report.ways.push_back(timed(
        fmt::format("{}: {} launch{}", name, plan->kernels.size(), plan->kernels.size() == 1 ? "" : "es"), device, runs,
        [&] { return plan->launch(); }, progress));
  }
}

void read_device_side(const Timeline& seen, int64_t runs, DispatchReport& report) {
  report.no_gpu = profiler::why_no_device_work(seen);
  if (!report.no_gpu.empty()) return;
  std::vector<profiler::TimeRange> work;
  for (const profiler::Work& w : seen.work)
    if (!w.is_lost()) work.push_back({w.start, w.end});
  report.gpu_us = profiler::us(profiler::union_of(std::move(work))) / static_cast<double>(runs);
  const profiler::Latency pieces = profiler::latency(seen);
  const auto& idle = pieces.of(profiler::LaunchPiece::kLaunchStart).idle;
  if (!idle.empty()) report.launch_start_us = profiler::median(idle);
}

}  // namespace

Status magic_dispatch(MagicContext& context, std::string_view text) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(MagicArguments arguments, parse_statement_arguments(text, magic_options("dispatch")));
  int64_t runs = kRuns;
  if (const std::string* given = arguments.find("runs")) {
    KILN_TRY(runs, count_of(*given, "runs=", 1));
  }
  const std::string& statement = arguments.expressions[0];
  KILN_TRY(Device device, context.session.device());

  ProfileRunOptions steps;
  steps.schedule.active = runs;
  steps.plain_calls = false;
  steps.session.details = trace::kSpans | trace::kStatements | trace::kSteps;
  steps.session.device_work = false;
  // A profile of what the host does, on a GPU one of its work, as it is, as one graph.
  std::optional<Runs> progress(std::in_place, context, runs, device.is_cuda() ? 4 : 3);
  steps.before_run = [&] { progress->next("in a profile"); };
  auto host = profile_statement(context, statement, steps);
  if (!host.ok()) return explain_statement(std::move(host.error()), statement, magic_options("dispatch"));
  DispatchReport report;
  report.dispatch = profiler::dispatch_of(*host);

  report.on_gpu = device.is_cuda();
  if (report.on_gpu) {
    ProfileRunOptions whole;
    whole.schedule.active = runs;
    whole.plain_calls = false;
    whole.before_run = steps.before_run;
    KILN_TRY(Timeline seen, profile_statement(context, statement, whole));
    read_device_side(seen, runs, report);
  }

  KILN_TRY(auto run, statement_runner(context.session, statement, "<%dispatch>"));
  report.ways.push_back(timed("as it is", device, runs, run, *progress));
  add_other_ways(context, statement, device, runs, run, report, *progress);
  progress.reset();

  context.print(profiler::dispatch_table(report));
  context.print(profiler::dispatch_ways_table(report), "ways");
  if (context.format == report::Format::kText) context.say(profiler::dispatch_verdict(report) + "\n");
  return {};
}

}  // namespace kiln::repl
