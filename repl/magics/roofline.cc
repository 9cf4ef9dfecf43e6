// %roofline: expressions and launches under the device's measured ceilings.
#include <fmt/format.h>

#include "profiler/cupti/range_profiler.h"
#include "profiler/measure/measure.h"
#include "profiler/roofline/roofline.h"
#include "repl/editor/terminal.h"
#include "repl/magics/expr_contenders.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/progress.h"
#include "repl/magics/settings.h"
#include "repl/views/profile_roofline.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

namespace cupti = profiler::cupti;
using profiler::RooflineChart;
using profiler::RoofPoint;
using profiler::Source;

Result<profiler::Contender> contender_of(script::Session& session, const std::string& text, const Declared& declared) {
  KILN_TRY(std::optional<profiler::Contender> fused, fused_contender(session, text));
  if (!fused) return statement_contender(session, text, declared);
  profiler::Facts& facts = fused->facts;
  if (declared.bytes >= 0) facts.bytes = declared.bytes;
  if (declared.flop >= 0) facts.flop = declared.flop;
  if (declared.product) facts.product = declared.product;
  return *std::move(fused);
}

// What one operation counts for, of the metrics of the tables.
struct Counted {
  cupti::MetricId id;
  double flop;
};
constexpr Counted kOperations[] = {
    {cupti::MetricId::kFfma, 2},       {cupti::MetricId::kFadd, 1},      {cupti::MetricId::kFmul, 1},
    {cupti::MetricId::kTensorBf16, 1}, {cupti::MetricId::kTensorF16, 1}, {cupti::MetricId::kTensorTf32, 1},
    {cupti::MetricId::kTensorFp8, 1},
};

// Bytes of DRAM and floating-point operations of one run, summed over its kernels.
Status count(const profiler::Contender& c, RoofPoint& point) {
  KILN_TRY(std::string chip, cupti::chip_of(c.device));
  std::vector<const cupti::Metric*> wanted = {&cupti::metric(cupti::MetricId::kDramRead),
                                              &cupti::metric(cupti::MetricId::kDramWrite)};
  for (const Counted& o : kOperations) wanted.push_back(&cupti::metric(o.id));
  KILN_TRY(cupti::Resolved resolved, cupti::resolve(chip, wanted));
  KILN_TRY(cupti::Collected counted, cupti::collect(c.device, resolved.names, {}, c.launch));
  if (counted.dropped > 0)
    return error(ErrorKind::kUnsupported, "it launches more than {} kernels", counted.launches.size());
  double bytes = 0, flop = 0;
  for (const profiler::KernelCounters& k : counted.launches)
    for (size_t i = 0; i < k.values.size(); ++i) {
      const cupti::MetricId id = resolved.metrics[i]->id;
      if (id == cupti::MetricId::kDramRead || id == cupti::MetricId::kDramWrite) bytes += k.values[i];
      for (const Counted& o : kOperations)
        if (o.id == id) flop += o.flop * k.values[i];
    }
  point.bytes = bytes, point.flop = flop;
  point.bytes_from = point.flop_from = Source::kCounted;
  return {};
}

}  // namespace

Status magic_roofline(MagicContext& context, std::string_view text) {
  const editor::QuietKeys quiet;  // keys that are typed ahead would stand in the progress
  KILN_TRY(MagicArguments arguments, parse_magic_arguments(text, magic_options("roofline")));
  add_budget(context, arguments);
  if (arguments.expressions.empty()) return error(ErrorKind::kValue, "%roofline needs an expression or a launch");
  KILN_TRY(Declared declared, declared_by(context.session, arguments));
  profiler::MeasureOptions measuring;
  measuring.timeout_s = 3;
  if (const std::string* budget = arguments.find("budget")) {
    KILN_TRY(measuring.timeout_s, seconds_of(*budget));
  }
  const std::string cache = arguments.text("cache", "cold");
  if (cache != "cold" && cache != "hot") return error(ErrorKind::kValue, "cache= is cold or hot, not '{}'", cache);
  measuring.cache = cache == "hot" ? profiler::Cache::kHot : profiler::Cache::kCold;

  KILN_TRY(Device device, context.session.device());
  const auto interrupted = context.session.interrupt_watch();
  measuring.stop = interrupted;
  std::vector<RoofPoint> points;
  std::vector<std::string> notes;
  bool stopped = false;
  const std::vector<std::string> names = short_names(arguments.expressions);
  Progress progress(context.session);
  for (size_t i = 0; i < names.size(); ++i) {
    progress.show(names[i]);
    auto contender = contender_of(context.session, arguments.expressions[i], declared);
    if (interrupted()) {
      stopped = true;
      break;
    }
    KILN_TRY(const profiler::Contender c, std::move(contender));
    RoofPoint& point = points.emplace_back();
    point.name = names[i];
    if (!c.problem.ok()) {
      point.problem = c.problem.error().message;
      continue;
    }
    if (!(c.device == device)) {
      point.problem = fmt::format("it runs on {}, and the ceilings are of {}", c.device.name(), device.name());
      continue;
    }
    point.bytes = c.facts.bytes, point.flop = c.facts.flop, point.product = c.facts.product;
    measuring.progress = progress.of_samples(names[i], measuring.timeout_s * static_cast<double>(names.size() - 1 - i));
    const auto m = profiler::measure({c.name, c.device, c.launch}, measuring);
    if (m.ok() ? interrupted() : m.error().kind == ErrorKind::kInterrupted) {
      stopped = true;
      if (m.ok()) {
        point.us = m->us.median;
        notes.push_back(fmt::format("{}: interrupted after {} sample{}", point.name, m->us.n, m->us.n == 1 ? "" : "s"));
      } else {
        points.pop_back();
      }
      break;
    }
    if (!m.ok() && names.size() == 1) return m.error();
    if (!m.ok()) {
      point.problem = m.error().message;
      continue;
    }
    point.us = m->us.median;
    if (arguments.has("--measured")) {
      Status counted = device.is_cuda() ? count(c, point)
                                        : Status(error(ErrorKind::kUnsupported, "{} has no counters", device.name()));
      if (!counted.ok())
        notes.push_back(fmt::format("{}: bytes and FLOP are the model's, they could not be counted: {}", point.name,
                                    counted.error().message));
    }
  }
  if (stopped) {
    if (points.empty()) return error(ErrorKind::kInterrupted, "interrupted");
    if (points.size() < names.size())
      notes.push_back(fmt::format("interrupted: {} of {} points", points.size(), names.size()));
    // A script may have taken it, and ceilings that are not known take seconds.
    context.session.interrupt();
  }
  const bool any = std::any_of(points.begin(), points.end(), [](const RoofPoint& p) { return p.problem.empty(); });
  if (!any)  // ceilings take seconds
    return error(ErrorKind::kValue, "{}: {}", points.front().name, points.front().problem);
  RooflineChart chart = chart_of(device, std::move(points), cache, [&](std::string_view what) { progress.show(what); });
  progress.clear();
  context.session.forget_interrupt();  // what is done is printed
  chart.notes.insert(chart.notes.end(), notes.begin(), notes.end());
  context.print(profiler::roofline_table(chart));
  const report::Plot plot = profiler::roofline_plot(chart);
  if (context.format == report::Format::kText)
    context.output(report::to_terminal(plot, context.color ? report::PlotStyle::kColor : report::PlotStyle::kPlain,
                                       context.style().width));
  if (const std::string* file = arguments.find("--svg")) {
    if (plot.lines.empty())
      return error(ErrorKind::kValue, "nothing to draw: no point has both bytes and FLOP (bytes=N flop=N)");
    KILN_CHECK_OK(write_file_atomic(*file, report::to_svg(plot)));
  }
  return {};
}

}  // namespace kiln::repl
