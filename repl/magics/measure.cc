// %time and %bench.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "profiler/measure/measure.h"
#include "profiler/measure/nvml.h"
#include "profiler/measure/timer.h"
#include "repl/editor/terminal.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/progress.h"
#include "repl/magics/settings.h"
#include "support/diag.h"

namespace kiln::repl {

using report::Align;
using report::Cell;
using report::Table;

Status magic_time(MagicContext& context, std::string_view arguments) {
  double start = profiler::steady_seconds();
  KILN_CHECK_OK(context.session.run(std::string(arguments), "<%time>", script::Mode::kInteractive));
  double returned = profiler::steady_seconds();
  KILN_TRY(Device device, context.session.device());
  KILN_CHECK_OK(device.synchronize());
  double done = profiler::steady_seconds();
  Table table({{"wall", "", Align::kRight, "wall_us"},
               {"statement", "", Align::kRight, "statement_us"},
               {"wait for the device", "", Align::kRight, "wait_us"}});
  auto cell = [](double seconds) { return Cell::shown(report::human_time(seconds * 1e6), seconds * 1e6); };
  table.add_row({cell(done - start), cell(returned - start), cell(done - returned)});
  context.print(table);
  return {};
}

namespace {

Cell us_cell(double v) { return Cell::of(v, v < 100 ? 2 : 1); }

Cell spread_cell(const profiler::Measurement& m) {
  if (m.flags & profiler::kFewSamples) return Cell::unknown("fewer than three samples");
  return Cell::of(m.us.spread() * 100, 2);
}

}  // namespace

Status magic_bench(MagicContext& context, std::string_view text) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(MagicArguments arguments, parse_magic_arguments(text, magic_options("bench")));
  add_budget(context, arguments);
  if (arguments.expressions.size() != 1)
    return with_note(error(ErrorKind::kValue, "%bench measures one expression, got {}", arguments.expressions.size()),
                     "help: %compare A, B compares them");
  const auto interrupted = context.session.interrupt_watch();
  KILN_TRY(Declared declared, declared_by(context.session, arguments));
  double timeout_s = 5;
  if (const std::string* budget = arguments.find("budget")) {
    KILN_TRY(timeout_s, seconds_of(*budget));
  }
  KILN_TRY(profiler::Contender contender, statement_contender(context.session, arguments.expressions[0], declared));
  KILN_CHECK_OK(std::move(contender.problem));
  const Device& device = contender.device;
  profiler::Launchable what{contender.name, device, contender.launch};
  KILN_TRY(profiler::Timer timer, profiler::Timer::make(device));
  profiler::ThrottleWatch throttle(device);
  std::vector<report::Column> columns = {{"cache", "", Align::kLeft},
                                         {"min", "us"},
                                         {"q1", "us"},
                                         {"median", "us"},
                                         {"q3", "us"},
                                         {"±", "%", Align::kRight, "spread"},
                                         {"n", ""},
                                         {"discarded", "", Align::kRight, "", false, -1}};
  const bool rate = contender.facts.bytes > 0, math = contender.facts.flop > 0, gpu = device.is_cuda();
  if (rate) columns.push_back({"rate", "GB/s"});
  if (math) columns.push_back({"math", "TFLOP/s"});
  if (gpu) columns.insert(columns.end(), {{"launch", "us"}, {"clock", "MHz"}});
  columns.push_back({"flags", "", Align::kLeft, "", false, 1});
  Table table(std::move(columns));
  std::string medians;
  Progress progress(context.session);
  for (profiler::Cache cache : {profiler::Cache::kCold, profiler::Cache::kHot}) {
    profiler::MeasureOptions options;
    options.cache = cache;
    options.timeout_s = timeout_s;
    options.stop = interrupted;
    // Both states of the caches take about as long.
    const double begin = profiler::steady_seconds();
    const auto tell = progress.of_samples(std::string(name(cache)) + " caches");
    if (tell)
      options.progress = [&](profiler::MeasureProgress p) {
        if (cache == profiler::Cache::kCold) p.left_s += p.left_s + profiler::steady_seconds() - begin;
        tell(p);
      };
    std::vector<double> mhz, call_us;
    bool held = true;
    auto sampler = [&, take = timer.taker(what, cache)]() -> Result<double> {
      KILN_TRY(profiler::Sample s, take());
      if (s.sm_mhz > 0) mhz.push_back(s.sm_mhz);
      if (s.call_us >= 0) call_us.push_back(s.call_us);
      held = held && s.held;
      throttle.look(profiler::steady_seconds());
      return s.us;
    };
    auto measured = profiler::measure_samples(sampler, options, profiler::steady_seconds);
    // What is done stays; there is no row for what was not.
    if (!measured.ok() && measured.error().kind == ErrorKind::kInterrupted && !table.rows().empty()) {
      table.add_note(fmt::format("interrupted: no samples with {} caches", name(cache)));
      break;
    }
    KILN_TRY(profiler::Measurement m, std::move(measured));
    if (!held) m.flags |= profiler::kNotHeld;
    if (throttle.slowed()) m.flags |= profiler::kThrottled;
    m.flags |= profiler::clock_flags(mhz);
    std::vector<Cell> cells = {
        std::string(name(cache)), us_cell(m.us.min), us_cell(m.us.q1),          us_cell(m.us.median),
        us_cell(m.us.q3),         spread_cell(m),    Cell::of(int64_t{m.us.n}), Cell::of(int64_t{m.discarded})};
    if (rate) cells.push_back(Cell::of(contender.facts.bytes / m.us.median / 1e3, 1));
    if (math) cells.push_back(Cell::of(contender.facts.flop / m.us.median / 1e6, 3));
    if (gpu) {
      cells.push_back(call_us.empty() ? Cell::none() : us_cell(profiler::median(call_us)));
      cells.push_back(mhz.empty() ? Cell::unknown("no cycle counter was read") : Cell::of(profiler::median(mhz), 0));
    }
    cells.emplace_back(profiler::flag_names(m.flags));
    table.add_row(std::move(cells));
    const bool stopped = (m.flags & profiler::kStopped) != 0;
    medians += fmt::format("{}{} {}", medians.empty() ? "" : ", ", report::human_time(m.us.median), name(cache));
    if (stopped) break;  // the launch that was stopped took the interrupt with it
  }
  progress.clear();
  const std::string& text_of_it = arguments.expressions[0];
  if (const size_t bracket = text_of_it.find('['); bracket != std::string::npos)
    if (auto kernel = context.session.kernel(text_of_it.substr(0, bracket)); kernel.ok())
      context.timings[kernel->name()] = fmt::format("{} on {} ({})", medians, device.name(), text_of_it);
  context.session.forget_interrupt();
  if (!contender.facts.kernels.empty())
    table.add_note(fmt::format("kernels: {}", fmt::join(contender.facts.kernels, ", ")));
  if (contender.facts.graph && declared.bytes < 0 && declared.flop < 0)  // only plans come with one
    table.add_note("rate and math: from the plan's bytes and FLOP");
  else if (rate && declared.bytes < 0)
    table.add_note("rate: each tensor argument counted once; override with bytes=N");
  if (gpu) table.add_note("clock throttled by: " + throttle.text());
  table.add_note(
      fmt::format("{}, {}; ± is half the interquartile range over the median", device.name(), timer.method()));
  context.print(table);
  return {};
}

}  // namespace kiln::repl
