#include "profiler/profile/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "profiler/measure/stats.h"
#include "profiler/profile/intervals.h"

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;
using report::Column;
using report::Table;
using trace::Step;

constexpr std::string_view kLazyLoading = "lazy loading", kDriverCompiler = "driver compiler";

const Span* launch_around(const Timeline& t, int span) {
  // The launch that the work came from encloses the driver's call, at whatever depth.
  for (; span >= 0; span = t.spans[static_cast<size_t>(span)].parent)
    if (t.spans[static_cast<size_t>(span)].step == Step::kLaunch) return &t.spans[static_cast<size_t>(span)];
  return nullptr;
}

class LatencyMaker {
 public:
  explicit LatencyMaker(const Timeline& timeline) : t_(timeline) {
    for (const Span& s : t_.spans)
      if (s.step == Step::kCompile || s.step == Step::kLoad || s.step == Step::kPhase) code_.push_back(&s);
    std::map<std::string_view, std::vector<TimeRange>> ranges;
    for (const Overhead& o : t_.overheads) ranges[o.kind].push_back({o.start, o.end});
    for (auto& [kind, times] : ranges) overheads_.emplace(kind, std::move(times));
  }

  Latency make() {
    out_.plain_call_us = t_.plain_call_us, out_.plain_graph_us = t_.plain_graph_us;
    for (const Work& w : t_.work) add(w);
    graphs();
    for (const auto& [kind, launches] : disturbed_) out_.disturbed.emplace_back(kind, launches);
    return std::move(out_);
  }

 private:
  void sample(LaunchPiece piece, bool idle, double value) {
    PieceSamples& s = out_.pieces[static_cast<size_t>(piece)];
    (idle ? s.idle : s.queued).push_back(value);
  }

  void add(const Work& w) {
    if (w.is_lost()) return;
    const std::tuple stream(w.device, w.context, w.stream);
    auto found = ends_.find(stream);
    const bool has_before = found != ends_.end();
    const Ns before = has_before ? found->second : 0;
    ends_[stream] = has_before ? std::max(before, w.end) : w.end;
    // What a graph launches has no call of its own, and copies are no launches of kernels.
    if (w.kind != WorkKind::kKernel || w.graph) return;
    Ns call_start = 0, call_end = 0, launch_start = 0, launch_end = 0;
    if (w.call >= 0) {
      const ApiCall& c = t_.calls[static_cast<size_t>(w.call)];
      call_start = launch_start = c.start, call_end = launch_end = c.end;
    }
    const Span* launch = launch_around(t_, w.span);
    if (launch) launch_start = launch->start, launch_end = launch->end;
    if (!t_.is_cuda() && launch) call_start = launch->start, call_end = launch->end;
    if (is_first(w, launch_start, launch_end, call_start, call_end)) return;
    // Idle: all that was on the stream had ended when the call began, so nothing is hidden behind earlier work.
    const bool idle = !has_before || (call_start != 0 && before <= call_start);
    ++(idle ? out_.idle : out_.queued);
    if (call_start != 0) {
      const double inside = t_.is_cuda() ? 0 : us(w.duration());  // the CPU runs the kernel within the call
      sample(LaunchPiece::kCall, idle, us(call_end - call_start) - inside);
      sample(LaunchPiece::kLaunchStart, idle, us(w.start - call_start));
      if (w.queued) sample(LaunchPiece::kPrepare, idle, us(w.queued - call_start));
      disturbances(call_start, call_end);
    }
    if (w.queued && w.submitted) sample(LaunchPiece::kBatching, idle, us(w.submitted - w.queued));
    if (w.submitted) sample(LaunchPiece::kFrontEnd, idle, us(w.start - w.submitted));
    sample(LaunchPiece::kExecution, idle, us(w.duration()));
    if (has_before && w.start < before) sample(LaunchPiece::kOverlap, idle, us(before - w.start));
    if (has_before && w.start >= before) sample(LaunchPiece::kGap, idle, us(w.start - before));
  }

  /// Takes out the first launch of a kernel when it compiled, loaded or met the driver's compiler.
  bool is_first(const Work& w, Ns start, Ns end, Ns call_start, Ns call_end) {
    const bool first = seen_.insert(w.name).second;
    if (start == 0) return false;
    FirstLaunch f;
    f.kernel = w.name;
    auto began = std::lower_bound(code_.begin(), code_.end(), start, [](const Span* s, Ns t) { return s->start < t; });
    for (; began != code_.end() && (*began)->start <= end; ++began) {
      const Span& s = **began;
      // It goes on after the launch, so it is no part of it.
      if (s.end > end) continue;
      if (s.step == Step::kPhase)
        f.phases.emplace_back(s.name, us(s.duration()));
      else
        (s.step == Step::kCompile ? f.compile : f.load) += us(s.duration());
    }
    if (first && call_start != 0) {
      f.lazy_load = overhead_in(kLazyLoading, call_start, call_end);
      f.driver_jit = overhead_in(kDriverCompiler, call_start, call_end);
    }
    if (f.compile + f.load + f.lazy_load + f.driver_jit <= 0) return false;
    f.whole = us(end - start) - (t_.is_cuda() ? 0 : us(w.duration()));
    out_.first.push_back(std::move(f));
    return true;
  }

  /// Overheads of one kind within a time, in microseconds.
  double overhead_in(std::string_view kind, Ns start, Ns end) const {
    auto found = overheads_.find(kind);
    return found == overheads_.end() ? 0 : us(found->second.within(start, end));
  }

  void disturbances(Ns start, Ns end) {
    for (const auto& [kind, times] : overheads_)
      if (times.within(start, end) > 0) ++disturbed_[kind];
  }

  void graphs() {
    struct Launch {
      Ns start = 0, end = 0, last = 0, busy = 0;
      int64_t nodes = 0;
      int call = -1;
      std::vector<double> gaps;
    };
    std::map<std::pair<uint32_t, uint32_t>, Launch> launches;  // by graph and correlation
    for (const Work& w : t_.work) {
      if (!w.graph || w.is_lost()) continue;
      Launch& l = launches[{w.graph, w.correlation}];
      // Work comes by start, so the first node seen is the first that ran.
      if (l.nodes == 0)
        l.start = w.start;
      else
        l.gaps.push_back(us(w.start - l.last));
      ++l.nodes;
      l.last = w.end;
      l.end = std::max(l.end, w.end);
      l.busy += w.duration();
      l.call = w.call;
    }
    // The samples of a graph's launches, of which medians are taken below.
    struct Samples {
      std::vector<double> call, start, makespan, work, gap;
      int64_t launches = 0, nodes = 0;
    };
    std::map<uint32_t, Samples> graphs;
    for (const auto& [key, l] : launches) {
      Samples& s = graphs[key.first];
      ++s.launches;
      s.nodes = std::max(s.nodes, l.nodes);
      s.makespan.push_back(us(l.end - l.start));
      s.work.push_back(us(l.busy));
      s.gap.insert(s.gap.end(), l.gaps.begin(), l.gaps.end());
      if (l.call < 0) continue;
      const ApiCall& c = t_.calls[static_cast<size_t>(l.call)];
      s.call.push_back(us(c.end - c.start));
      s.start.push_back(us(l.start - c.start));
    }
    auto middle = [](const std::vector<double>& v) { return v.empty() ? -1 : median(v); };
    for (const auto& [id, s] : graphs)
      out_.graphs.push_back({id, s.launches, s.nodes, middle(s.call), middle(s.start), middle(s.makespan),
                             middle(s.work), middle(s.gap)});
  }

  const Timeline& t_;
  Latency out_;
  std::vector<const Span*> code_;  // by start
  std::map<std::string_view, Cover> overheads_;
  std::map<std::string_view, int64_t> disturbed_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Ns> ends_;  // of the work before, per stream
  std::set<std::string> seen_;
};

struct PieceText {
  LaunchPiece piece;
  std::string_view name, on_cpu;  // empty: there is no such piece
};
constexpr PieceText kPieceTexts[kLaunchPieces] = {
    {LaunchPiece::kCall, "CPU call", "launch without the kernel"},
    {LaunchPiece::kPrepare, "  prepare", ""},
    {LaunchPiece::kBatching, "  batching", ""},
    {LaunchPiece::kFrontEnd, "  front end, stream wait", ""},
    {LaunchPiece::kLaunchStart, "launch → start", "launch → start"},
    {LaunchPiece::kExecution, "execution", "execution"},
    {LaunchPiece::kGap, "gap on the stream", "gap"},
    {LaunchPiece::kOverlap, "overlap with the one ahead", ""},
};
constexpr double kQuantiles[] = {0.5, 0.9, 0.99, 1};
constexpr const char* kQuantileNames[] = {"p50", "p90", "p99", "max"};

std::string unknown_piece(const Timeline& t, LaunchPiece piece, bool queued) {
  if (std::string why = why_no_device_work(t); !why.empty()) return why;
  if (piece == LaunchPiece::kPrepare || piece == LaunchPiece::kBatching || piece == LaunchPiece::kFrontEnd)
    return "CUPTI gave no times of the command buffer (they must be enabled before CUDA starts)";
  if (piece == LaunchPiece::kGap)
    return queued ? "no gap: they began before the previous work had ended"
                  : "no gap: nothing ran before them on their stream";
  if (piece == LaunchPiece::kOverlap) return "none of them began before the previous work had ended";
  return "the profile has no record of it";
}

}  // namespace

Latency latency(const Timeline& timeline) { return LatencyMaker(timeline).make(); }

Table latency_table(const Timeline& timeline, const Latency& l) {
  const bool gpu = timeline.is_cuda();
  const bool idle = l.idle > 0 || l.queued == 0, queued = l.queued > 0;
  std::vector<Column> columns = {{"piece of a launch", "us", Align::kLeft, "piece"}};
  auto add_columns = [&](const std::string& which) {
    columns.push_back({which + ": n", "", Align::kRight, which + "_n"});
    for (const char* q : kQuantileNames) columns.push_back({q, "", Align::kRight, which + "_" + q + "_us"});
  };
  if (idle) add_columns("idle");
  if (queued) add_columns("queued");
  Table table(std::move(columns));
  table.set_title("launch latency");
  for (const PieceText& text : kPieceTexts) {
    const std::string_view label = gpu ? text.name : text.on_cpu;
    if (label.empty() || (text.piece == LaunchPiece::kOverlap && l.early() == 0)) continue;
    const PieceSamples& samples = l.of(text.piece);
    std::vector<Cell> cells = {std::string(label)};
    auto add = [&](const std::vector<double>& v, int64_t launches, bool is_queued) {
      cells.push_back(Cell::of(static_cast<int64_t>(v.size())));
      for (const double& q : kQuantiles)
        cells.push_back(!v.empty()      ? Cell::of(quantile(v, q), 2)
                        : launches == 0 ? Cell::unknown(why_no_device_work(timeline))
                        // The reason stands in the first quantile's cell; the others would repeat it.
                        : &q != kQuantiles ? Cell::unknown({})
                                           : Cell::unknown(unknown_piece(timeline, text.piece, is_queued)));
    };
    if (idle) add(samples.idle, l.idle, false);
    if (queued) add(samples.queued, l.queued, true);
    table.add_row(std::move(cells));
  }
  if (gpu) {
    const PieceSamples& calls = l.of(LaunchPiece::kCall);
    std::vector<double> all = calls.idle;
    all.insert(all.end(), calls.queued.begin(), calls.queued.end());
    if (l.plain_call_us >= 0)
      table.add_note(fmt::format("CPU call: {:.2f} us{}, median", l.plain_call_us,
                                 all.empty() ? std::string(" with no profiler attached")
                                             : fmt::format(" ({:.2f} us while profiled)", median(all))));
    else if (!all.empty())
      table.add_note(fmt::format("CPU call: {:.2f} us while profiled; without a profiler: not measured", median(all)));
    table.add_note("idle: the stream was empty when the call began; queued: it waited for earlier work");
  }
  if (const int64_t early = l.early())
    table.add_note(
        fmt::format("{} launch{} began before the previous kernel had ended (programmatic dependent launch): "
                    "an overlap in place of a gap",
                    early, early == 1 ? "" : "es"));
  for (const auto& [kind, n] : l.disturbed) table.add_note(fmt::format("{} of the calls met: {}", n, kind));
  if (!l.first.empty())
    table.add_note(fmt::format("{} first launch{} that loaded or compiled code: not counted here, see below",
                               l.first.size(), l.first.size() == 1 ? "" : "es"));
  if (!l.graphs.empty()) table.add_note("launches of graphs are not counted here, see below");
  return table;
}

namespace {

/// "compile of add: toolchain 6.53 ms, cubin 5.1 ms, llvm 4.8 ms, 12 others 310 us": the longest first.
std::string phases_text(const FirstLaunch& f) {
  constexpr size_t kNamed = 6;
  std::vector<std::pair<std::string, double>> phases = f.phases;
  std::stable_sort(phases.begin(), phases.end(), [](auto& a, auto& b) { return a.second > b.second; });
  std::string text = fmt::format("compile of {}: ", f.kernel);
  double rest = f.compile;
  for (size_t i = 0; i < std::min(phases.size(), kNamed); ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", phases[i].first, report::human_time(phases[i].second));
    rest -= phases[i].second;
  }
  return text + fmt::format(", everything else {}", report::human_time(std::max(rest, 0.0)));
}

}  // namespace

Table first_launches_table(const Latency& l) {
  Table table({{"first launch of", "", Align::kLeft, "kernel"},
               {"whole", "", Align::kRight, "whole_us"},
               {"compile", "", Align::kRight, "compile_us"},
               {"module load", "", Align::kRight, "load_us"},
               {"lazy loading", "", Align::kRight, "lazy_load_us"},
               {"driver's compiler", "", Align::kRight, "driver_jit_us"},
               {"the launch itself", "", Align::kRight, "rest_us"}});
  auto part = [](double v) { return v > 0 ? time_cell(v) : Cell(""); };
  for (const FirstLaunch& f : l.first)
    table.add_row({f.kernel, time_cell(f.whole), part(f.compile), part(f.load), part(f.lazy_load), part(f.driver_jit),
                   time_cell(f.rest())});
  for (const FirstLaunch& f : l.first)
    if (!f.phases.empty()) table.add_note(phases_text(f));
  return table;
}

Table graphs_table(const Latency& l) {
  Table table({{"graph", "", Align::kLeft},
               {"launches", ""},
               {"nodes", ""},
               {"CPU call", "us"},
               {"launch → first start", "us", Align::kRight, "launch_start"},
               {"first start → last end", "us", Align::kRight, "makespan"},
               {"in kernels", "us"},
               {"node gap", "us"}});
  const char* no_call = "the call that launched it was not recorded";
  auto cell = [](double v, const char* why) { return v < 0 && why ? Cell::unknown(why) : Cell::of(v, 2); };
  for (const GraphLaunches& g : l.graphs)
    table.add_row({fmt::format("{}", g.graph), Cell::of(g.launches), Cell::of(g.nodes), cell(g.call, no_call),
                   cell(g.launch_start, no_call), Cell::of(g.makespan, 2), Cell::of(g.work, 2),
                   g.nodes > 1 ? cell(g.node_gap, nullptr) : Cell("")});
  if (l.plain_graph_us >= 0)
    table.add_note(fmt::format("CPU call: {:.2f} us with no profiler attached, median", l.plain_graph_us));
  else
    table.add_note("CPU call: while profiled, which makes it much longer; without a profiler: not measured");
  table.add_note("medians over launches; one call starts all nodes, so a node has no call of its own");
  return table;
}

}  // namespace kiln::profiler
