#include "profiler/profile/timeline.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace kiln::profiler {

namespace {

/// Finds the innermost span around a time on a thread; asked in the order of times, per thread.
class Enclosing {
 public:
  explicit Enclosing(const std::vector<Span>& spans) : spans_(spans) {
    for (size_t i = 0; i < spans.size(); ++i) of_thread_[spans[i].thread].push_back(static_cast<int>(i));
  }

  int at(uint32_t thread, Ns start, Ns end) const {
    auto found = of_thread_.find(thread);
    if (found == of_thread_.end()) return -1;
    const std::vector<int>& ids = found->second;
    auto after = std::upper_bound(ids.begin(), ids.end(), start, [&](Ns t, int i) { return t < span(i).start; });
    if (after == ids.begin()) return -1;
    // The last span that began before: it, or the first of those around it that has not ended yet.
    int i = *std::prev(after);
    while (i >= 0 && span(i).end < end) i = span(i).parent;
    return i;
  }

 private:
  const Span& span(int i) const { return spans_[static_cast<size_t>(i)]; }
  const std::vector<Span>& spans_;
  std::unordered_map<uint32_t, std::vector<int>> of_thread_;
};

void find_parents(std::vector<Span>& spans) {
  std::unordered_map<uint32_t, std::vector<int>> open;
  for (size_t i = 0; i < spans.size(); ++i) {
    std::vector<int>& stack = open[spans[i].thread];
    while (!stack.empty() && spans[static_cast<size_t>(stack.back())].end < spans[i].end) stack.pop_back();
    spans[i].parent = stack.empty() ? -1 : stack.back();
    stack.push_back(static_cast<int>(i));
  }
}

template <class T>
void sort_by_start(std::vector<T>& items) {
  auto earlier = [](const T& a, const T& b) { return a.start < b.start; };
  // Mostly they come in order, and a million of them take long to sort.
  if (!std::is_sorted(items.begin(), items.end(), earlier)) std::stable_sort(items.begin(), items.end(), earlier);
}

}  // namespace

void add_events(Timeline& timeline, std::vector<trace::Event> events) {
  for (trace::Event& e : events) {
    if (e.step == trace::Step::kMemory || e.step == trace::Step::kReserve) {
      MemoryChange change;
      change.at = e.start_ns, change.device = std::move(e.name), change.bytes = e.bytes;
      change.reserve = e.step == trace::Step::kReserve;
      change.span = static_cast<int>(e.thread);  // until join() knows the spans
      timeline.memory.push_back(std::move(change));
      continue;
    }
    Span s;
    s.step = e.step, s.name = std::move(e.name), s.file = std::move(e.file);
    (e.step == trace::Step::kRange ? s.operands : s.detail) = std::move(e.detail);
    s.line = e.line, s.start = e.start_ns, s.end = e.end_ns, s.thread = e.thread;
    s.bytes = e.bytes, s.flop = e.flop, s.stream = e.stream, s.grid = e.grid;
    timeline.spans.push_back(std::move(s));
  }
}

void join(Timeline& t) {
  // Of two that began in the same nanosecond the longer one is around the other.
  std::stable_sort(t.spans.begin(), t.spans.end(),
                   [](const Span& a, const Span& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
  find_parents(t.spans);
  if (!t.is_cuda())
    for (size_t i = 0; i < t.spans.size(); ++i) {
      const Span& s = t.spans[i];
      if (s.step != trace::Step::kHostKernel) continue;
      Work w;
      w.name = s.name, w.start = s.start, w.end = s.end, w.grid = s.grid, w.span = static_cast<int>(i);
      t.work.push_back(std::move(w));
    }
  sort_by_start(t.calls), sort_by_start(t.work), sort_by_start(t.waits), sort_by_start(t.overheads);
  std::stable_sort(t.memory.begin(), t.memory.end(), [](auto& a, auto& b) { return a.at < b.at; });

  const Enclosing enclosing(t.spans);
  std::unordered_map<uint32_t, int> call_of;
  call_of.reserve(t.calls.size());
  for (size_t i = 0; i < t.calls.size(); ++i) {
    ApiCall& c = t.calls[i];
    c.span = enclosing.at(c.thread, c.start, c.end);
    call_of[c.correlation] = static_cast<int>(i);
  }
  auto set_call = [&](auto& item) {
    auto found = call_of.find(item.correlation);
    if (found == call_of.end()) return;
    item.call = found->second;
    item.span = t.calls[static_cast<size_t>(item.call)].span;
  };
  for (Work& w : t.work)
    if (w.correlation) set_call(w);
  for (Wait& w : t.waits)
    if (w.correlation) set_call(w);
  for (Overhead& o : t.overheads) o.span = enclosing.at(o.thread, o.start, o.end);
  std::map<std::string, int64_t> total[2];
  for (MemoryChange& m : t.memory) {
    m.span = enclosing.at(static_cast<uint32_t>(m.span), m.at, m.at);
    m.total = total[m.reserve][m.device] += m.bytes;
  }
}

}  // namespace kiln::profiler
