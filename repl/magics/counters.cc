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
#include "repl/views/counters_view.h"
#include "support/diag.h"

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

std::string_view without_comma(std::string_view s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == ',' || s.back() == '\t')) s.remove_suffix(1);
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  return s;
}

// Options and metrics follow the statement, so they are taken from the end.
Request parse_request(std::string_view text) {
  Request r;
  for (text = without_comma(text); !text.empty(); text = without_comma(text)) {
    const size_t blank = text.find_last_of(" \t,");
    const size_t from = blank == std::string_view::npos ? 0 : blank + 1;
    const std::string_view word = text.substr(from);
    if (word == "-v") {
      r.each = true;
    } else if (word.starts_with("bundle=")) {
      r.bundles.insert(r.bundles.begin(), std::string(word.substr(7)));
    } else if (word.starts_with("kernel=")) {
      r.kernel = word.substr(7);
    } else if (is_metric(word)) {
      r.metrics.insert(r.metrics.begin(), std::string(word));
    } else {
      break;
    }
    text = text.substr(0, from);
  }
  r.statement = text;
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

}  // namespace

Status magic_counters(MagicContext& context, std::string_view text) {
  if (text == "--list" || text.starts_with("--list ")) return list(context, without_comma(text.substr(6)));
  const Request request = parse_request(text);
  if (request.statement.empty()) return error(ErrorKind::kValue, "%counters needs a statement to run, or --list");
  KILN_TRY(Chip chip, chip_for(context));
  KILN_TRY(CountersAsked asked, counters_asked(chip.name, request.bundles, request.metrics));
  KILN_TRY(cupti::CounterPreview cost, cupti::preview(chip.name, asked.names));
  context.output(fmt::format("# {} of {} ({}): {}, {}\n", counted_text(asked.names.size(), "metric"), chip.name,
                             chip.why, counted_text(static_cast<size_t>(cost.passes), "pass"),
                             cost.passes > 1 ? "each launch is run that often, with its memory put back (kernel replay)"
                                             : "each launch is run once"));
  if (!asked.missing.empty()) {
    std::vector<std::string> titles;
    for (const cupti::Metric* m : asked.missing) titles.emplace_back(m->title);
    context.output(fmt::format("# {} has no counter for: {}\n", chip.name, fmt::join(titles, ", ")));
  }
  KILN_TRY(Device device, context.session.device());
  if (!chip.is_here) {
    context.output(fmt::format("# nothing was run: {}; these are the metrics for that GPU\n", chip.nothing));
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
  context.output(
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

}  // namespace kiln::repl
