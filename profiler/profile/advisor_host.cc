// The advisor's rules about the host: launches, waits, copies, compilation.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "profiler/measure/stats.h"
#include "profiler/profile/advisor_limits.h"
#include "profiler/profile/advisor_rule.h"
#include "profiler/profile/lanes.h"
#include "profiler/profile/places.h"
#include "profiler/profile/schedule.h"

namespace kiln::profiler::rules {

namespace {

using trace::Step;

double percent(Ns part, Ns whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::vector<int> spans_of_launches(const Facts& f) {
  std::vector<int> spans;
  for (const ApiCall& c : f.t.calls)
    if (is_launch(c)) spans.push_back(c.span);
  return spans;
}

std::string or_unknown(const std::string& lines) { return lines.empty() ? "the line is not known" : lines; }

/// How often a loop of the script did something, without the runs that the profile itself repeats.
int64_t repeats(const Facts& f, const std::vector<int>& spans) {
  const auto n = static_cast<int64_t>(spans.size());
  if (spans.empty() || !f.is_repeated_by_profile(spans.front())) return n;
  const auto steps = std::count_if(f.t.spans.begin(), f.t.spans.end(),
                                   [](const Span& s) { return s.step == Step::kRange && s.name == kStepRange; });
  return steps > 0 ? n / steps : n;
}

/// Things that happened, by the statement that made them.
template <class T>
using ByStatement = std::map<std::string, std::vector<T>>;

std::string statement_key(const Facts& f, int span) {
  const Span* s = statement_of(f.t, span);
  return s ? line_and_text(*s) : std::string();
}

}  // namespace

void overhead_bound(const Facts& f, FindingSink& sink) {
  const Ns gpu = f.busy.total();
  if (!f.t.is_cuda() || gpu == 0 || f.launches < limits::kOverheadLaunches || f.host_us < 0) return;
  const double gpu_us = static_cast<double>(gpu) / 1e3 / static_cast<double>(f.launches);
  const double ratio = f.host_us / gpu_us;
  if (ratio < limits::kOverheadRatio) return;
  sink.add(
      ratio,
      fmt::format("{} launches, each with {} of the CPU's time (median, waits left out) for {} of the GPU's: {:.1f} "
                  "times as long; GPU busy {:.1f} % of {}",
                  count_text(f.launches), report::human_time(f.host_us), report::human_time(gpu_us), ratio,
                  percent(gpu, f.wall), time_text(f.wall)),
      or_unknown(f.lines(spans_of_launches(f))),
      "more work per launch, one expression instead of many operations, or a CUDA graph: its launch takes about a "
      "microsecond whatever it holds");
}

void gpu_bound(const Facts& f, FindingSink& sink) {
  if (!f.t.is_cuda() || f.kernels.empty() || f.wall <= 0) return;
  const double busy = static_cast<double>(f.busy.total()) / static_cast<double>(f.wall);
  if (busy < limits::kBusy) return;
  sink.add(busy, fmt::format("GPU busy {:.1f} % of {}", busy * 100, time_text(f.wall)),
           fmt::format("most of it in {}", f.kernels[0].name),
           "the kernels themselves: %roofline shows whether compute or memory bounds them");
}

void short_launches(const Facts& f, FindingSink& sink) {
  if (f.launch_us < 0) return;
  for (const KernelRuns& k : f.kernels) {
    std::vector<double> us;
    std::vector<int> spans;
    for (size_t i : k.runs) {
      const Work& w = f.t.work[i];
      if (w.graph) continue;  // a graph's nodes pay no launch
      us.push_back(static_cast<double>(w.duration()) / 1e3);
      spans.push_back(w.span);
    }
    const auto n = static_cast<int64_t>(us.size());
    if (n < limits::kManyLaunches) continue;
    const double each = median(us), tax = f.launch_us * static_cast<double>(n);
    if (each * 1e3 >= static_cast<double>(limits::kShortKernel)) continue;
    sink.add(tax,
             fmt::format("{} launches of {}, {:.1f} us each; a launch takes {:.1f} us of CPU time{}, {} together",
                         count_text(n), k.name, each, f.launch_us, f.launch_us_is_plain ? "" : " while profiled",
                         report::human_time(tax)),
             or_unknown(f.lines(spans)),
             "fuse it with its neighbours, give each launch more data, or record the launches as one CUDA graph");
  }
}

namespace {

/// Compilation, loading and what the driver does for the first use of a kernel.
struct ColdTimes {
  std::vector<TimeRange> stretches;
  std::map<std::string, Ns> phases;
  std::vector<int> spans;
  std::set<std::string> kernels;
};

ColdTimes cold_times(const Facts& f, Ns from, Ns to) {
  ColdTimes cold;
  auto inside = [&](Ns start, Ns end) { return start >= from && end <= to; };
  for (size_t i = 0; i < f.t.spans.size(); ++i) {
    const Span& s = f.t.spans[i];
    if (!inside(s.start, s.end)) continue;
    if (s.step == Step::kPhase) cold.phases[s.name] += s.duration();
    if (s.step == Step::kLoad) cold.phases["module load"] += s.duration();
    if (s.step == Step::kContext) cold.phases["device start"] += s.duration();
    if (s.step != Step::kCompile && s.step != Step::kLoad && s.step != Step::kContext) continue;
    cold.stretches.push_back({s.start, s.end});
    if (s.step == Step::kContext) cold.spans.push_back(static_cast<int>(i));
    if (s.step == Step::kContext) continue;
    cold.kernels.insert(s.name);
    if (s.step == Step::kCompile) cold.spans.push_back(static_cast<int>(i));
  }
  for (const Overhead& o : f.t.overheads) {
    if (!inside(o.start, o.end) || is_of_profiler(o) || o.kind == "command buffer full") continue;
    if (is_within(f.t, o.span, Step::kPhase)) continue;  // the driver as our assembler: the phase has it already
    cold.stretches.push_back({o.start, o.end});
    cold.phases[o.kind] += o.end - o.start;
    cold.spans.push_back(o.span);
  }
  return cold;
}

std::string phases_text(const std::map<std::string, Ns>& phases) {
  std::vector<std::pair<std::string, Ns>> sorted(phases.begin(), phases.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), limits::kColdPhases); ++i)
    text += fmt::format("{}{} {}", i ? ", " : "", sorted[i].first, time_text(sorted[i].second));
  return text;
}

/// The phases, and what of a cold stretch none of them has.
std::string phases_text(const ColdTimes& cold) {
  std::string text = phases_text(cold.phases);
  Ns known = 0;
  for (const auto& [phase, time] : cold.phases) known += time;
  const Ns total = Cover(cold.stretches).total();
  if (static_cast<double>(known) * limits::kColdUnnamed < static_cast<double>(total))
    text += fmt::format("{}in no phase {}", text.empty() ? "" : ", ", time_text(total - known));
  return text;
}

std::string kernels_text(const std::set<std::string>& kernels) {
  std::string text;
  size_t n = 0;
  for (const std::string& k : kernels) {
    if (n++ == limits::kColdPhases) return text + ", …";
    text += (text.empty() ? "" : ", ") + k;
  }
  return text;
}

/// The range or statement whose first run takes the most longer than its others; nullptr: none is that different.
struct SlowFirst {
  const Span* first = nullptr;
  Ns usual = 0;
  size_t others = 0;
};

SlowFirst slow_first(const Facts& f) {
  std::map<std::string, std::vector<const Span*>> repeated;
  for (const Span& s : f.t.spans) {
    if (s.step == Step::kRange) repeated["range " + s.name].push_back(&s);
    if (s.step == Step::kStatement && !s.file.empty()) repeated[line_and_text(s)].push_back(&s);
  }
  SlowFirst slowest;
  Ns most = 0;
  for (const auto& [key, spans] : repeated) {
    if (spans.size() < limits::kColdSteps) continue;
    std::vector<double> rest;
    for (size_t i = 1; i < spans.size(); ++i) rest.push_back(static_cast<double>(spans[i]->duration()));
    const Ns usual = static_cast<Ns>(median(rest)), more = spans[0]->duration() - usual;
    if (more < limits::kColdLeast || more <= most) continue;
    if (static_cast<double>(spans[0]->duration()) < limits::kColdRatio * static_cast<double>(usual)) continue;
    most = more;
    slowest = {spans[0], usual, rest.size()};
  }
  return slowest;
}

constexpr const char* kWarmUp =
    "run it once before measuring; compiled kernels stay in the cache on disk, so only the load remains "
    "the next time";

}  // namespace

void cold_start(const Facts& f, FindingSink& sink) {
  const SlowFirst slow = slow_first(f);
  const ColdTimes all = cold_times(f, 0, std::numeric_limits<Ns>::max());
  const Ns cold_total = Cover(all.stretches).total();
  if (slow.first) {
    const Span& s = *slow.first;
    const ColdTimes inside = cold_times(f, s.start, s.end);
    const bool is_statement = s.step == Step::kStatement;
    const std::string phases = phases_text(inside);
    std::string evidence = is_statement ? line_and_text(s) : fmt::format("range \"{}\"", s.name);
    if (std::string lines = f.lines(inside.spans); !lines.empty() && !is_statement) evidence += ", " + lines;
    if (!inside.kernels.empty()) evidence += fmt::format(" (kernels: {})", kernels_text(inside.kernels));
    sink.add(static_cast<double>(s.duration()),
             fmt::format("the first run took {}, the median of the other {} {}: {}", time_text(s.duration()),
                         slow.others, time_text(slow.usual),
                         phases.empty() ? "nothing was compiled or loaded, so caches, memory or clocks" : phases),
             std::move(evidence), kWarmUp);
    if (Cover(inside.stretches).total() * 2 >= cold_total) return;  // the same thing, seen as a whole
  }
  const double share = f.wall > 0 ? static_cast<double>(cold_total) / static_cast<double>(f.wall) : 0;
  if (cold_total < limits::kColdLeast || share < limits::kColdShare) return;
  std::string evidence = or_unknown(f.lines(all.spans));
  if (!all.kernels.empty()) evidence += fmt::format(" (kernels: {})", kernels_text(all.kernels));
  sink.add(static_cast<double>(cold_total),
           fmt::format("compilation and loading took {} of {} ({:.0f} %): {}", time_text(cold_total), time_text(f.wall),
                       share * 100, phases_text(all)),
           std::move(evidence), kWarmUp);
}

void slow_begin(const Facts& f, FindingSink& sink) {
  std::unordered_map<uint32_t, std::vector<Ns>> launches;  // by thread, sorted
  for (const ApiCall& c : f.t.calls)
    if (is_launch(c)) launches[c.thread].push_back(c.start);
  for (const Span& s : f.t.spans)
    for (Step step : {Step::kDriver, Step::kGraphLaunch, Step::kLibrary, Step::kHostKernel})
      if (s.step == step) launches[s.thread].push_back(s.start);
  for (auto& [thread, starts] : launches) std::sort(starts.begin(), starts.end());

  struct Slow {
    int64_t n = 0;
    Ns gap = 0, total = 0;
    std::map<std::string, Ns> meanwhile;
  };
  std::map<std::string, Slow> by_name;
  std::unordered_map<int, Ns> first_launch;  // of each range that begins slowly
  for (size_t i = 0; i < f.t.spans.size(); ++i) {
    const Span& s = f.t.spans[i];
    // Its parent comes before a span: what the range did until its first launch.
    if (auto of = first_launch.find(s.parent); of != first_launch.end() && s.start < of->second)
      by_name[f.t.spans[static_cast<size_t>(s.parent)].name].meanwhile[title(s)] +=
          std::min(s.end, of->second) - s.start;
    if (s.step != Step::kRange) continue;
    const std::vector<Ns>& starts = launches[s.thread];
    auto first = std::lower_bound(starts.begin(), starts.end(), s.start);
    if (first == starts.end() || *first >= s.end) continue;
    const Ns gap = *first - s.start;
    if (gap < limits::kSlowBeginLeast) continue;
    if (static_cast<double>(gap) < limits::kSlowBegin * static_cast<double>(s.duration())) continue;
    first_launch[static_cast<int>(i)] = *first;
    Slow& slow = by_name[s.name];
    ++slow.n, slow.gap += gap, slow.total += s.duration();
  }
  for (const auto& [range, slow] : by_name)
    sink.add(static_cast<double>(slow.gap),
             fmt::format("{} of {} passed before the first launch ({:.0f} %{})", time_text(slow.gap),
                         time_text(slow.total), percent(slow.gap, slow.total),
                         slow.n > 1 ? fmt::format(", in {} of them", count_text(slow.n)) : ""),
             fmt::format("range \"{}\"{}", range, slow.meanwhile.empty() ? "" : ": " + phases_text(slow.meanwhile)),
             "prepare outside of the range, or launch what is ready first, so that the device works meanwhile");
}

void occupancy_query(const Facts& f, FindingSink& sink) {
  std::map<std::string, std::vector<int>> by_kernel;
  std::unordered_map<uint32_t, std::string> kernel_of;  // by correlation
  for (const Work& w : f.t.work)
    if (w.correlation && w.kind == WorkKind::kKernel) kernel_of.try_emplace(w.correlation, w.name);
  std::unordered_map<uint32_t, bool> asked;  // by thread
  for (const ApiCall& c : f.t.calls) {
    if (c.name.find("Occupancy") != std::string::npos) {
      asked[c.thread] = true;
    } else if (is_launch(c) && std::exchange(asked[c.thread], false)) {
      auto found = kernel_of.find(c.correlation);
      by_kernel[found == kernel_of.end() ? "a kernel" : found->second].push_back(c.span);
    }
  }
  for (const auto& [kernel, spans] : by_kernel)
    sink.add(
        static_cast<double>(spans.size()),
        fmt::format("{} of its launches follow an occupancy query", count_text(static_cast<int64_t>(spans.size()))),
        fmt::format("{}, {}", kernel, or_unknown(f.lines(spans))),
        "a library chooses its launch configuration each time: record a CUDA graph, or use your own kernel");
}

void unneeded_sync(const Facts& f, FindingSink& sink) {
  if (!f.t.is_cuda() || f.wall <= 0) return;
  struct Seen {
    Ns start, end, covered, idle;
    int span;
  };
  ByStatement<Seen> by_statement;
  auto see = [&](Ns start, Ns end, int span, const Cover& cover) {
    // A copy waits for itself.
    if (is_within(f.t, span, Step::kCopyIn) || is_within(f.t, span, Step::kCopyOut)) return;
    const Ns next = f.busy.within(end, end + 1) ? end : f.busy.next_start(end);
    by_statement[statement_key(f, span)].push_back({start, end, cover.within(start, end), next ? next - end : 0, span});
  };
  for (const Wait& w : f.t.waits) {
    if (w.start == 0 || w.kind == "stream on event") continue;
    auto stream = f.stream_busy.find(w.stream);
    see(w.start, w.end, w.span, w.kind == "stream" && stream != f.stream_busy.end() ? stream->second : f.busy);
  }
  if (f.t.waits.empty())
    for (size_t i = 0; i < f.t.spans.size(); ++i)
      if (const Span& s = f.t.spans[i]; s.step == Step::kWait) see(s.start, s.end, static_cast<int>(i), f.busy);
  if (f.busy.total() == 0) return;  // what a wait covered is not known
  for (const auto& [statement, seen] : by_statement) {
    std::vector<double> covered;
    std::vector<int> spans;
    Ns idle = 0, waited = 0;
    for (const Seen& s : seen) {
      covered.push_back(static_cast<double>(s.covered));
      spans.push_back(s.span);
      waited += s.end - s.start;
      if (&s != &seen.back()) idle += s.idle;  // what follows the last one is no longer the loop
    }
    const Ns loop = seen.back().end - seen.front().start;
    const Ns usual = static_cast<Ns>(median(covered));
    if (repeats(f, spans) < limits::kLoop || usual >= limits::kLittleWork) continue;
    if (static_cast<double>(idle) < limits::kSyncShare * static_cast<double>(loop)) continue;
    sink.add(static_cast<double>(idle),
             fmt::format("{} waits, each for {} of GPU work (median), {} together; after them the GPU was idle for {} "
                         "({:.0f} % of the time from the first wait to the last)",
                         count_text(static_cast<int64_t>(seen.size())), time_text(usual), time_text(waited),
                         time_text(idle), percent(idle, loop)),
             or_unknown(statement), "wait once, after the loop: work on a stream runs in order without the host");
  }
}

void library_copy(const Facts& f, FindingSink& sink) {
  struct Seen {
    int64_t n = 0, bytes = 0;
    Ns time = 0;
    bool in_library = false;
  };
  std::map<std::string, Seen> by_statement;
  for (const Work& w : f.t.work) {
    if (w.kind != WorkKind::kCopy || w.name != "copy DtoD" || w.span < 0 || w.graph || w.is_lost()) continue;
    if (is_within(f.t, w.span, Step::kCopy)) continue;  // the script's own
    Seen& s = by_statement[statement_key(f, w.span)];
    ++s.n, s.bytes += w.bytes, s.time += w.duration();
    s.in_library = s.in_library || is_within(f.t, w.span, Step::kLibrary);
  }
  for (const auto& [statement, s] : by_statement)
    sink.add(static_cast<double>(s.time),
             fmt::format("{} copies on the device, {} and {} together, by {}", count_text(s.n),
                         report::human_bytes(static_cast<double>(s.bytes)), time_text(s.time),
                         s.in_library ? "a library's call" : "none of the script's copies"),
             or_unknown(statement),
             "a product whose output is initialised with its bias: write the epilogue into the expression, so that one "
             "kernel does both");
}

void copies_in_loop(const Facts& f, FindingSink& sink) {
  if (!f.t.is_cuda()) return;
  struct Seen {
    std::vector<int> spans;
    int64_t bytes = 0;
    Ns device = 0, first = 0, last = 0;
  };
  std::map<std::pair<std::string, bool>, Seen> by_statement;  // and whether from the host
  auto see = [&](bool in, int span, int64_t bytes, Ns start, Ns end) {
    Seen& s = by_statement[{statement_key(f, span), in}];
    if (s.spans.empty()) s.first = start;
    s.spans.push_back(span);
    s.bytes += bytes, s.device += end - start, s.last = end;
  };
  for (const Work& w : f.t.work) {
    if (w.kind != WorkKind::kCopy || w.is_lost()) continue;
    if (w.name == "copy HtoD" || w.name == "copy DtoH") see(w.name == "copy HtoD", w.span, w.bytes, w.start, w.end);
  }
  if (f.t.work.empty())  // the GPU's side was not seen
    for (size_t i = 0; i < f.t.spans.size(); ++i) {
      const Span& s = f.t.spans[i];
      if (s.step == Step::kCopyIn || s.step == Step::kCopyOut)
        see(s.step == Step::kCopyIn, static_cast<int>(i), s.bytes, s.start, s.end);
    }
  auto launched_between = [&](Ns first, Ns last) {
    for (const Work& w : f.t.work)
      if (w.kind == WorkKind::kKernel && w.start >= first && w.end <= last) return true;
    for (const Span& s : f.t.spans)
      if (s.step == Step::kLaunch && s.start >= first && s.end <= last) return true;
    return false;
  };
  for (const auto& [key, s] : by_statement) {
    const auto& [statement, in] = key;
    if (repeats(f, s.spans) < limits::kLoop || !launched_between(s.first, s.last)) continue;
    Ns host = 0;
    for (int span : s.spans)
      for (int i = span; i >= 0; i = f.t.spans[static_cast<size_t>(i)].parent)
        if (const Span& at = f.t.spans[static_cast<size_t>(i)]; at.step == Step::kCopyIn || at.step == Step::kCopyOut) {
          host += at.duration();
          break;
        }
    const auto n = static_cast<int64_t>(s.spans.size());
    std::string what = fmt::format("{} copies {} the host, {} each on average", count_text(n), in ? "from" : "to",
                                   report::human_bytes(static_cast<double>(s.bytes) / static_cast<double>(n)));
    if (host)
      what += fmt::format("; the host spent {} in them ({:.0f} % of the time from the first to the last)",
                          time_text(host), percent(host, s.last - s.first));
    sink.add(static_cast<double>(std::max(host, s.device)), std::move(what), or_unknown(statement),
             in ? "create it on the device, or copy it once before the loop"
                : "keep it on the device and read it once after the loop: each copy waits for all work before it");
  }
}

void profilers_gap(const Facts& f, FindingSink& sink) {
  const auto& stretches = f.busy.ranges();
  if (!f.t.is_cuda() || stretches.empty()) return;
  std::map<std::string, std::pair<int64_t, Ns>> by_kind;
  for (const Overhead& o : f.t.overheads) {
    if (!is_of_profiler(o)) continue;
    const Ns start = std::max(o.start, stretches.front().start), end = std::min(o.end, stretches.back().end);
    if (end <= start) continue;
    const Ns idle = end - start - f.busy.within(start, end);
    if (idle < limits::kProfilersGap) continue;
    ++by_kind[o.kind].first, by_kind[o.kind].second += idle;
  }
  for (const auto& [kind, seen] : by_kind)
    sink.add(static_cast<double>(seen.second),
             fmt::format("{} times the GPU was idle while the profiler worked, {} together", count_text(seen.first),
                         time_text(seen.second)),
             kind, "ignore these gaps: they do not exist without the profiler");
}

}  // namespace kiln::profiler::rules
