// %sweep.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "profiler/compare/sweep.h"
#include "profiler/measure/device_lock.h"
#include "profiler/measure/timer.h"
#include "profiler/report/plot.h"
#include "repl/editor/terminal.h"
#include "repl/magics/magics.h"
#include "repl/magics/progress.h"
#include "repl/magics/settings.h"
#include "repl/magics/sweep_points.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

using profiler::Sweep;
using profiler::SweepCell;

Result<std::vector<SweepCell>> measured(MagicContext& context, SweepPoints& points, size_t number, bool locks,
                                        const std::function<void()>& tick) {
  if (!locks) return points.measure(number, tick);
  KILN_TRY(const Device device, context.session.device());
  KILN_TRY(const profiler::DeviceLock lock,
           profiler::DeviceLock::take(
               device, [&] { return context.session.is_interrupted(); },
               [&] { tell_progress(context.session, fmt::format("another process measures on {}", device.name())); }));
  return points.measure(number, tick);
}

script::Value sweep_value(const Sweep& sweep, const SweepPoints& points) {
  using script::Value;
  auto rows = script::make<script::List>();
  for (size_t p = 0; p < sweep.points.size(); ++p) {
    const std::vector<size_t> at = points.index(p);
    for (const SweepCell& c : sweep.points[p].cells) {
      auto d = script::make<script::Dict>();
      for (size_t a = 0; a < at.size(); ++a) d->table.set(points.axes()[a].name, points.axes()[a].values[at[a]]);
      d->table.set("variant", Value::str(c.variant));
      d->table.set("us", c.us > 0 ? Value::real(c.us) : Value::none());
      d->table.set("spread", c.us > 0 ? Value::real(c.spread) : Value::none());
      d->table.set("speedup", c.decision.pairs > 0 ? Value::real(c.decision.speedup()) : Value::none());
      d->table.set("verdict", c.decision.pairs > 0 ? Value::str(std::string(name(c.decision.verdict))) : Value::none());
      d->table.set("problem", c.problem.empty() ? Value::none() : Value::str(c.problem));
      rows->items.push_back(d);
    }
  }
  return rows;
}

}  // namespace

Status magic_sweep(MagicContext& context, std::string_view text) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(MagicArguments arguments, parse_magic_arguments(text, magic_options("sweep"), {.other_names = true}));
  add_budget(context, arguments);
  const std::string expression = arguments.expressions.size() == 1 ? arguments.expressions[0] : "";
  const std::string svg = arguments.text("--svg"), lock = arguments.text("lock", "off");
  if (lock != "on" && lock != "off") return error(ErrorKind::kValue, "lock= is on or off, not '{}'", lock);
  KILN_TRY(SweepPoints points, SweepPoints::make(context, std::move(arguments)));
  Sweep sweep;
  for (const SweepAxis& a : points.axes()) sweep.axes.push_back(a.name);
  Progress progress(context.session);
  KILN_TRY(const double limit_s, points.seconds_per_point());
  const double start_s = profiler::steady_seconds();
  for (size_t n = 0; n < points.size(); ++n) {
    const double begin_s = profiler::steady_seconds();
    // The first point takes as long as it may, for all that is known; the others as long as those before.
    const double each_s = n == 0 ? limit_s : (begin_s - start_s) / static_cast<double>(n);
    const std::string what = fmt::format("{} of {}: {}", n + 1, points.size(), fmt::join(points.texts(n), ", "));
    auto tick = [&] {
      const double spent_s = profiler::steady_seconds() - begin_s;
      progress.show(what, std::max(each_s - spent_s, 0.0) + each_s * static_cast<double>(points.size() - n - 1));
    };
    tick();
    auto cells = measured(context, points, n, lock == "on", tick);
    if (!cells.ok() && cells.error().kind != ErrorKind::kInterrupted) return std::move(cells.error());
    sweep.interrupted = !cells.ok();
    if (sweep.interrupted) break;
    sweep.points.push_back({points.texts(n), *std::move(cells)});
  }
  progress.clear();
  context.session.forget_interrupt();
  report::Table table = sweep_table(sweep);
  for (std::string& line : crossovers(sweep)) table.add_note(std::move(line));
  context.print(table);
  report::Plot plot = sweep_plot(sweep);
  plot.title = expression;
  if (context.format == report::Format::kText)
    context.output(report::to_terminal(plot, context.color ? report::PlotStyle::kColor : report::PlotStyle::kPlain,
                                       context.style().width));
  context.yield.details = sweep_value(sweep, points);
  if (!svg.empty()) KILN_CHECK_OK(write_file_atomic(svg, report::to_svg(plot)));
  return {};
}

}  // namespace kiln::repl
