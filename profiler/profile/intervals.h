// Arithmetic on times of a timeline.
#pragma once
#include <utility>
#include <vector>

#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

struct TimeRange {
  Ns start = 0, end = 0;
};

/// How long at least one of them ran.
Ns union_of(std::vector<TimeRange> ranges);

/// The part of `inner` within `outer`; empty (start = end) when there is none.
TimeRange clipped(TimeRange inner, TimeRange outer);

/// Stretches of time that do not overlap, in order.
class Cover {
 public:
  explicit Cover(std::vector<TimeRange> of = {});
  Ns total() const { return total_; }
  /// How much of a stretch is covered.
  Ns within(Ns start, Ns end) const;
  /// The start of the first stretch that begins at or after that time; 0: none does.
  Ns next_start(Ns at) const;
  const std::vector<TimeRange>& ranges() const { return ranges_; }

 private:
  std::vector<TimeRange> ranges_;
  std::vector<Ns> before_;  // total length of the stretches before each
  Ns total_ = 0;
};

inline double us(Ns t) { return static_cast<double>(t) / 1e3; }

/// "12.3 us" in text, microseconds in JSON and CSV.
report::Cell time_cell(double microseconds);
inline report::Cell time_cell(Ns t) { return time_cell(us(t)); }
/// "1.05 MB" in text, bytes in JSON and CSV.
report::Cell bytes_cell(int64_t bytes);

/// Why the GPU's side of a timeline is not there; empty when it is.
std::string why_no_device_work(const Timeline& timeline);

}  // namespace kiln::profiler
