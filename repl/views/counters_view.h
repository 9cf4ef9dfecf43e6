// Hardware counters of %counters and %profile: the metrics requested from a chip, and tables of the results.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"
#include "profiler/cupti/range_profiler.h"
#include "profiler/report/table.h"

namespace kiln::repl {

/// Of each metric its name on the chip, and ours when it is one of the table.
struct CountersAsked {
  std::vector<std::string> names;
  std::vector<const profiler::cupti::Metric*> known;  // nullptr: named by the user
  std::vector<const profiler::cupti::Metric*> missing;

  std::string title(size_t i) const { return known[i] ? std::string(known[i]->title) : names[i]; }
  std::string unit(size_t i) const { return known[i] ? std::string(known[i]->unit) : ""; }
};
/// The metrics of bundles and single metrics; the default bundle when there are none. kName: no such bundle.
Result<CountersAsked> counters_asked(const std::string& chip, const std::vector<std::string>& bundles,
                                     const std::vector<std::string>& metrics);

struct CountersShown {
  std::string kernel;  // only kernels whose name contains it
  bool each = false;   // every launch for itself
};
/// A row per kernel, or a column where there are many metrics; notes list missing metrics and the method.
report::Table counters_table(const CountersAsked& asked, const profiler::cupti::Collected& collected,
                             std::string_view device, const CountersShown& shown = {});
/// What stood in the way of counting: the kernels that are known without it stay.
report::Table uncounted_table(const CountersAsked& asked, const std::vector<std::string>& launched,
                              const Diagnostic& why);

/// "1 pass", "3 passes"
std::string counted_text(size_t n, std::string_view one);

}  // namespace kiln::repl
