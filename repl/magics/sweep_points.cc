#include "repl/magics/sweep_points.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/measure/measure.h"
#include "repl/magics/contenders.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using profiler::SweepCell;

// A sweep has many points, and a trend needs less of each than a comparison of two does.
constexpr double kSecondsPerPoint = 3;
constexpr int kPairsPerPoint = 30;
// Fifty minutes at the time above; more is a mistake in an axis rather than a wish.
constexpr int64_t kMostPoints = 1000;

Result<std::vector<SweepAxis>> axes_of(MagicContext& context, const MagicArguments& arguments) {
  std::vector<SweepAxis> axes;
  int64_t points = 1;
  for (const auto& [name, text] : arguments.values) {
    // A value of a known option, as bytes=, is none of an axis.
    if (std::ranges::any_of(magic_options("sweep"), [&](const MagicOption& o) { return o.name == name; })) continue;
    SweepAxis axis;
    axis.name = name;
    // Evaluated once, before the first point: an axis that depends on another's variable would change under the sweep.
    auto values = context.session.items(text);
    if (!values.ok())
      return with_note(std::move(values.error()), fmt::format("help: an axis is a list, as in {}=[1, 2, 4]", name));
    axis.values = *std::move(values);
    if (axis.values.empty()) return error(ErrorKind::kValue, "the axis {} has no values", name);
    // The texts now, since a value such as a list may be changed by what is measured.
    for (const script::Value& v : axis.values) {
      KILN_TRY(axis.texts.emplace_back(), context.session.text_of(v));
    }
    // An undefined variable comes back as undefined.
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
Result<SweepCell> measure_alone(const profiler::Contender& c, const profiler::ContestOptions& options,
                                const std::function<void()>& tick) {
  if (!c.problem.ok()) return failed_cell(c.name, true, c.problem.error());
  profiler::MeasureOptions o;
  o.cache = options.cache;
  o.timeout_s = options.timeout_s;
  // 20 ms of measuring: enough for a median of a microsecond kernel, and a sweep of a hundred points stays short.
  o.min_total_s = 0.02;
  o.stop = options.stop;
  if (tick) o.progress = [&](const profiler::MeasureProgress&) { tick(); };
  auto m = profiler::measure({c.name, c.device, c.launch}, o);
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

Result<std::vector<SweepCell>> measure_point(MagicContext& context, const MagicArguments& arguments,
                                             const std::function<bool()>& stop, const std::function<void()>& tick) {
  if (const std::string* setup = arguments.find("setup"))
    // At every point: tensors are made here from the axes' variables.
    KILN_CHECK_OK(context.session.run(std::string(unquoted(*setup)), "<setup>"));
  KILN_TRY(ContenderSet set, make_contenders(context.session, context.variants, arguments));
  // Tensors of one size serve many points of an axis: the sum of the arguments says nothing of what a launch moved.
  if (!set.check && !arguments.has("bytes"))
    for (profiler::Contender& c : set.contenders) c.facts.bytes = -1;
  KILN_TRY(profiler::ContestOptions options, contest_options(context.session, arguments));
  options.stop = stop;
  if (!arguments.has("budget")) options.timeout_s = kSecondsPerPoint;
  if (!arguments.has("pairs")) options.max_pairs = kPairsPerPoint;
  // The contest's own text would be drawn over the sweep's.
  options.progress = {};
  if (tick) options.progress = [&](std::string_view) { tick(); };
  if (set.contenders.size() == 1) {
    KILN_TRY(SweepCell cell, measure_alone(set.contenders[0], options, tick));
    return std::vector<SweepCell>{std::move(cell)};
  }
  // The other cache state, graph replay and the ceilings have no column in the table of a sweep.
  options.extras = false;
  options.check = set.check;
  options.reference = set.reference;
  options.baseline = set.baseline;
  if (const std::string* base = arguments.find("base")) {
    KILN_TRY(double number, number_of(context.session, *base, "base="));
    // The negated form refuses NaN too.
    if (!(number >= 1 && number <= static_cast<double>(set.contenders.size())))
      return error(ErrorKind::kValue, "base= counts from 1 to {}, got {}", set.contenders.size(), *base);
    options.baseline = static_cast<size_t>(number) - 1;
  }
  std::vector<std::string> names;
  // Before the contenders move into the contest.
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

}  // namespace

Result<SweepPoints> SweepPoints::make(MagicContext& context, MagicArguments arguments) {
  KILN_TRY(std::vector<SweepAxis> axes, axes_of(context, arguments));
  return SweepPoints(context, std::move(arguments), std::move(axes));
}

SweepPoints::~SweepPoints() {
  // Also after an interrupt: a sweep leaves the variables as it found them.
  for (SweepAxis& a : axes_) context_.session.set_variable(a.name, a.before);
}

size_t SweepPoints::size() const {
  size_t total = 1;
  for (const SweepAxis& a : axes_) total *= a.values.size();
  return total;
}

std::vector<size_t> SweepPoints::index(size_t number) const {
  std::vector<size_t> index(axes_.size());
  // The last axis changes fastest, as in nested loops.
  for (size_t a = axes_.size(); a-- > 0; number /= axes_[a].values.size()) index[a] = number % axes_[a].values.size();
  return index;
}

std::vector<std::string> SweepPoints::texts(size_t number) const {
  const std::vector<size_t> at = index(number);
  std::vector<std::string> texts;
  for (size_t a = 0; a < axes_.size(); ++a) texts.push_back(axes_[a].texts[at[a]]);
  return texts;
}

Result<double> SweepPoints::seconds_per_point() const {
  const std::string* budget = arguments_.find("budget");
  if (!budget) return kSecondsPerPoint;
  return seconds_of(*budget);
}

Result<std::vector<SweepCell>> SweepPoints::measure(size_t number, const std::function<void()>& tick) {
  const std::vector<size_t> at = index(number);
  for (size_t a = 0; a < axes_.size(); ++a) context_.session.set_variable(axes_[a].name, axes_[a].values[at[a]]);
  auto cells = measure_point(context_, arguments_, interrupted_, tick);
  // What took the interrupt may have gone on with less.
  if (cells.ok() && interrupted_()) return error(ErrorKind::kInterrupted, "interrupted");
  return cells;
}

}  // namespace kiln::repl
