// %sweep.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/compare/sweep.h"
#include "profiler/measure/timer.h"
#include "profiler/report/plot.h"
#include "repl/editor/terminal.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/settings.h"
#include "repl/shell/files.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

using profiler::Sweep;
using profiler::SweepCell;
using profiler::SweepPoint;

constexpr double kSecondsPerPoint = 3;
constexpr int kPairsPerPoint = 30;
constexpr int64_t kMostPoints = 1000;

struct Axis {
  std::string name;
  std::vector<script::Value> values;
  std::vector<std::string> texts;
  script::Value before;  // what the variable was
};

Result<std::vector<Axis>> axes_of(MagicContext& context, const MagicArguments& arguments) {
  std::vector<Axis> axes;
  int64_t points = 1;
  for (const auto& [name, text] : arguments.values) {
    if (std::ranges::any_of(magic_options("sweep"), [&](const MagicOption& o) { return o.name == name; })) continue;
    Axis axis;
    axis.name = name;
    auto values = context.session.items(text);
    if (!values.ok())
      return with_note(std::move(values.error()), fmt::format("help: an axis is a list, as in {}=[1, 2, 4]", name));
    axis.values = *std::move(values);
    if (axis.values.empty()) return error(ErrorKind::kValue, "the axis {} has no values", name);
    for (const script::Value& v : axis.values) {
      KILN_TRY(axis.texts.emplace_back(), context.session.text_of(v));
    }
    axis.before = context.session.variable(name);
    points *= static_cast<int64_t>(axis.values.size());
    if (points > kMostPoints) return error(ErrorKind::kValue, "the axes have more than {} points", kMostPoints);
    axes.push_back(std::move(axis));
  }
  if (axes.empty())
    return with_note(error(ErrorKind::kValue, "%sweep needs an axis"),
                     "help: %sweep f(n) n=[256, 1024, 4096] sets n before each measurement");
  return axes;
}

SweepCell failed_cell(const std::string& name, bool is_baseline, const Diagnostic& why) {
  SweepCell cell;
  cell.variant = name;
  cell.is_baseline = is_baseline;
  cell.problem = why.message;
  return cell;
}

// One contender alone: there is nothing to pair it with.
Result<SweepCell> measure_alone(const script::Session& session, const profiler::Contender& c,
                                const profiler::ContestOptions& options) {
  if (!c.problem.ok()) return failed_cell(c.name, true, c.problem.error());
  KILN_TRY(profiler::Timer timer, profiler::Timer::make(c.device));
  auto sampler = [&session, take = timer.sampler({c.name, c.device, c.launch}, options.cache)]() -> Result<double> {
    if (session.is_interrupted()) return error(ErrorKind::kInterrupted, "interrupted");
    return take();
  };
  profiler::MeasureOptions o;
  o.cache = options.cache;
  o.timeout_s = options.timeout_s;
  o.min_total_s = 0.02;
  auto m = profiler::measure_samples(sampler, o, profiler::steady_seconds);
  if (!m.ok()) {
    if (m.error().kind == ErrorKind::kInterrupted) return std::move(m.error());
    return failed_cell(c.name, true, m.error());
  }
  // A kernel that Ctrl-C ended takes the interrupt with it; a point that was cut short is none.
  if (m->flags & profiler::kStopped) return error(ErrorKind::kInterrupted, "interrupted");
  SweepCell cell;
  cell.variant = c.name;
  cell.us = m->us.median;
  cell.spread = m->us.spread();
  cell.q1_us = m->us.q1, cell.q3_us = m->us.q3;
  cell.bytes = c.facts.bytes;
  cell.flop = c.facts.flop;
  return cell;
}

Result<std::vector<SweepCell>> measure_point(MagicContext& context, const MagicArguments& arguments) {
  if (const std::string* setup = arguments.find("setup"))
    KILN_CHECK_OK(context.session.run(std::string(unquoted(*setup)), "<setup>"));
  KILN_TRY(ContenderSet set, make_contenders(context.session, context.variants, arguments));
  // Tensors of one size serve many points of an axis: the sum of the arguments says nothing of what a launch moved.
  if (!set.check && !arguments.has("bytes"))
    for (profiler::Contender& c : set.contenders) c.facts.bytes = -1;
  KILN_TRY(profiler::ContestOptions options, contest_options(context.session, arguments));
  if (!arguments.has("budget")) options.timeout_s = kSecondsPerPoint;
  if (!arguments.has("pairs")) options.max_pairs = kPairsPerPoint;
  options.progress = {};
  if (set.contenders.size() == 1) {
    KILN_TRY(SweepCell cell, measure_alone(context.session, set.contenders[0], options));
    return std::vector<SweepCell>{std::move(cell)};
  }
  options.extras = false;
  options.check = set.check;
  options.reference = set.reference;
  options.baseline = set.baseline;
  if (const std::string* base = arguments.find("base")) {
    KILN_TRY(double number, number_of(context.session, *base, "base="));
    if (!(number >= 1 && number <= static_cast<double>(set.contenders.size())))
      return error(ErrorKind::kValue, "base= counts from 1 to {}, got {}", set.contenders.size(), *base);
    options.baseline = static_cast<size_t>(number) - 1;
  }
  std::vector<std::string> names;
  for (const profiler::Contender& c : set.contenders) names.push_back(c.name);
  std::vector<SweepCell> cells;
  auto contest = profiler::run_contest(std::move(set.contenders), options);
  if (!contest.ok()) {
    if (contest.error().kind == ErrorKind::kInterrupted) return std::move(contest.error());
    // The baseline's problem: the point has no figures, and the others stand.
    for (size_t i = 0; i < names.size(); ++i)
      cells.push_back(failed_cell(names[i], i == options.baseline, contest.error()));
    return cells;
  }
  if (contest->interrupted) return error(ErrorKind::kInterrupted, "interrupted");
  for (size_t i = 0; i < contest->rows.size(); ++i) {
    const profiler::ContestRow& row = contest->rows[i];
    SweepCell cell;
    cell.variant = row.name;
    cell.is_baseline = i == contest->baseline;
    if (!row.problem.ok()) cell.problem = row.problem.error().message;
    const bool wrong = row.check.known() && !row.check.ok();
    if (wrong) cell.problem = "its result is wrong: " + row.check.text();
    if (row.is_measured() && !wrong) {
      cell.us = row.us().median;
      cell.spread = row.us().spread();
      cell.q1_us = row.us().q1, cell.q3_us = row.us().q3;
      cell.bytes = row.facts.bytes;
      cell.flop = row.facts.flop;
      cell.decision = row.decision;
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

script::Value sweep_value(const Sweep& sweep, const std::vector<Axis>& axes,
                          const std::vector<std::vector<size_t>>& at) {
  using script::Value;
  auto rows = script::make<script::List>();
  for (size_t p = 0; p < sweep.points.size(); ++p)
    for (const SweepCell& c : sweep.points[p].cells) {
      auto d = script::make<script::Dict>();
      for (size_t a = 0; a < axes.size(); ++a) d->table.set(axes[a].name, axes[a].values[at[p][a]]);
      d->table.set("variant", Value::str(c.variant));
      d->table.set("us", c.us > 0 ? Value::real(c.us) : Value::none());
      d->table.set("spread", c.us > 0 ? Value::real(c.spread) : Value::none());
      d->table.set("speedup", c.decision.pairs > 0 ? Value::real(c.decision.speedup()) : Value::none());
      d->table.set("verdict", c.decision.pairs > 0 ? Value::str(std::string(name(c.decision.verdict))) : Value::none());
      d->table.set("problem", c.problem.empty() ? Value::none() : Value::str(c.problem));
      rows->items.push_back(d);
    }
  return rows;
}

}  // namespace

Status magic_sweep(MagicContext& context, std::string_view text) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(MagicArguments arguments, parse_magic_arguments(text, magic_options("sweep"), {.other_names = true}));
  add_budget(context, arguments);
  KILN_TRY(std::vector<Axis> axes, axes_of(context, arguments));
  // Whatever happens, the variables are what they were.
  struct Restore {
    script::Session& session;
    std::vector<Axis>& axes;
    ~Restore() {
      for (Axis& a : axes) session.set_variable(a.name, a.before);
    }
  } restore{context.session, axes};

  Sweep sweep;
  size_t total = 1;
  for (const Axis& a : axes) sweep.axes.push_back(a.name), total *= a.values.size();
  std::vector<std::vector<size_t>> at;
  const bool progress = shows_progress(context.session);
  for (size_t n = 0; n < total && !sweep.interrupted; ++n) {
    std::vector<size_t> index(axes.size());
    size_t rest = n;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].values.size()) index[a] = rest % axes[a].values.size();
    SweepPoint point;
    for (size_t a = 0; a < axes.size(); ++a) {
      context.session.set_variable(axes[a].name, axes[a].values[index[a]]);
      point.values.push_back(axes[a].texts[index[a]]);
    }
    if (progress) tell_progress(context.session, fmt::format("{} of {}", n + 1, total));
    auto cells = measure_point(context, arguments);
    if (!cells.ok() && cells.error().kind != ErrorKind::kInterrupted) return std::move(cells.error());
    sweep.interrupted = !cells.ok() || context.session.is_interrupted();
    if (!cells.ok()) break;
    point.cells = *std::move(cells);
    sweep.points.push_back(std::move(point));
    at.push_back(std::move(index));
  }
  if (progress) tell_progress(context.session, "");
  context.session.forget_interrupt();
  report::Table table = sweep_table(sweep);
  for (std::string& line : crossovers(sweep)) table.add_note(std::move(line));
  context.print(table);
  report::Plot plot = sweep_plot(sweep);
  plot.title = std::string(arguments.expressions.size() == 1 ? arguments.expressions[0] : "");
  if (context.format == report::Format::kText)
    context.output(report::to_terminal(plot, context.color ? report::PlotStyle::kColor : report::PlotStyle::kPlain));
  context.yield.details = sweep_value(sweep, axes, at);
  if (const std::string* file = arguments.find("--svg")) KILN_CHECK_OK(write_file_atomic(*file, report::to_svg(plot)));
  return {};
}

}  // namespace kiln::repl
