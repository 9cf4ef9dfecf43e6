#include "repl/views/counters_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "support/diag.h"

namespace kiln::repl {

namespace cupti = profiler::cupti;
using report::Align;
using report::Cell;
using report::Table;

namespace {

constexpr size_t kMostColumns = 12;  // more metrics than this stand below each other

Cell value_cell(const cupti::Metric* m, double value) {
  if (std::isnan(value)) return Cell::unknown("the chip gave no value");
  if (m) return Cell::of(value * m->scale, m->digits);
  // A metric asked for by its own name has no unit that is known: whole numbers without a point.
  return Cell::of(value, value != std::floor(value) ? 3 : 0);
}

// A row: a launch, or all launches of a kernel.
struct Row {
  std::string kernel;
  int launches = 1;
  std::vector<double> values;
};

std::vector<Row> rows_of(const cupti::Collected& c, const CountersShown& r) {
  std::vector<Row> rows;
  for (const profiler::KernelCounters& k : c.launches) {
    if (k.kernel.find(r.kernel) == std::string::npos) continue;
    if (r.each) {
      rows.push_back({k.kernel, 1, k.values});
      continue;
      // The first launch names the row; medians are over all launches of that name.
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

Table wide_table(const CountersAsked& a, const std::vector<Row>& rows, bool each) {
  std::vector<report::Column> columns = {{"kernel", "", Align::kLeft}};
  columns.push_back(each ? report::Column{"launch", ""} : report::Column{"launches", ""});
  for (size_t i = 0; i < a.names.size(); ++i) columns.push_back({a.title(i), a.unit(i), Align::kRight, a.names[i]});
  Table table(std::move(columns));
  int64_t number = 0;
  for (const Row& row : rows) {
    std::vector<Cell> cells = {row.kernel, Cell::of(each ? ++number : int64_t{row.launches})};
    for (size_t i = 0; i < a.names.size(); ++i) cells.push_back(value_cell(a.known[i], row.values[i]));
    table.add_row(std::move(cells));
  }
  return table;
}

Table tall_table(const CountersAsked& a, const std::vector<Row>& rows, bool each) {
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
    std::vector<Cell> cells = {a.title(i), a.unit(i)};
    for (const Row& row : rows) cells.push_back(value_cell(a.known[i], row.values[i]));
    cells.emplace_back(a.known[i] ? std::string(a.known[i]->meaning) : "");
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace

Result<CountersAsked> counters_asked(const std::string& chip, const std::vector<std::string>& bundles,
                                     const std::vector<std::string>& metrics) {
  CountersAsked a;
  auto add = [&](const std::string& name, const cupti::Metric* metric) {
    // Bundles overlap; a metric is counted once.
    if (std::find(a.names.begin(), a.names.end(), name) != a.names.end()) return;
    a.names.push_back(name);
    a.known.push_back(metric);
  };
  auto add_bundle = [&](const std::string& name) -> Status {
    KILN_TRY(std::vector<const cupti::Metric*> members, cupti::bundle(name));
    KILN_TRY(cupti::Resolved resolved, cupti::resolve(chip, members));
    for (size_t i = 0; i < resolved.names.size(); ++i) add(resolved.names[i], resolved.metrics[i]);
    for (const cupti::Metric* m : resolved.missing)
      if (std::find(a.missing.begin(), a.missing.end(), m) == a.missing.end()) a.missing.push_back(m);
    return {};
  };
  if (bundles.empty() && metrics.empty()) KILN_CHECK_OK(add_bundle("default"));
  for (const std::string& name : bundles) KILN_CHECK_OK(add_bundle(name));
  // Names as they are given: whether the chip has them, CUPTI says.
  for (const std::string& name : metrics) add(name, nullptr);
  return a;
}

Table counters_table(const CountersAsked& asked, const cupti::Collected& collected, std::string_view device,
                     const CountersShown& shown) {
  const std::vector<Row> rows = rows_of(collected, shown);
  Table table =
      asked.names.size() > kMostColumns ? tall_table(asked, rows, shown.each) : wide_table(asked, rows, shown.each);
  if (rows.empty())
    table.add_note(collected.launches.empty() ? "the statement launched no kernel"
                                              : "no kernel's name contains " + shown.kernel);
  if (collected.dropped > 0)
    table.add_note(fmt::format("{} more launches were not counted: the limit is {}", collected.dropped,
                               collected.launches.size()));
  if (!shown.each && rows.size() < collected.launches.size() && shown.kernel.empty())
    table.add_note("medians over the launches of a kernel");
  table.add_note(
      fmt::format("{}, counted in {} by kernel replay: kernels run one at a time, so times and caches are "
                  "not those of the statement at full speed (%bench)",
                  device, counted_text(static_cast<size_t>(collected.passes), "pass")));
  return table;
}

// What stood in the way of counting: the kernels and times that are known without it stay.
Table uncounted_table(const CountersAsked& a, const std::vector<std::string>& launched, const Diagnostic& why) {
  std::vector<report::Column> columns = {{"kernel", "", Align::kLeft}, {"launches", ""}};
  for (size_t i = 0; i < a.names.size(); ++i) columns.push_back({a.title(i), a.unit(i), Align::kRight, a.names[i]});
  Table table(std::move(columns));
  std::vector<std::string> kernels;
  for (const std::string& name : launched)
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) kernels.push_back(name);
  // Even without names the columns tell what was asked for.
  if (kernels.empty() && !a.names.empty()) kernels.push_back("(names unknown)");
  for (const std::string& name : kernels) {
    std::vector<Cell> cells = {
        name, launched.empty() ? Cell::none() : Cell::of(std::count(launched.begin(), launched.end(), name))};
    for (size_t i = 0; i < a.names.size(); ++i) cells.push_back(Cell::none());
    table.add_row(std::move(cells));
  }
  std::vector<std::string> titles;
  for (size_t i = 0; i < a.names.size(); ++i) titles.push_back(a.title(i));
  table.add_note(fmt::format("not counted: {}{}{}", fmt::join(titles, ", "), titles.empty() ? "" : ": ", why.message));
  return table;
}

std::string counted_text(size_t n, std::string_view one) {
  const bool hissing = one.ends_with("ss") || one.ends_with("ch");
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : hissing ? "es" : "s");
}

}  // namespace kiln::repl
