#include "profiler/profile/intervals.h"

#include <algorithm>

namespace kiln::profiler {

Ns union_of(std::vector<TimeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const TimeRange& a, const TimeRange& b) { return a.start < b.start; });
  // `covered` is the latest end so far: ranges may lie within earlier ones.
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

Cover::Cover(std::vector<TimeRange> of) {
  std::sort(of.begin(), of.end(), [](const TimeRange& a, const TimeRange& b) { return a.start < b.start; });
  for (const TimeRange& s : of) {
    if (s.end <= s.start) continue;
    // Ranges that touch are one.
    if (!ranges_.empty() && s.start <= ranges_.back().end)
      ranges_.back().end = std::max(ranges_.back().end, s.end);
    else
      ranges_.push_back(s);
  }
  for (const TimeRange& s : ranges_) {
    before_.push_back(total_);
    total_ += s.end - s.start;
  }
}

Ns Cover::within(Ns start, Ns end) const {
  if (end <= start) return 0;
  // How much lies before a time.
  auto until = [&](Ns at) -> Ns {
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), at,
                                  [](Ns time, const TimeRange& s) { return time < s.start; });
    if (after == ranges_.begin()) return 0;
    const auto i = static_cast<size_t>(after - ranges_.begin()) - 1;
    return before_[i] + std::min(at, ranges_[i].end) - ranges_[i].start;
  };
  return until(end) - until(start);
}

Ns Cover::next_start(Ns at) const {
  auto next =
      // 0 is no time on the profile's clock, and says that nothing follows.
      std::lower_bound(ranges_.begin(), ranges_.end(), at, [](const TimeRange& s, Ns time) { return s.start < time; });
  return next == ranges_.end() ? 0 : next->start;
}

report::Cell time_cell(double microseconds) {
  return report::Cell::shown(
      microseconds < 0 ? "-" + report::human_time(-microseconds) : report::human_time(microseconds), microseconds);
}

report::Cell bytes_cell(int64_t bytes) {
  return report::Cell::shown(bytes < 0 ? "-" + report::human_bytes(-static_cast<double>(bytes))
                                       : report::human_bytes(static_cast<double>(bytes)),
                             bytes);
}

std::string why_no_device_work(const Timeline& timeline) {
  // A GPU whose side was recorded and that did nothing has no reason to give: its zeros are true.
  if (!timeline.is_cuda() || !timeline.work.empty() || timeline.unknown.empty()) return {};
  return timeline.unknown.front().why;
}

}  // namespace kiln::profiler
