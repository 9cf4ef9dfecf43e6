// %counters: hardware counters of a statement.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "profiler/cupti/range_profiler.h"
#include "profiler/measure/measure.h"
#include "profiler/measure/timer.h"
#include "repl/magics/kernel_target.h"
#include "repl/magics/magics.h"
#include "repl/magics/statement_arguments.h"
#include "repl/views/counters_view.h"
#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

namespace cupti = profiler::cupti;
using report::Align;
using report::Table;

struct Request {
  std::string statement;
  std::vector<std::string> bundles, metrics;  // as given
  std::string kernel;                         // only kernels whose name contains it
  bool each = false;                          // every launch for itself
};

// "dram__bytes_read.sum": a unit, two underscores, a name.
bool is_metric(std::string_view word) {
  const size_t at = word.find("__");
  auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return at != std::string_view::npos && at > 0 && std::all_of(word.begin(), word.end(), is_part) &&
         std::all_of(word.begin(), word.begin() + static_cast<ptrdiff_t>(at),
                     [](char c) { return std::islower(static_cast<unsigned char>(c)) || std::isdigit(c); });
}

/// Metrics, also with commas between or behind them.
bool are_metrics(std::string_view word) {
  const std::vector<std::string_view> names = parts_of(word, Between::kCommas).words();
  return !names.empty() && std::ranges::all_of(names, is_metric);
}

Request request_of(const MagicArguments& arguments) {
  Request r;
  r.each = arguments.has("-v");
  r.kernel = arguments.text("kernel");
  for (const auto& [name, value] : arguments.values)
    if (name == "bundle") r.bundles.push_back(value);
  for (const std::string& word : arguments.operands)
    for (std::string_view metric : parts_of(word, Between::kCommas).words()) r.metrics.emplace_back(metric);
  if (arguments.expressions.empty()) return r;
  std::string_view statement = arguments.expressions[0];
  while (statement.ends_with(',')) statement = trimmed(statement.substr(0, statement.size() - 1));
  r.statement = statement;
  return r;
}

// The chip that is asked about, and whether it is the one at hand.
struct Chip {
  std::string name;
  bool is_here = false;
  std::string why;      // where the name comes from
  std::string nothing;  // why nothing is run; empty when it is the one at hand
};

Result<Chip> chip_for(MagicContext& context) {
  KILN_TRY(Device device, context.session.device());
  const DeviceInfo info = device.info();
  std::string here;
  if (device.is_cuda()) {
    // Another profiler prevents the query; reading the counters will report that. The target identifies the chip.
    auto asked = cupti::chip_of(device);
    if (!asked.ok()) asked = cupti::chip_of_target(info.target);
    if (!asked.ok()) return std::move(asked.error());
    here = *asked;
  }
  Chip chip;
  if (device.is_cuda() && context.target.empty()) {
    chip.name = here;
    chip.why = info.name;
  } else {
    const std::string target = context.target.empty() || context.target == "host" ? kDefaultGpuTarget : context.target;
    KILN_TRY(chip.name, cupti::chip_of_target(target));
    chip.why = target + (context.target == target ? ", by %target" : "; %target chooses another");
  }
  chip.is_here = chip.name == here;
  if (!device.is_cuda())
    chip.nothing = device.name() + " has no hardware counters";
  else if (!chip.is_here)
    chip.nothing = fmt::format("{} is a {}", device.name(), here);
  return chip;
}

/// Without a GPU nothing would be counted either way: what is said of CUPTI is the smaller thing that is missing.
Diagnostic without_counters(MagicContext& context, Diagnostic missing) {
  const Result<Device> device = context.session.device();
  if (missing.kind != ErrorKind::kDevice || !device.ok() || device->is_cuda()) return missing;
  Diagnostic d = with_note(
      error(ErrorKind::kDevice, "{} has no hardware counters: %counters counts on a GPU of NVIDIA's", device->name()),
      "the metrics of such a GPU cannot be listed here: " + missing.message);
  std::ranges::move(missing.notes, std::back_inserter(d.notes));
  return d;
}

Status list(MagicContext& context, std::string_view filter) {
  KILN_TRY(Chip chip, chip_for(context));
  KILN_TRY(std::vector<cupti::MetricDescription> found, cupti::list_metrics(chip.name, filter));
  Table table({{"metric", "", Align::kLeft}, {"kind", "", Align::kLeft}, {"description", "", Align::kLeft}});
  for (const auto& m : found) table.add_row({m.name, m.kind, m.description});
  table.add_note(fmt::format("{} base metrics of {} ({}){}", found.size(), chip.name, chip.why,
                             filter.empty() ? "; %counters --list FILTER shows those with that text" : ""));
  table.add_note(
      "a counter is followed by .sum, .avg, .min or .max and perhaps .per_second, "
      ".per_cycle_active or .pct_of_peak_sustained_active; a ratio by .ratio or .pct; a throughput by "
      ".avg.pct_of_peak_sustained_elapsed");
  std::string bundles;
  for (const cupti::Bundle& b : cupti::bundles())
    bundles += fmt::format("{}{} ({})", bundles.empty() ? "" : "; ", b.name, b.help);
  table.add_note("bundles: " + bundles);
  context.print(table);
  return {};
}

Status count(MagicContext& context, const MagicArguments& arguments) {
  if (arguments.has("--list")) {
    const std::vector<std::string>& words = arguments.expressions.empty() ? arguments.operands : arguments.expressions;
    return list(context, words.empty() ? "" : words[0]);
  }
  const Request request = request_of(arguments);
  if (request.statement.empty()) return error(ErrorKind::kValue, "%counters needs a statement to run, or --list");
  KILN_TRY(Chip chip, chip_for(context));
  KILN_TRY(CountersAsked asked, counters_asked(chip.name, request.bundles, request.metrics));
  KILN_TRY(cupti::CounterPreview cost, cupti::preview(chip.name, asked.names));
  context.say(fmt::format("# {} of {} ({}): {}, {}\n", counted_text(asked.names.size(), "metric"), chip.name, chip.why,
                          counted_text(static_cast<size_t>(cost.passes), "pass"),
                          cost.passes > 1 ? "each launch is run that often, with its memory put back (kernel replay)"
                                          : "each launch is run once"));
  if (!asked.missing.empty()) {
    std::vector<std::string> titles;
    for (const cupti::Metric* m : asked.missing) titles.emplace_back(m->title);
    context.say(fmt::format("# {} has no counter for: {}\n", chip.name, fmt::join(titles, ", ")));
  }
  KILN_TRY(Device device, context.session.device());
  if (!chip.is_here) {
    context.say(fmt::format("# nothing was run: {}; these are the metrics for that GPU\n", chip.nothing));
    Table table({{"column", "", Align::kLeft},
                 {"unit", "", Align::kLeft},
                 {"metric", "", Align::kLeft},
                 {"meaning", "", Align::kLeft}});
    for (size_t i = 0; i < asked.names.size(); ++i)
      table.add_row(
          {asked.title(i), asked.unit(i), asked.names[i], asked.known[i] ? std::string(asked.known[i]->meaning) : ""});
    context.print(table);
    return {};
  }
  KILN_TRY(auto run, statement_runner(context.session, request.statement, "<%counters>"));

  // Once without counters: this compiles, finds the launches, and measures the time.
  KILN_CHECK_OK(device.synchronize());
  auto watching = cupti::LaunchNames::start();
  const double begin = profiler::steady_seconds();
  KILN_CHECK_OK(run());
  KILN_CHECK_OK(device.synchronize());
  const double wall_s = profiler::steady_seconds() - begin;
  std::vector<std::string> launched;
  if (watching.ok()) launched = (*watching)->names();
  if (watching.ok()) watching->reset();
  constexpr double kSetup = 1.7, kPass = 0.015;  // seconds, about: once, and for each pass of a launch
  const auto passes = static_cast<double>(cost.passes);
  const double seconds = kSetup + passes * (wall_s + kPass * static_cast<double>(launched.size()));
  context.say(
      fmt::format("# {}: about {}\n", counted_text(launched.size(), "launch"), report::human_time(seconds * 1e6)));

  cupti::CollectOptions options;
  options.max_launches = std::max(options.max_launches, static_cast<int>(2 * launched.size()));
  auto collected = cupti::collect(device, asked.names, options, run);
  if (!collected.ok()) {
    if (collected.error().kind != ErrorKind::kDevice) return std::move(collected.error());
    Table table = uncounted_table(asked, launched, collected.error());
    table.add_note(fmt::format("the statement took {} on the wall clock; %bench times it without counters",
                               report::human_time(wall_s * 1e6)));
    context.print(table);
    return {};
  }
  context.print(counters_table(asked, *collected, device.name(), {request.kernel, request.each}));
  return {};
}

}  // namespace

Status magic_counters(MagicContext& context, std::string_view text) {
  KILN_TRY(MagicArguments arguments,
           parse_statement_arguments(text, magic_options("counters"), {are_metrics, /*needs_statement=*/false}));
  Status done = count(context, arguments);
  if (!done.ok()) return without_counters(context, std::move(done.error()));
  return done;
}

}  // namespace kiln::repl
