#include "profiler/profile/advisor_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "profiler/measure/stats.h"
#include "profiler/profile/lanes.h"
#include "profiler/profile/places.h"

namespace kiln::profiler {

using trace::Step;

bool is_launch(const ApiCall& c) {
  return c.name.starts_with("cuLaunch") || c.name.starts_with("cuGraphLaunch") || c.name.starts_with("cudaLaunch");
}

std::string time_text(Ns ns) { return report::human_time(static_cast<double>(ns) / 1e3); }

std::string count_text(int64_t n) {
  std::string digits = std::to_string(n);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), 1, ',');
  return digits;
}

namespace {

/// See Facts::host_us.
double host_us_per_launch(const Timeline& t) {
  std::unordered_map<uint32_t, std::vector<TimeRange>> other;
  std::unordered_map<uint32_t, std::vector<Ns>> launches;
  for (const Span& s : t.spans)
    // What is taken off: waits, and what happens once or moves data rather than launches.
    for (Step step :
         {Step::kWait, Step::kContext, Step::kCompile, Step::kLoad, Step::kCopyIn, Step::kCopyOut, Step::kHostKernel})
      if (s.step == step) other[s.thread].push_back({s.start, s.end});
  for (const ApiCall& c : t.calls) {
    if (is_launch(c)) launches[c.thread].push_back(c.start);
    if (c.name.find("Synchronize") != std::string::npos) other[c.thread].push_back({c.start, c.end});
  }
  for (const Overhead& o : t.overheads) other[o.thread].push_back({o.start, o.end});
  std::vector<double> us;
  for (auto& [thread, starts] : launches) {
    std::sort(starts.begin(), starts.end());
    const Cover less(std::move(other[thread]));
    for (size_t i = 1; i < starts.size(); ++i)
      us.push_back(static_cast<double>(starts[i] - starts[i - 1] - less.within(starts[i - 1], starts[i])) / 1e3);
  }
  return us.empty() ? -1 : median(us);
}

}  // namespace

Facts::Facts(const Timeline& timeline, const AdvisorInputs& in) : t(timeline), inputs(in) {
  Ns first = 0, last = 0;
  auto see = [&](Ns start, Ns end) {
    if (start == 0) return;
    first = first == 0 ? start : std::min(first, start);
    last = std::max(last, end);
  };
  for (const Span& s : t.spans) see(s.start, s.end);
  for (const ApiCall& c : t.calls) see(c.start, c.end);
  std::vector<TimeRange> all;
  std::map<uint32_t, std::vector<TimeRange>> by_stream;
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < t.work.size(); ++i) {
    const Work& w = t.work[i];
    if (w.is_lost()) continue;
    see(w.start, w.end);
    all.push_back({w.start, w.end});
    by_stream[w.stream].push_back({w.start, w.end});
    if (w.kind != WorkKind::kKernel) continue;
    auto [found, is_new] = index.try_emplace(w.name, kernels.size());
    if (is_new) kernels.push_back({w.name, {}, 0});
    KernelRuns& k = kernels[found->second];
    k.runs.push_back(i);
    k.total += w.duration();
    kernel_time += w.duration();
  }
  std::stable_sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.total > b.total; });
  wall = last - first;
  busy = Cover(std::move(all));
  for (auto& [stream, stretches] : by_stream) stream_busy[stream] = Cover(std::move(stretches));
  host_us = host_us_per_launch(t);

  std::vector<double> us;
  for (const ApiCall& c : t.calls)
    if (is_launch(c)) us.push_back(static_cast<double>(c.end - c.start) / 1e3);
  if (!t.is_cuda())
    for (const Span& s : t.spans) launches += s.step == Step::kLaunch;
  launches += static_cast<int64_t>(us.size());
  // Where it could be measured, a call without the profiler: recorded calls take longer.
  launch_us_is_plain = t.plain_call_us >= 0;
  launch_us = launch_us_is_plain ? t.plain_call_us : us.empty() ? -1 : median(us);
}

bool Facts::is_repeated_by_profile(int span) const {
  const Span* outermost = nullptr;
  for (int i = span; i >= 0; i = t.spans[static_cast<size_t>(i)].parent)
    if (!t.spans[static_cast<size_t>(i)].file.empty()) outermost = &t.spans[static_cast<size_t>(i)];
  return outermost && outermost->file.starts_with("<%");
}

std::string Facts::lines(const std::vector<int>& spans) const {
  std::map<std::string, int64_t> counts;
  int64_t known = 0;
  for (int span : spans)
    if (const Span* s = statement_of(t, span)) ++counts[line_and_text(*s)], ++known;
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 3); ++i) {
    if (i) text += ", ";
    text += sorted[i].first;
    if (sorted.size() > 1) text += fmt::format(" ({} of {})", count_text(sorted[i].second), count_text(known));
  }
  return text;
}

const KernelFigures* Facts::figures(const std::string& kernel) const {
  for (const KernelFigures& f : inputs.counters)
    if (f.kernel == kernel) return &f;
  return nullptr;
}

const KernelSource* Facts::source(const std::string& kernel) const {
  for (const KernelSource& s : inputs.sources)
    if (s.kernel == kernel) return &s;
  return nullptr;
}

}  // namespace kiln::profiler
