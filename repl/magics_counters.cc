// %counters: what the hardware counted while a statement ran.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "profiler/cupti/range_profiler.h"
#include "profiler/measure.h"
#include "repl/kernel_target.h"
#include "repl/magics.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

namespace cupti = profiler::cupti;
using profiler::KernelCounters;
using report::Align;
using report::Cell;
using report::Table;

constexpr size_t kMostColumns = 12;  // more metrics than this stand below each other

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

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == ',' || s.back() == '\t')) s.remove_suffix(1);
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  return s;
}

// Options and metrics follow the statement, so they are taken from the end.
Request parse_request(std::string_view text) {
  Request r;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
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
    // Another profiler stands in the way of asking, and that is told when counters are; its target says enough.
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

// What is asked of the chip: of each metric its name there, and ours when it is one of the table.
struct Asked {
  std::vector<std::string> names;
  std::vector<const cupti::Metric*> known;  // nullptr: named by the user
  std::vector<const cupti::Metric*> missing;
};

Result<Asked> asked_of(const std::string& chip, const Request& r) {
  Asked a;
  std::vector<std::string> bundles = r.bundles;
  if (bundles.empty() && r.metrics.empty()) bundles.push_back("default");
  for (const std::string& name : bundles) {
    KILN_TRY(std::vector<const cupti::Metric*> members, cupti::bundle(name));
    KILN_TRY(cupti::Resolved resolved, cupti::resolve(chip, members));
    for (size_t i = 0; i < resolved.names.size(); ++i) {
      if (std::find(a.names.begin(), a.names.end(), resolved.names[i]) != a.names.end()) continue;
      a.names.push_back(resolved.names[i]);
      a.known.push_back(resolved.metrics[i]);
    }
    a.missing.insert(a.missing.end(), resolved.missing.begin(), resolved.missing.end());
  }
  for (const std::string& name : r.metrics) {
    if (std::find(a.names.begin(), a.names.end(), name) != a.names.end()) continue;
    a.names.push_back(name);
    a.known.push_back(nullptr);
  }
  return a;
}

std::string count(size_t n, std::string_view one) {
  const bool hissing = one.ends_with("ss") || one.ends_with("ch");
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : hissing ? "es" : "s");
}

Cell value_cell(const cupti::Metric* m, double value) {
  if (std::isnan(value)) return Cell::unknown("the chip gave no value");
  if (m) return Cell::of(value * m->scale, m->digits);
  return Cell::of(value, value != std::floor(value) ? 3 : 0);
}

// A row: a launch, or all launches of a kernel.
struct Row {
  std::string kernel;
  int launches = 1;
  std::vector<double> values;
};

std::vector<Row> rows_of(const cupti::Collected& c, const Request& r) {
  std::vector<Row> rows;
  for (const KernelCounters& k : c.launches) {
    if (k.kernel.find(r.kernel) == std::string::npos) continue;
    if (r.each) {
      rows.push_back({k.kernel, 1, k.values});
      continue;
    }
    auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.kernel == k.kernel; });
    if (found != rows.end()) {
      ++found->launches;
      continue;
    }
    Row& row = rows.emplace_back(Row{k.kernel, 1, {}});
    for (size_t i = 0; i < k.values.size(); ++i)
      row.values.push_back(cupti::median_of(c.launches, k.kernel, i).value_or(NAN));
  }
  return rows;
}

std::string title(const Asked& a, size_t i) { return a.known[i] ? std::string(a.known[i]->title) : a.names[i]; }
std::string unit(const Asked& a, size_t i) { return a.known[i] ? std::string(a.known[i]->unit) : ""; }

Table wide_table(const Asked& a, const std::vector<Row>& rows, bool each) {
  std::vector<report::Column> columns = {{"kernel", "", Align::kLeft}};
  columns.push_back(each ? report::Column{"launch", ""} : report::Column{"launches", ""});
  for (size_t i = 0; i < a.names.size(); ++i) columns.push_back({title(a, i), unit(a, i), Align::kRight, a.names[i]});
  Table table(std::move(columns));
  int64_t number = 0;
  for (const Row& row : rows) {
    std::vector<Cell> cells = {row.kernel, Cell::of(each ? ++number : int64_t{row.launches})};
    for (size_t i = 0; i < a.names.size(); ++i) cells.push_back(value_cell(a.known[i], row.values[i]));
    table.add_row(std::move(cells));
  }
  return table;
}

Table tall_table(const Asked& a, const std::vector<Row>& rows, bool each) {
  std::vector<report::Column> columns = {{"", "", Align::kLeft, "what"}, {"unit", "", Align::kLeft}};
  int number = 0;
  for (const Row& row : rows)
    columns.push_back({each               ? fmt::format("{} #{}", row.kernel, ++number)
                       : row.launches > 1 ? fmt::format("{} ×{}", row.kernel, row.launches)
                                          : row.kernel,
                       ""});
  columns.push_back({"meaning", "", Align::kLeft});
  Table table(std::move(columns));
  for (size_t i = 0; i < a.names.size(); ++i) {
    std::vector<Cell> cells = {title(a, i), unit(a, i)};
    for (const Row& row : rows) cells.push_back(value_cell(a.known[i], row.values[i]));
    cells.emplace_back(a.known[i] ? std::string(a.known[i]->meaning) : "");
    table.add_row(std::move(cells));
  }
  return table;
}

// What stood in the way of counting: the kernels and times that are known without it stay.
Table uncounted_table(const Asked& a, const std::vector<std::string>& launched, double wall_s, const Diagnostic& why) {
  std::vector<report::Column> columns = {{"kernel", "", Align::kLeft}, {"launches", ""}};
  for (size_t i = 0; i < a.names.size(); ++i) columns.push_back({title(a, i), unit(a, i), Align::kRight, a.names[i]});
  Table table(std::move(columns));
  std::vector<std::string> kernels;
  for (const std::string& name : launched)
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) kernels.push_back(name);
  if (kernels.empty()) kernels.push_back("(names unknown)");
  for (const std::string& name : kernels) {
    std::vector<Cell> cells = {
        name, launched.empty() ? Cell("–") : Cell::of(std::count(launched.begin(), launched.end(), name))};
    for (size_t i = 0; i < a.names.size(); ++i) cells.emplace_back("–");
    table.add_row(std::move(cells));
  }
  std::vector<std::string> titles;
  for (size_t i = 0; i < a.names.size(); ++i) titles.push_back(title(a, i));
  table.add_note(fmt::format("not counted: {}: {}", fmt::join(titles, ", "), why.message));
  table.add_note(fmt::format("the statement took {} on the wall clock; %bench times it without counters",
                             report::human_time(wall_s * 1e6)));
  return table;
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
  if (text == "--list" || text.starts_with("--list ")) return list(context, trimmed(text.substr(6)));
  const Request request = parse_request(text);
  if (request.statement.empty()) return error(ErrorKind::kValue, "%counters needs a statement to run, or --list");
  KILN_TRY(Chip chip, chip_for(context));
  KILN_TRY(Asked asked, asked_of(chip.name, request));
  KILN_TRY(cupti::CounterPreview cost, cupti::preview(chip.name, asked.names));
  context.output(fmt::format("# {} of {} ({}): {}, {}\n", count(asked.names.size(), "metric"), chip.name, chip.why,
                             count(static_cast<size_t>(cost.passes), "pass"),
                             cost.passes > 1 ? "each launch is run that often, with its memory put back (kernel replay)"
                                             : "each launch is run once"));
  if (!asked.missing.empty()) {
    std::vector<std::string> titles;
    for (const cupti::Metric* m : asked.missing) titles.emplace_back(m->title);
    context.output(fmt::format("# {} has no counter for: {}\n", chip.name, fmt::join(titles, ", ")));
  }
  KILN_TRY(Device device, context.session.device());
  if (!chip.is_here) {
    context.output(fmt::format("# nothing was run: {}; this is what that GPU would be asked\n", chip.nothing));
    Table table({{"column", "", Align::kLeft},
                 {"unit", "", Align::kLeft},
                 {"metric", "", Align::kLeft},
                 {"meaning", "", Align::kLeft}});
    for (size_t i = 0; i < asked.names.size(); ++i)
      table.add_row({title(asked, i), unit(asked, i), asked.names[i],
                     asked.known[i] ? std::string(asked.known[i]->meaning) : ""});
    context.print(table);
    return {};
  }
  KILN_TRY(auto run, statement_runner(context.session, request.statement, "<%counters>"));

  // Once without counters: it compiles, says what is launched, and how long it takes.
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
  context.output(fmt::format("# {}: about {}\n", count(launched.size(), "launch"), report::human_time(seconds * 1e6)));

  cupti::CollectOptions options;
  options.max_launches = std::max(options.max_launches, static_cast<int>(2 * launched.size()));
  auto collected = cupti::collect(device, asked.names, options, run);
  if (!collected.ok()) {
    if (collected.error().kind != ErrorKind::kDevice) return std::move(collected.error());
    context.print(uncounted_table(asked, launched, wall_s, collected.error()));
    return {};
  }
  const std::vector<Row> rows = rows_of(*collected, request);
  Table table =
      asked.names.size() > kMostColumns ? tall_table(asked, rows, request.each) : wide_table(asked, rows, request.each);
  if (rows.empty())
    table.add_note(collected->launches.empty() ? "the statement launched no kernel"
                                               : "no kernel's name contains " + request.kernel);
  if (collected->dropped > 0)
    table.add_note(fmt::format("{} launches more were not counted: there was room for {}", collected->dropped,
                               options.max_launches));
  if (!request.each && rows.size() < collected->launches.size() && request.kernel.empty())
    table.add_note("medians over the launches of a kernel; -v shows each");
  table.add_note(
      fmt::format("{}, counted in {} by kernel replay: kernels run one at a time, so times and caches are "
                  "not those of the statement at full speed (%bench)",
                  device.name(), count(static_cast<size_t>(collected->passes), "pass")));
  context.print(table);
  return {};
}

}  // namespace kiln::repl
