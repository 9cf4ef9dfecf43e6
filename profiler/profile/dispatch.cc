#include "profiler/profile/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/measure/stats.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/schedule.h"

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;
using trace::Step;

/// Steps that are shown as one row: the interpreter's own work encloses the others.
struct Row {
  std::string_view name, what;
  std::initializer_list<Step> steps;
};
const Row kRows[] = {
    {"interpret", "the script: names, arguments, grids, calls", {Step::kRange, Step::kStatement, Step::kOperation}},
    {"expression plan", "find or make the plan of an expression", {Step::kPlan}},
    {"plan binding", "tensors and arguments of its kernels", {Step::kBind}},
    {"launch", "checks around the steps below", {Step::kLaunch, Step::kGraphLaunch}},
    {"specialisation key", "slots, types, divisibility, constants", {Step::kKey}},
    {"cache lookup", "from the key to the loaded kernel", {Step::kLookup}},
    {"compile and load", "kernels that were not in memory", {Step::kCompile, Step::kPhase, Step::kLoad}},
    {"device start", "the driver's context of the GPU, at its first use", {Step::kContext}},
    {"tensor-map encoding", "descriptors for TMA", {Step::kTensorMap}},
    {"driver call", "the driver's own launch", {Step::kDriver}},
    {"library call", "cuBLAS, cublasLt, OpenBLAS", {Step::kLibrary}},
    {"copies and fills",
     "with the waits that are part of them",
     {Step::kCopyIn, Step::kCopyOut, Step::kCopy, Step::kFill}},
    {"kernels on the CPU", "the work itself", {Step::kHostKernel}},
    {"wait", "for the device; not the CPU's own time", {Step::kWait}},
};

size_t row_of(Step step) {
  for (size_t r = 0; r < std::size(kRows); ++r)
    if (std::find(kRows[r].steps.begin(), kRows[r].steps.end(), step) != kRows[r].steps.end()) return r;
  // What no row lists is the interpreter's.
  return 0;
}

bool is_launch(Step step) { return step == Step::kLaunch || step == Step::kGraphLaunch || step == Step::kLibrary; }

}  // namespace

Dispatch dispatch_of(const Timeline& timeline) {
  const size_t n = timeline.spans.size();
  std::vector<Ns> self(n);
  std::vector<int> run(n, -1);  // the range that a span lies in
  std::map<int, size_t> runs;
  for (size_t i = 0; i < n; ++i) {
    const Span& s = timeline.spans[i];
    // A span's own time: its duration less those of its children.
    self[i] += s.duration();
    if (s.parent >= 0) self[static_cast<size_t>(s.parent)] -= s.duration();
    run[i] = s.step == Step::kRange && s.name == kStepRange ? static_cast<int>(i)
             : s.parent >= 0                                ? run[static_cast<size_t>(s.parent)]
                                                            : -1;
    if (run[i] == static_cast<int>(i)) runs.emplace(run[i], runs.size());
  }
  constexpr size_t kCount = std::size(kRows);
  std::vector<std::vector<double>> us_of(kCount, std::vector<double>(runs.size()));
  std::vector<double> calls(kCount);
  Dispatch out;
  out.runs = static_cast<int64_t>(runs.size());
  if (runs.empty()) return out;
  for (size_t i = 0; i < n; ++i) {
    if (run[i] < 0) continue;
    const Step step = timeline.spans[i].step;
    const size_t r = row_of(step);
    us_of[r][runs.at(run[i])] += us(self[i]);
    // A range marks a run, and is no call of the script.
    calls[r] += step != Step::kRange;
    out.launches += is_launch(step);
  }
  const auto count = static_cast<double>(runs.size());
  out.launches /= count;
  // kRows ends with it.
  constexpr size_t kWait = kCount - 1;
  for (size_t r = 0; r < kCount; ++r) {
    const double each = median(us_of[r]);
    (r == kWait ? out.wait_us : out.cpu_us) += each;
    if (r == row_of(Step::kHostKernel)) out.work_us = each;
    if (calls[r] > 0 || each > 0)
      out.steps.push_back({std::string(kRows[r].name), std::string(kRows[r].what), each, calls[r] / count});
  }
  return out;
}

std::string dispatch_verdict(const DispatchReport& report) {
  const double cpu =
      !report.ways.empty() && report.ways[0].cpu_us >= 0 ? report.ways[0].cpu_us : report.dispatch.cpu_us;
  if (!report.on_gpu)
    return fmt::format("{:.0f} % of a run is dispatch: {:.2f} us around {:.2f} us of kernels",
                       report.dispatch.cpu_us > 0 ? (1 - report.dispatch.work_us / report.dispatch.cpu_us) * 100 : 0.0,
                       report.dispatch.cpu_us - report.dispatch.work_us, report.dispatch.work_us);
  if (report.gpu_us < 0) return fmt::format("no verdict: the device's time is not known ({})", report.no_gpu);
  if (report.gpu_us == 0) return "nothing ran on the GPU";
  const double ratio = report.gpu_us / cpu;
  if (ratio < 1)
    return fmt::format(
        "CPU-bound: a run takes {:.2f} us of the CPU and {:.2f} us of the GPU, which is idle {:.0f} % of "
        "the time",
        cpu, report.gpu_us, (1 - ratio) * 100);
  return fmt::format(
      "GPU-bound: a run takes {:.2f} us of the GPU and {:.2f} us of the CPU, which could feed {:.1f} such "
      "runs at once",
      report.gpu_us, cpu, ratio);
}

report::Table dispatch_table(const DispatchReport& report) {
  const Dispatch& d = report.dispatch;
  report::Table table({{"step", "", Align::kLeft},
                       {"calls", "", Align::kRight, "calls_per_run"},
                       {"each", "us", Align::kRight, "each_us"},
                       {"per run", "us", Align::kRight, "run_us"},
                       {"%", "", Align::kRight, "percent_of_cpu"},
                       {"includes", "", Align::kLeft}});
  table.set_title("dispatch budget");
  for (const DispatchStep& s : d.steps) {
    const bool wait = s.name == kRows[std::size(kRows) - 1].name;
    table.add_row({s.name, Cell::of(s.calls, s.calls == static_cast<int64_t>(s.calls) ? 0 : 1),
                   s.calls > 0 ? Cell::of(s.us / s.calls, 2) : Cell(""), Cell::of(s.us, 2),
                   wait || d.cpu_us <= 0 ? Cell("") : Cell::of(s.us / d.cpu_us * 100, 1), s.what});
  }
  table.add_row({"total", Cell(""), Cell(""), Cell::of(d.cpu_us, 2), Cell::of(100.0, 1), "without waits"});
  if (report.launch_start_us >= 0)
    table.add_row({"until the kernel starts", Cell(""), Cell::of(report.launch_start_us, 2), Cell(""), Cell(""),
                   "from the driver's call, on an idle stream, profiled"});
  if (report.gpu_us >= 0)
    table.add_row({"device busy", Cell(""), Cell(""), Cell::of(report.gpu_us, 2), Cell(""), "for one run"});
  else if (!report.no_gpu.empty())
    table.add_note("the device's side is not known: " + report.no_gpu);
  if (!report.ways.empty() && report.ways[0].cpu_us >= 0)
    table.add_note(fmt::format("{:.2f} us per run without instrumentation", report.ways[0].cpu_us));
  table.add_note(fmt::format("medians of {} runs; each step without the steps within it", d.runs));
  return table;
}

report::Table dispatch_ways_table(const DispatchReport& report) {
  report::Table table({{"the same work", "", Align::kLeft},
                       {"CPU", "us", Align::kRight, "cpu_us"},
                       {"elapsed", "us", Align::kRight, "elapsed_us"},
                       {"saves", "%", Align::kRight, "saved_percent"}});
  table.set_title("alternatives");
  const double now = report.ways.empty() ? -1 : report.ways[0].elapsed_us;
  for (size_t i = 0; i < report.ways.size(); ++i) {
    const DispatchWay& w = report.ways[i];
    if (!w.problem.empty()) {
      table.add_row({w.name, Cell::none(), Cell::none(), Cell("")});
      table.add_note(fmt::format("– {}: {}", w.name, w.problem));
      continue;
    }
    table.add_row({w.name, Cell::of(w.cpu_us, 2), Cell::of(w.elapsed_us, 2),
                   i == 0 || now <= 0 ? Cell("") : Cell::of((1 - w.elapsed_us / now) * 100, 1)});
  }
  table.add_note("per run, without instrumentation; elapsed: many back to back, with the wait for the last");
  return table;
}

}  // namespace kiln::profiler
