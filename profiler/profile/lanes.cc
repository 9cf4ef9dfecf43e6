#include "profiler/profile/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace kiln::profiler {

namespace {

const Span& span_at(const Timeline& t, int i) { return t.spans[static_cast<size_t>(i)]; }

/// Slices of one row before they are laid out. Streams do not nest: a kernel inside another one's time is beside it.
struct UnplacedLane {
  std::vector<Slice> slices;
  bool nests = true;
};

void add(UnplacedLane& row, SliceKind kind, size_t index, Ns start, Ns end) {
  // Unknown times: the slice cannot be placed. The tables count such records.
  if (start == 0) return;
  row.slices.push_back({kind, static_cast<int>(index), 0, start, std::max(start, end)});
}

/// A lane per part: each slice goes to the first part in which it lies inside the innermost open slice, or after all.
void lay_out(UnplacedLane row, const Lane& like, std::vector<Lane>& into) {
  std::stable_sort(row.slices.begin(), row.slices.end(), [](const Slice& a, const Slice& b) {
    // Of two that begin together the longer one is the outer.
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  struct Part {
    size_t lane;
    std::vector<Ns> open;  // the ends of slices that have begun, the innermost last
  };
  std::vector<Part> parts;
  for (Slice& s : row.slices) {
    auto fits = [&](Part& p) {
      while (!p.open.empty() && p.open.back() <= s.start) p.open.pop_back();
      return p.open.empty() || (row.nests && p.open.back() >= s.end);
    };
    auto part = std::find_if(parts.begin(), parts.end(), fits);
    if (part == parts.end()) {
      Lane lane = like;
      lane.part = static_cast<int>(parts.size());
      if (lane.part) lane.name += fmt::format(" ({})", lane.part + 1);
      parts.push_back({into.size(), {}});
      into.push_back(std::move(lane));
      part = std::prev(parts.end());
    }
    s.depth = static_cast<int>(part->open.size());
    part->open.push_back(s.end);
    into[part->lane].slices.push_back(s);
  }
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string_view category(const Timeline& t, const Slice& s) {
  const auto i = static_cast<size_t>(s.index);
  switch (s.kind) {
    case SliceKind::kSpan:
      return trace::name(t.spans[i].step);
    case SliceKind::kCall:
      return "driver";
    case SliceKind::kWait:
      return "wait";
    case SliceKind::kWork:
      return t.work[i].kind == WorkKind::kKernel ? "kernel" : t.work[i].kind == WorkKind::kCopy ? "copy" : "fill";
    case SliceKind::kOverhead:
      return "overhead";
  }
  return "";
}

// The profiler's own overheads get a process of their own in traces, since they are no time of the program.
bool is_of_profiler(const Overhead& o) {
  return o.kind.starts_with("activity buffer") || o.kind.starts_with("profiler");
}

std::string title(const Span& s) {
  if (s.step == trace::Step::kStatement && !s.file.empty())
    return fmt::format("{}:{}{}{}", base_name(s.file), s.line, s.name.empty() ? "" : " ", s.name);
  if (s.name.empty()) return std::string(trace::name(s.step));
  for (trace::Step step :
       {trace::Step::kCompile, trace::Step::kLoad, trace::Step::kContext, trace::Step::kLaunch, trace::Step::kWait})
    if (s.step == step) return fmt::format("{} {}", trace::name(s.step), s.name);
  return s.name;
}

std::string title(const Timeline& t, const Slice& slice) {
  const auto i = static_cast<size_t>(slice.index);
  switch (slice.kind) {
    case SliceKind::kSpan:
      return title(t.spans[i]);
    case SliceKind::kCall:
      return t.calls[i].name;
    case SliceKind::kWait:
      return "wait: " + t.waits[i].kind;
    case SliceKind::kWork:
      return t.work[i].name;
    case SliceKind::kOverhead:
      return t.overheads[i].kind;
  }
  return {};
}

std::vector<Lane> lanes(const Timeline& t) {
  std::vector<std::pair<uint32_t, UnplacedLane>> threads;  // few
  std::map<uint32_t, size_t> thread_index;
  auto row_of = [&](uint32_t thread) -> UnplacedLane& {
    auto [found, is_new] = thread_index.try_emplace(thread, threads.size());
    if (is_new) threads.push_back({thread, {}});
    return threads[found->second].second;
  };
  for (size_t i = 0; i < t.spans.size(); ++i)
    add(row_of(t.spans[i].thread), SliceKind::kSpan, i, t.spans[i].start, t.spans[i].end);
  for (size_t i = 0; i < t.calls.size(); ++i)
    add(row_of(t.calls[i].thread), SliceKind::kCall, i, t.calls[i].start, t.calls[i].end);
  UnplacedLane waits;
  for (size_t i = 0; i < t.waits.size(); ++i) {
    const Wait& w = t.waits[i];
    // A wait whose call was not recorded has a time and no thread: it lies beside them.
    UnplacedLane& row = w.call < 0 ? waits : row_of(t.calls[static_cast<size_t>(w.call)].thread);
    add(row, SliceKind::kWait, i, w.start, w.end);
  }
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, UnplacedLane> streams;
  std::map<uint32_t, uint32_t> context_of;  // the first context of each device
  for (size_t i = 0; i < t.work.size(); ++i) {
    const Work& w = t.work[i];
    // On the CPU a kernel is a span of the thread that ran it.
    if (!t.is_cuda() && w.span >= 0 && span_at(t, w.span).step == trace::Step::kHostKernel) continue;
    UnplacedLane& row = streams[{w.device, w.context, w.stream}];
    row.nests = false;
    add(row, SliceKind::kWork, i, w.start, w.end);
    context_of.try_emplace(w.device, w.context);
  }
  UnplacedLane driver, own;
  for (size_t i = 0; i < t.overheads.size(); ++i) {
    const Overhead& o = t.overheads[i];
    add(is_of_profiler(o) ? own : driver, SliceKind::kOverhead, i, o.start, o.end);
  }

  std::vector<Lane> all;
  // Threads in the order of their first slice: the main thread comes first, whatever its number.
  auto first = [](const UnplacedLane& row) {
    Ns at = std::numeric_limits<Ns>::max();
    for (const Slice& s : row.slices) at = std::min(at, s.start);
    return at;
  };
  std::stable_sort(threads.begin(), threads.end(),
                   [&](const auto& a, const auto& b) { return first(a.second) < first(b.second); });
  for (auto& [thread, row] : threads) {
    Lane like;
    like.thread = thread;
    like.name = fmt::format("thread {}", thread);
    lay_out(std::move(row), like, all);
  }
  auto rest = [&](UnplacedLane row, LaneKind kind, const char* name) {
    Lane like;
    like.kind = kind;
    like.name = name;
    lay_out(std::move(row), like, all);
  };
  rest(std::move(waits), LaneKind::kWaits, "waits");
  rest(std::move(driver), LaneKind::kOverhead, "driver's overhead");
  for (auto& [key, row] : streams) {
    Lane like;
    like.kind = LaneKind::kStream;
    std::tie(like.device, like.context, like.stream) = key;
    like.name = fmt::format("stream {}", like.stream);
    if (context_of.size() > 1) like.name = fmt::format("cuda:{} {}", like.device, like.name);
    if (context_of[like.device] != like.context) like.name += fmt::format(" of context {}", like.context);
    lay_out(std::move(row), like, all);
  }
  rest(std::move(own), LaneKind::kProfiler, "profiler's overhead");
  return all;
}

Extent extent(const Timeline& t) {
  Extent e{t.start, t.end};
  auto see = [&](Ns start, Ns end) {
    if (start == 0) return;
    e.start = e.start == 0 ? start : std::min(e.start, start);
    e.end = std::max(e.end, std::max(start, end));
  };
  for (const Span& s : t.spans) see(s.start, s.end);
  for (const ApiCall& c : t.calls) see(c.start, c.end);
  for (const Work& w : t.work) see(w.start, w.end);
  for (const Wait& w : t.waits) see(w.start, w.end);
  for (const Overhead& o : t.overheads) see(o.start, o.end);
  for (const MemoryChange& m : t.memory) see(m.at, m.at);
  return e;
}

}  // namespace kiln::profiler
