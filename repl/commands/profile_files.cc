#include "repl/commands/profile_files.h"

#include <fmt/chrono.h>

#include <ctime>

#include "profiler/profile/chrome_trace.h"
#include "repl/views/profile_roofline.h"
#include "support/files.h"

namespace kiln::repl {

using profiler::NamedTable;

namespace {

std::vector<NamedTable> with_findings(const ProfileResult& r) {
  std::vector<NamedTable> all = r.tables;
  all.push_back({"findings", profiler::findings_table(r.findings)});
  return all;
}

}  // namespace

Status ProfileFiles::check() const {
  // Before the program runs: an hour of profiling must not end with a file that cannot be written.
  if (!csv.empty()) KILN_CHECK_OK(make_directories(csv));
  for (const std::string& file : {html, trace, json, csv.empty() ? "" : csv + "/totals.csv"})
    if (!file.empty()) KILN_CHECK_OK(check_writable(file));
  return {};
}

profiler::HtmlReport page_of(const ProfileResult& r) {
  profiler::HtmlReport page;
  page.title = r.title;
  page.date = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr)));
  page.findings = r.findings;
  page.plots = r.plots;
  for (const NamedTable& t : r.tables) {
    page.tables.push_back(t.table);
    std::string name = t.name;
    // Names of tables in JSON are words; a page has titles.
    for (char& c : name)
      if (c == '_') c = ' ';
    if (t.table.title().empty()) page.tables.back().set_title(name);
  }
  return page;
}

void add_roofline(const Device& device, const profiler::OpsOptions& options, ProfileResult& result) {
  std::vector<profiler::RoofPoint> points = declared_points(device, result.timeline, options);
  if (points.empty()) return;
  const profiler::RooflineChart chart = chart_of(device, std::move(points), "as the program left them");
  report::Table table = profiler::roofline_table(chart);
  table.set_title("roofline");
  table.add_note("of one call: the time is that of the kernels in it, as profiled");
  result.tables.push_back({"roofline", std::move(table)});
  const report::Plot plot = profiler::roofline_plot(chart);
  if (!plot.lines.empty())
    result.plots.push_back({fmt::format("Roofline of {}, ceilings measured here", chart.device), report::to_svg(plot)});
}

Status write_files(const ProfileFiles& files, const ProfileResult& r) {
  Status first;
  // The first failure is told, and the other files are written still.
  auto keep = [&](Status written) {
    if (first.ok() && !written.ok()) first = std::move(written);
  };
  if (!files.html.empty()) keep(profiler::write_html_report(r.timeline, page_of(r), files.html));
  if (!files.trace.empty()) keep(profiler::write_chrome_trace(r.timeline, files.trace));
  if (!files.json.empty()) keep(write_file_atomic(files.json, profiler::tables_json(r.timeline, with_findings(r))));
  if (!files.csv.empty())
    for (const NamedTable& t : with_findings(r))
      keep(write_file_atomic(files.csv + "/" + t.name + ".csv", report::to_csv(t.table)));
  return first;
}

}  // namespace kiln::repl
