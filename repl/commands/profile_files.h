// What a profile leaves: the files of `kiln profile`, %trace and %report.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/profile/advisor.h"
#include "profiler/profile/html.h"
#include "profiler/profile/tables.h"
#include "profiler/profile/timeline.h"

namespace kiln::repl {

/// The files of a profile; empty names are not written.
struct ProfileFiles {
  std::string html, trace, json;
  std::string csv;  // a folder, made when missing: a file for each table

  /// Before anything runs: kIo for the first that could not be written.
  Status check() const;
};

/// Everything that is said about a profile.
struct ProfileResult {
  std::string title;  // the statement, or the script
  const profiler::Timeline& timeline;
  std::vector<profiler::NamedTable> tables;  // "findings" is not among them
  std::vector<profiler::Finding> findings;
  std::vector<profiler::HtmlPlot> plots = {};
};

/// Adds the roofline to a result whose ranges or runs declared FLOP and bytes: a table, and a plot when a point has
/// both. Measures the device's ceilings, once per process; a failure is the table's note.
void add_roofline(const Device& device, const profiler::OpsOptions& options, ProfileResult& result);

/// The page, with today's date and time.
profiler::HtmlReport page_of(const ProfileResult& result);

/// kIo for the first that could not be written; the others are.
Status write_files(const ProfileFiles& files, const ProfileResult& result);

}  // namespace kiln::repl
