#include "profiler/profile/intervals.h"

#include <algorithm>

namespace kiln::profiler {

Ns union_of(std::vector<TimeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const TimeRange& a, const TimeRange& b) { return a.start < b.start; });
  Ns total = 0, covered = 0;
  bool any = false;
  for (const TimeRange& r : ranges) {
    if (r.end <= r.start) continue;
    const Ns from = any ? std::max(r.start, covered) : r.start;
    if (r.end > from) total += r.end - from;
    covered = any ? std::max(covered, r.end) : r.end;
    any = true;
  }
  return total;
}

TimeRange clipped(TimeRange inner, TimeRange outer) {
  TimeRange r{std::max(inner.start, outer.start), std::min(inner.end, outer.end)};
  if (r.end < r.start) r.end = r.start;
  return r;
}

report::Cell time_cell(double microseconds) {
  report::Cell c = microseconds < 0 ? "-" + report::human_time(-microseconds) : report::human_time(microseconds);
  c.number = microseconds;
  return c;
}

report::Cell bytes_cell(int64_t bytes) {
  report::Cell c = bytes < 0 ? "-" + report::human_bytes(-static_cast<double>(bytes))
                             : report::human_bytes(static_cast<double>(bytes));
  c.number = static_cast<double>(bytes);
  return c;
}

std::string why_no_device_work(const Timeline& timeline) {
  if (!timeline.is_cuda() || !timeline.work.empty() || timeline.unknown.empty()) return {};
  return timeline.unknown.front().why;
}

}  // namespace kiln::profiler
