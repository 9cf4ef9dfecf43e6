#include "profiler/profile/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "profiler/profile/lanes.h"
#include "profiler/profile/work_facts.h"
#include "support/diag.h"
#include "support/escape.h"
#include "support/files.h"

namespace kiln::profiler {

namespace {

constexpr size_t kPiece = size_t{1} << 20;  // bytes that are handed on at once

/// Writes events one after the other; the first failure of the sink stays, and nothing is written after it.
class Writer {
 public:
  Writer(const Timeline& timeline, std::function<Status(std::string_view)> sink)
      : t_(timeline), sink_(std::move(sink)), target_(target::find(timeline.target)), extent_(extent(timeline)) {}

  Status write();

 private:
  template <class... T>
  void put(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<T>(values)...);
  }
  void text(std::string_view s) { append_json(buffer_, s); }
  /// Microseconds with all their nanoseconds.
  void us(Ns ns) { put("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000); }

  void begin(char phase, uint32_t process, uint32_t thread);
  void at(Ns ns) {
    put(",\"ts\":");
    us(ns - extent_.start);
  }
  void end();
  /// Between begin_args() and end_args().
  template <class T>
  void arg(std::string_view key, const T& value);
  void begin_args() { put(",\"args\":{{"), first_arg_ = true; }
  void end_args() { put("}}"); }

  void name_process(uint32_t process, std::string_view name, std::string_view labels, int order);
  void name_thread(uint32_t process, uint32_t thread, std::string_view name, int order);
  void names();
  void lane(const Lane& lane, uint32_t process, uint32_t thread);
  void arrow(char phase, size_t work, Ns when, uint32_t process, uint32_t thread);
  void place(int span);
  void span_args(const Span& s);
  void call_args(const ApiCall& c);
  void wait_args(const Wait& w);
  void work_args(const Work& w);
  void memory();
  void notes();
  void other_data();

  const Timeline& t_;
  std::function<Status(std::string_view)> sink_;
  const target::Target* target_;
  Extent extent_;
  std::vector<Lane> lanes_;
  std::vector<std::pair<uint32_t, uint32_t>> ids_;  // process and thread of each lane
  uint32_t host_ = 0, profiler_ = 0, notes_ = 0;
  std::vector<size_t> arrows_, first_arrow_;  // the work that each call queued: arrows_[first_arrow_[call], …)
  std::string buffer_;
  Status status_;
  bool first_event_ = true, first_arg_ = true;
};

void Writer::begin(char phase, uint32_t process, uint32_t thread) {
  put("{}{{\"ph\":\"{}\",\"pid\":{},\"tid\":{}", first_event_ ? "\n" : ",\n", phase, process, thread);
  first_event_ = false;
}

void Writer::end() {
  put("}}");
  if (buffer_.size() < kPiece) return;
  if (status_.ok()) status_ = sink_(buffer_);
  buffer_.clear();
}

template <class T>
void Writer::arg(std::string_view key, const T& value) {
  put("{}\"{}\":", first_arg_ ? "" : ",", key);
  first_arg_ = false;
  if constexpr (std::is_convertible_v<T, std::string_view>)
    text(value);
  else if constexpr (std::is_floating_point_v<T>)
    put("{:.3f}", value);
  else
    put("{}", value);
}

void Writer::name_process(uint32_t process, std::string_view name, std::string_view labels, int order) {
  auto one = [&](std::string_view what, std::string_view key, const auto& value) {
    begin('M', process, 0);
    put(",\"name\":\"{}\"", what);
    begin_args();
    arg(key, value);
    end_args();
    end();
  };
  one("process_name", "name", name);
  if (!labels.empty()) one("process_labels", "labels", labels);
  one("process_sort_index", "sort_index", order);
}

void Writer::name_thread(uint32_t process, uint32_t thread, std::string_view name, int order) {
  begin('M', process, thread);
  put(",\"name\":\"thread_name\"");
  begin_args();
  arg("name", name);
  end_args();
  end();
  begin('M', process, thread);
  put(",\"name\":\"thread_sort_index\"");
  begin_args();
  arg("sort_index", order);
  end_args();
  end();
}

/// Gives every lane its process and thread. All numbers differ, as those of a system's threads do: viewers look
/// threads up by their number alone.
void Writer::names() {
  uint32_t low = std::numeric_limits<uint32_t>::max(), high = 0;
  for (const Lane& lane : lanes_)
    if (lane.kind == LaneKind::kThread) low = std::min(low, lane.thread), high = std::max(high, lane.thread);
  uint32_t next = high + 1;
  host_ = high ? low : next++;
  int order = 0;
  name_process(host_, "host", t_.is_cuda() ? std::string_view{} : std::string_view(t_.hardware), order++);
  std::map<uint32_t, uint32_t> devices;
  int lane_order = 0;
  for (const Lane& lane : lanes_) {
    uint32_t process = 0, thread = 0;
    switch (lane.kind) {
      case LaneKind::kThread:
        process = host_;
        thread = lane.part == 0 && lane.thread != 0 ? lane.thread : next++;
        break;
      case LaneKind::kWaits:
      case LaneKind::kOverhead:
        process = host_, thread = next++;
        break;
      case LaneKind::kStream: {
        auto [found, is_new] = devices.try_emplace(lane.device, next);
        if (is_new) {
          ++next;
          name_process(found->second, fmt::format("cuda:{}", lane.device),
                       fmt::format("{}, {}", t_.hardware, t_.target), order++);
        }
        process = found->second, thread = next++;
        break;
      }
      case LaneKind::kProfiler:
        if (!profiler_) name_process(profiler_ = next++, "profiler", "its own cost", order++);
        process = profiler_, thread = next++;
        break;
    }
    ids_.push_back({process, thread});
    name_thread(process, thread, lane.name, lane_order++);
  }
  const bool lost = std::any_of(t_.work.begin(), t_.work.end(), [](const Work& w) { return w.is_lost(); });
  if (t_.unknown.empty() && t_.dropped == 0 && !lost) return;
  if (!profiler_) name_process(profiler_ = next++, "profiler", "its own cost", order++);
  name_thread(profiler_, notes_ = next++, "what is not known", lane_order);
}

void Writer::place(int span) {
  for (int i = span; i >= 0; i = t_.spans[static_cast<size_t>(i)].parent) {
    const Span& s = t_.spans[static_cast<size_t>(i)];
    if (s.file.empty()) continue;
    arg("line", fmt::format("{}:{}", s.file, s.line));
    return;
  }
}

void Writer::span_args(const Span& s) {
  arg("step", trace::name(s.step));
  if (!s.file.empty()) arg("line", fmt::format("{}:{}", s.file, s.line));
  if (!s.detail.empty()) arg("detail", s.detail);
  if (s.bytes) arg("bytes", s.bytes);
  if (s.stream) arg("stream", s.stream);
  if (s.grid[0]) arg("grid", fmt::format("{} x {} x {}", s.grid[0], s.grid[1], s.grid[2]));
}

void Writer::call_args(const ApiCall& c) {
  place(c.span);
  arg("correlation", c.correlation);
  if (c.result) arg("CUresult", c.result);
}

void Writer::wait_args(const Wait& w) {
  place(w.span);
  arg("waits for", w.kind);
  if (w.stream) arg("stream", w.stream);
}

void Writer::work_args(const Work& w) {
  place(w.span);
  if (w.kind == WorkKind::kKernel) {
    auto triple = [&](const char* key, const std::array<uint32_t, 3>& v) {
      if (v[0]) arg(key, fmt::format("{} x {} x {}", v[0], v[1], v[2]));
    };
    triple("grid", w.grid), triple("block", w.block), triple("cluster", w.cluster);
    if (w.registers >= 0) arg("registers per thread", w.registers);
    if (w.static_shared >= 0) arg("static shared bytes", w.static_shared);
    if (w.dynamic_shared >= 0) arg("dynamic shared bytes", w.dynamic_shared);
    if (w.local_bytes > 0) arg("local bytes per thread", w.local_bytes);
    if (auto o = theoretical_occupancy(target_, w)) {
      arg("theoretical occupancy %", o->fraction * 100);
      arg("occupancy limited by", name(o->limiter));
    }
  } else {
    arg("bytes", w.bytes);
    if (w.duration() > 0) arg("GB/s", double(w.bytes) / double(w.duration()));
  }
  if (w.graph) arg("graph", w.graph), arg("graph node", w.graph_node);
  if (w.correlation) arg("correlation", w.correlation);
  if (w.call < 0) return;
  const ApiCall& c = t_.calls[static_cast<size_t>(w.call)];
  if (c.start) arg("us from call to start", double(w.start - c.start) / 1e3);
  if (w.queued) arg("us from call to queue", double(w.queued - c.start) / 1e3);
  if (w.submitted) arg("us from submission to start", double(w.start - w.submitted) / 1e3);
}

/// One end of an arrow from a call to what it queued. An end is bound to the innermost slice that is open at its time,
/// so it is written right after that slice.
void Writer::arrow(char phase, size_t work, Ns when, uint32_t process, uint32_t thread) {
  begin(phase, process, thread);
  at(when);
  put(",\"cat\":\"launch\",\"name\":\"launch\",\"id\":{}", work + 1);
  if (phase == 'f') put(",\"bp\":\"e\"");
  end();
}

void Writer::lane(const Lane& lane, uint32_t process, uint32_t thread) {
  for (const Slice& s : lane.slices) {
    const auto i = static_cast<size_t>(s.index);
    begin('X', process, thread);
    at(s.start);
    put(",\"dur\":");
    us(s.end - s.start);
    put(",\"cat\":");
    text(category(t_, s));
    put(",\"name\":");
    text(title(t_, s));
    begin_args();
    switch (s.kind) {
      case SliceKind::kSpan:
        span_args(t_.spans[i]);
        break;
      case SliceKind::kCall:
        call_args(t_.calls[i]);
        break;
      case SliceKind::kWait:
        wait_args(t_.waits[i]);
        break;
      case SliceKind::kWork:
        work_args(t_.work[i]);
        break;
      case SliceKind::kOverhead:
        place(t_.overheads[i].span);
        break;
    }
    end_args();
    end();
    if (s.kind == SliceKind::kCall)
      for (size_t a = first_arrow_[i]; a < first_arrow_[i + 1]; ++a) arrow('s', arrows_[a], s.start, process, thread);
    if (s.kind == SliceKind::kWork && t_.work[i].call >= 0 && t_.calls[static_cast<size_t>(t_.work[i].call)].start)
      arrow('f', i, s.start, process, thread);
  }
}

void Writer::memory() {
  std::map<std::pair<bool, std::string_view>, bool> begun;
  auto counter = [&](const MemoryChange& m, Ns when, int64_t bytes) {
    begin('C', host_, 0);
    at(when);
    put(",\"name\":");
    text(fmt::format("{} {}", m.reserve ? "taken from the driver of" : "tensors on", m.device));
    begin_args();
    arg("bytes", bytes);
    end_args();
    end();
  };
  for (const MemoryChange& m : t_.memory) {
    if (!std::exchange(begun[{m.reserve, m.device}], true)) counter(m, extent_.start, m.total - m.bytes);
    counter(m, m.at, m.total);
  }
}

void Writer::notes() {
  if (!notes_) return;
  auto note = [&](std::string_view what, std::string_view why) {
    begin('i', profiler_, notes_);
    at(extent_.start);
    put(",\"s\":\"t\",\"cat\":\"unknown\",\"name\":");
    text(what);
    begin_args();
    arg("why", why);
    end_args();
    end();
  };
  for (const Unknown& u : t_.unknown) note("not known: " + u.what, u.why);
  if (t_.dropped) note(fmt::format("{} records lost", t_.dropped), "the profiler's buffers were full");
  const auto lost = std::count_if(t_.work.begin(), t_.work.end(), [](const Work& w) { return w.is_lost(); });
  if (lost) note(fmt::format("{} kernels and copies without times", lost), "the driver gave none");
}

void Writer::other_data() {
  put("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{{");
  first_arg_ = true;
  arg("producer", "kiln " KILN_VERSION);
  arg("device", t_.device);
  arg("hardware", t_.hardware);
  arg("target", t_.target);
  arg("driver", t_.driver);
  arg("clock", "CLOCK_MONOTONIC");
  arg("start_ns", extent_.start);
  arg("dropped_records", t_.dropped);
  if (t_.plain_call_us >= 0) arg("launch_us_unprofiled", t_.plain_call_us);
  put(",\"unknown\":[");
  first_arg_ = true;
  for (const Unknown& u : t_.unknown) {
    if (!std::exchange(first_arg_, false)) put(",");
    text(u.what + ": " + u.why);
  }
  put("]}}}}\n");
}

Status Writer::write() {
  lanes_ = lanes(t_);
  first_arrow_.assign(t_.calls.size() + 1, 0);
  auto has_arrow = [](const Work& w) { return w.call >= 0 && w.start != 0; };
  for (const Work& w : t_.work)
    if (has_arrow(w)) ++first_arrow_[static_cast<size_t>(w.call) + 1];
  for (size_t i = 1; i < first_arrow_.size(); ++i) first_arrow_[i] += first_arrow_[i - 1];
  arrows_.resize(first_arrow_.back());
  std::vector<size_t> free = first_arrow_;
  for (size_t i = 0; i < t_.work.size(); ++i)
    if (has_arrow(t_.work[i])) arrows_[free[static_cast<size_t>(t_.work[i].call)]++] = i;

  put("{{\"traceEvents\":[");
  names();
  for (size_t i = 0; i < lanes_.size(); ++i) lane(lanes_[i], ids_[i].first, ids_[i].second);
  memory();
  notes();
  other_data();
  if (status_.ok()) status_ = sink_(buffer_);
  return std::move(status_);
}

}  // namespace

std::string chrome_trace(const Timeline& timeline) {
  std::string all;
  auto keep = [&](std::string_view piece) {
    all += piece;
    return Status();
  };
  Status written = Writer(timeline, keep).write();
  KILN_ASSERT(written.ok(), "a string takes everything");
  return all;
}

Status write_chrome_trace(const Timeline& timeline, const std::string& path) {
  KILN_TRY(FileWriter file, FileWriter::open(path));
  KILN_CHECK_OK(Writer(timeline, [&](std::string_view piece) { return file.write(piece); }).write());
  return file.finish();
}

}  // namespace kiln::profiler
