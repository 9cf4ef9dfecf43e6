// The facts that the advisor's rules use, computed once from a timeline.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiler/profile/advisor.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/timeline.h"

namespace kiln::profiler {

/// The runs of one kernel, whatever their grid.
struct KernelRuns {
  std::string name;
  std::vector<size_t> runs;  // into Timeline::work, by start; none is lost
  Ns total = 0;
};

struct Facts {
  Facts(const Timeline& timeline, const AdvisorInputs& inputs);

  const Timeline& t;
  const AdvisorInputs& inputs;
  Ns wall = 0;  // from the first to the last thing that was seen
  Cover busy;   // when the device worked
  std::map<uint32_t, Cover> stream_busy;
  std::vector<KernelRuns> kernels;  // the longest total first
  Ns kernel_time = 0;               // the sum of their times
  /// CPU time from one launch of a thread to its next, median, without waits, compilation and copies from and to the
  /// host: what starts once (contexts, libraries) does not count. Negative: fewer than two launches.
  double host_us = -1;
  int64_t launches = 0;   // calls of the driver, or launches on the CPU
  double launch_us = -1;  // CPU time of one, unprofiled where that was measured; negative: not known
  bool launch_us_is_plain = false;

  /// Whether the script's outermost statement around a span is run again and again by the profile itself.
  bool is_repeated_by_profile(int span) const;
  /// "a.py:3 `y = f(x)` (98 of 100), …": the statements of these spans, the most frequent first.
  std::string lines(const std::vector<int>& spans) const;
  const KernelFigures* figures(const std::string& kernel) const;
  const KernelSource* source(const std::string& kernel) const;
};

bool is_launch(const ApiCall& call);

/// "12.3 us", "4.56 ms".
std::string time_text(Ns ns);
/// "10,000"
std::string count_text(int64_t n);

}  // namespace kiln::profiler
