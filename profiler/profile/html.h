// A profile as one page of HTML that needs nothing else: timeline, tables, plots and findings, to be opened from a disk
// or sent by mail. The page's own texts are page/report.{html,css,js}.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "kiln/result.h"
#include "profiler/profile/advisor.h"
#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

struct HtmlPlot {
  std::string title;
  std::string svg;  // a whole SVG document, embedded unchanged
};

struct HtmlReport {
  std::string title;  // the statement, or the script
  std::string date;   // "2026-11-21 21:30"
  std::vector<Finding> findings;
  std::vector<report::Table> tables;  // in the page's order, headed by their titles
  std::vector<HtmlPlot> plots;
};

/// Stays usable with 100,000 slices: slices narrower than a pixel are drawn as one. About 40 bytes per slice.
std::string html_report(const Timeline& timeline, const HtmlReport& report);

/// The file is there whole or not at all. kIo.
Status write_html_report(const Timeline& timeline, const HtmlReport& report, const std::string& path);

}  // namespace kiln::profiler
