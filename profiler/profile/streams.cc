#include "profiler/profile/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "profiler/profile/intervals.h"

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;
using report::Table;

/// Walks the beginnings and ends in the order of time and adds up how long how much ran.
Overlap overlap_of(const Timeline& t) {
  struct Change {
    Ns at;
    int kernels, copies;
  };
  std::vector<Change> changes;
  for (const Work& w : t.work) {
    // Records without times would shift everything that follows.
    if (w.is_lost() || w.end <= w.start) continue;
    const bool kernel = w.kind == WorkKind::kKernel;
    changes.push_back({w.start, kernel, !kernel});
    changes.push_back({w.end, -int{kernel}, -int{!kernel}});
  }
  // Equal times in any order: between them lies no time.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  Overlap out;
  int kernels = 0, copies = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    kernels += changes[i].kernels, copies += changes[i].copies;
    if (i + 1 == changes.size()) break;
    const Ns time = changes[i + 1].at - changes[i].at;
    if (kernels + copies > 0) out.any += time;
    if (kernels > 1) out.kernels += time;
    if (kernels > 0 && copies > 0) out.copy_and_kernel += time;
    if (copies > 1) out.copies += time;
  }
  return out;
}

}  // namespace

Streams streams(const Timeline& timeline) {
  Streams out;
  out.window = timeline.end - timeline.start;
  out.overlap = overlap_of(timeline);
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<StreamRow, std::vector<TimeRange>>> rows;
  for (const Work& w : timeline.work) {
    auto& [row, ran] = rows[{w.device, w.context, w.stream}];
    row.device = w.device, row.context = w.context, row.stream = w.stream;
    switch (w.kind) {
      case WorkKind::kKernel:
        ++row.kernels;
        break;
      case WorkKind::kCopy:
        ++row.copies;
        break;
      case WorkKind::kFill:
        ++row.fills;
        break;
    }
    if (!w.is_lost()) ran.push_back({w.start, w.end});
  }
  for (auto& [key, entry] : rows) {
    entry.first.busy = union_of(std::move(entry.second));
    out.rows.push_back(entry.first);
  }
  return out;
}

Table streams_table(const Timeline& timeline, const Streams& s) {
  Table table({{"stream", "", Align::kLeft},
               {"kernels", ""},
               {"copies", ""},
               {"fills", ""},
               {"busy", "", Align::kRight, "busy_us"},
               {"of the window", "%"}});
  table.set_title("streams");
  auto of_window = [&](Ns time) {
    return s.window > 0 ? Cell::of(static_cast<double>(time) / static_cast<double>(s.window) * 100, 1) : Cell("");
  };
  bool several = false;
  for (const StreamRow& r : s.rows) several = several || r.device != s.rows.front().device;
  for (const StreamRow& r : s.rows)
    table.add_row({several ? fmt::format("{} of cuda:{}", r.stream, r.device) : fmt::format("{}", r.stream),
                   Cell::of(r.kernels), Cell::of(r.copies), Cell::of(r.fills), time_cell(r.busy), of_window(r.busy)});
  auto add = [&](const char* what, Ns time) { table.add_row({what, "", "", "", time_cell(time), of_window(time)}); };
  add("any", s.overlap.any);
  add("two or more kernels at once", s.overlap.kernels);
  add("a copy and a kernel at once", s.overlap.copy_and_kernel);
  add("two or more copies at once", s.overlap.copies);
  if (!timeline.is_cuda()) table.add_note("on the CPU kernels run one after the other, each on all threads");
  if (const std::string why = why_no_device_work(timeline); !why.empty()) table.add_note("not known: " + why);
  return table;
}

}  // namespace kiln::profiler
