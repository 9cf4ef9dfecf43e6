#include "profiler/profile/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "profiler/measure/stats.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/places.h"
#include "profiler/profile/schedule.h"
#include "support/diag.h"

namespace kiln::profiler {

namespace {

using trace::Step;

/// Whether spans of a step are rows of their own; the others count to the row around them.
bool is_row(Step step, bool lines) {
  switch (step) {
    case Step::kStatement:
      return lines;
    case Step::kRange:
    case Step::kOperation:
    case Step::kLaunch:
    case Step::kCompile:
    case Step::kLoad:
    case Step::kContext:
    case Step::kGraphLaunch:
    case Step::kLibrary:
    case Step::kCopyIn:
    case Step::kCopyOut:
    case Step::kCopy:
    case Step::kFill:
    case Step::kWait:
    case Step::kHostKernel:
      return true;
    case Step::kPlan:
    case Step::kBind:
    case Step::kKey:
    case Step::kLookup:
    case Step::kPhase:
    case Step::kTensorMap:
    case Step::kDriver:
    case Step::kMemory:
    case Step::kReserve:
      return false;
  }
  return false;
}

/// A span or a call of the driver that is, or belongs to, a row.
struct Node {
  int parent = -1;  // the nearest node around it that is a row
  int row = -1;     // -1: counts to its parent
};

class OpsMaker {
 public:
  OpsMaker(const Timeline& timeline, const OpsOptions& options) : t_(timeline), options_(options) {}

  Ops make() {
    add_spans();
    add_calls();
    for (const Work& w : t_.work) add_work(w);
    for (const MemoryChange& m : t_.memory)
      if (!m.reserve) add_memory(m);
    for (auto& [key, row] : work_rows_) out_.work.push_back(std::move(row));
    declare();
    totals();
    return std::move(out_);
  }

 private:
  size_t row_of(std::string kind, std::string name, std::string shapes, std::string stack) {
    auto [found, added] = row_ids_.try_emplace({kind, name, shapes, stack}, out_.ops.size());
    if (added) out_.ops.push_back({std::move(kind), std::move(name), std::move(shapes), std::move(stack)});
    return found->second;
  }
  /// The innermost lines of the script at or around a span, as many as are asked for.
  std::string stack_at(int span) const {
    std::string text;
    int64_t left = options_.stack;
    for (; span >= 0 && left > 0; span = t_.spans[static_cast<size_t>(span)].parent) {
      const Span& s = t_.spans[static_cast<size_t>(span)];
      if (s.step != Step::kStatement || s.file.empty()) continue;
      text += fmt::format("{}{}", text.empty() ? "" : " ← ", line_of(t_, span));
      --left;
    }
    return text;
  }
  OpRow& row(int node) { return out_.ops[static_cast<size_t>(nodes_[static_cast<size_t>(node)].row)]; }
  const Node& node(int i) const { return nodes_[static_cast<size_t>(i)]; }

  /// Counts one call of a row; `node` is linked already.
  void add_call(int i, Ns duration) {
    OpRow& r = row(i);
    ++r.calls;
    r.self_cpu += duration;
    // Recursion would count the inner call's time twice.
    if (!is_inside_itself(i)) r.cpu += duration;
    if (node(i).parent >= 0)
      row(node(i).parent).self_cpu -= duration;
    else
      out_.totals.cpu += duration;
  }
  bool is_inside_itself(int i) const {
    for (int p = node(i).parent; p >= 0; p = node(p).parent)
      if (node(p).row == node(i).row) return true;
    return false;
  }
  /// The nearest row at or around a span.
  int row_node(int span) const {
    if (span < 0) return -1;
    // A span that is no row stands for the row around it.
    return node(span).row >= 0 ? span : node(span).parent;
  }

  void add_spans() {
    nodes_.resize(t_.spans.size());
    for (size_t i = 0; i < t_.spans.size(); ++i) {
      const Span& s = t_.spans[i];
      Node& n = nodes_[i];
      n.parent = row_node(s.parent);  // parents come first
      if (!is_row(s.step, options_.lines)) continue;
      std::string name = s.name.empty() ? std::string(trace::name(s.step)) : s.name;
      if (s.step == Step::kStatement) name = fmt::format("{}:{} {}", s.file, s.line, s.name);
      n.row = static_cast<int>(row_of(std::string(trace::name(s.step)), std::move(name),
                                      options_.by_shape ? s.detail : std::string(), stack_at(s.parent)));
      add_call(static_cast<int>(i), s.duration());
      if (s.step == Step::kRange) declare_range(row(static_cast<int>(i)), s);
    }
  }

  static void declare_range(OpRow& r, const Span& s) {
    if (s.flop > 0) r.flop = std::max(r.flop, 0.0) + s.flop;
    if (s.bytes > 0) r.bytes = std::max(r.bytes, 0.0) + static_cast<double>(s.bytes);
    if (!s.operands.empty()) r.operands = s.operands;
  }

  void add_calls() {
    std::unordered_map<uint32_t, int> last;  // per thread: the last call's node, for calls that make others
    std::vector<int> node_of(t_.calls.size(), -1);
    std::vector<Ns> ends(nodes_.size() + t_.calls.size(), 0);
    for (size_t i = 0; i < t_.calls.size(); ++i) {
      const ApiCall& c = t_.calls[i];
      const auto id = static_cast<int>(nodes_.size());
      Node n;
      n.parent = row_node(c.span);
      int& before = last.try_emplace(c.thread, -1).first->second;
      int outer = before;
      // A call that ended before this one does not enclose it: calls of a thread come by start.
      while (outer >= static_cast<int>(t_.spans.size()) && ends[static_cast<size_t>(outer)] < c.end)
        outer = node(outer).parent;
      if (outer >= static_cast<int>(t_.spans.size())) n.parent = outer;
      n.row = static_cast<int>(row_of("driver call", c.name, {}, stack_at(c.span)));
      nodes_.push_back(n);
      ends[static_cast<size_t>(id)] = c.end;
      before = id;
      add_call(id, c.end - c.start);
    }
  }

  void add_work(const Work& w) {
    Totals& total = out_.totals;
    const Ns time = w.is_lost() ? 0 : w.duration();
    // What is lost counts as a launch, without a time.
    total.device += time;
    total.lost += w.is_lost();
    switch (w.kind) {
      case WorkKind::kKernel:
        ++total.kernels;
        break;
      case WorkKind::kCopy:
        ++total.copies;
        break;
      case WorkKind::kFill:
        ++total.fills;
        break;
    }
    if (const int launcher = row_node(w.span); launcher < 0) {
      total.unattributed += time;
    } else {
      row(launcher).self_device += time;
      // A set, since a row may enclose itself at several depths.
      std::set<int> seen;  // a row that contains itself counts it once
      for (int p = launcher; p >= 0; p = node(p).parent)
        if (seen.insert(node(p).row).second) row(p).device += time;
    }
    if (!w.is_lost()) ran_.push_back({w.start, w.end});
    count(w);
  }

  void add_memory(const MemoryChange& m) {
    const int at = row_node(m.span);
    if (at < 0) return;
    row(at).self_memory += m.bytes;
    std::set<int> seen;
    for (int p = at; p >= 0; p = node(p).parent)
      if (seen.insert(node(p).row).second) row(p).memory += m.bytes;
  }

  void count(const Work& w) {
    using Configuration = std::array<uint32_t, 9>;
    Configuration configuration{};
    std::copy(w.grid.begin(), w.grid.end(), configuration.begin());
    std::copy(w.block.begin(), w.block.end(), configuration.begin() + 3);
    std::copy(w.cluster.begin(), w.cluster.end(), configuration.begin() + 6);
    auto [found, added] = work_rows_.try_emplace(
        {w.kind, w.name, options_.by_shape ? configuration : Configuration{}, options_.by_shape ? w.bytes : 0});
    WorkRow& r = found->second;
    if (added) {
      r.kind = w.kind, r.name = w.name, r.grid = w.grid, r.block = w.block, r.cluster = w.cluster;
      r.registers = w.registers, r.static_shared = w.static_shared, r.dynamic_shared = w.dynamic_shared;
      r.local_bytes = w.local_bytes;
    }
    r.same_launch = r.same_launch && r.grid == w.grid && r.block == w.block && r.cluster == w.cluster &&
                    r.registers == w.registers && r.dynamic_shared == w.dynamic_shared;
    ++r.calls;
    r.copied += w.bytes;
    if (w.is_lost()) {
      ++r.lost;
    } else {
      r.total += w.duration();
      r.us.push_back(us(w.duration()));
    }
  }

  /// The work declared for one step of %profile applies to every step, and to its kernel when it has just one.
  void declare() {
    int64_t kernels = 0;
    WorkRow* only = nullptr;
    for (WorkRow& w : out_.work) {
      if (w.kind != WorkKind::kKernel) continue;
      ++kernels;
      only = &w;
    }
    for (OpRow& r : out_.ops) {
      if (r.kind != trace::name(Step::kRange) || r.name != kStepRange) continue;
      const auto calls = static_cast<double>(r.calls);
      if (options_.flop >= 0) r.flop = options_.flop * calls;
      if (options_.bytes >= 0) r.bytes = options_.bytes * calls;
      // Else nobody knows how the declared work is shared among kernels.
      if (kernels == 1 && only->calls == r.calls) only->flop = r.flop, only->bytes = r.bytes;
    }
  }

  void totals() {
    Totals& total = out_.totals;
    total.window = t_.end - t_.start;
    total.dropped = t_.dropped;
    // Work may end after the profile did.
    for (TimeRange& r : ran_) r = clipped(r, {t_.start, t_.end});
    total.busy = union_of(std::move(ran_));
    std::set<std::pair<int, int>> launches;
    for (const Work& w : t_.work)
      if (w.kind == WorkKind::kKernel)
        // Work whose call is not known counts as a launch of its own.
        launches.insert({w.call, w.call < 0 ? static_cast<int>(&w - t_.work.data()) : 0});
    total.launches = static_cast<int64_t>(launches.size());
  }

  const Timeline& t_;
  const OpsOptions& options_;
  Ops out_;
  std::vector<Node> nodes_;  // of spans, then of calls
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> row_ids_;
  std::map<std::tuple<WorkKind, std::string, std::array<uint32_t, 9>, int64_t>, WorkRow> work_rows_;
  std::vector<TimeRange> ran_;
};

double average(Ns total, int64_t calls) { return calls ? us(total) / static_cast<double>(calls) : 0; }

double sort_key(const OpRow& r, OpSort by) {
  switch (by) {
    case OpSort::kSelfCpu:
      return static_cast<double>(r.self_cpu);
    case OpSort::kCpu:
      return static_cast<double>(r.cpu);
    case OpSort::kSelfDevice:
      return static_cast<double>(r.self_device);
    case OpSort::kDevice:
      return static_cast<double>(r.device);
    case OpSort::kCalls:
      return static_cast<double>(r.calls);
    case OpSort::kAverage:
      return average(r.device ? r.device : r.cpu, r.calls);
    case OpSort::kSelfMemory:
      return static_cast<double>(r.self_memory);
    case OpSort::kMemory:
      return static_cast<double>(r.memory);
    case OpSort::kName:
      return 0;
  }
  return 0;
}

double sort_key(const WorkRow& r, OpSort by) {
  if (by == OpSort::kCalls) return static_cast<double>(r.calls);
  if (by == OpSort::kAverage) return average(r.total, r.calls - r.lost);
  return by == OpSort::kName ? 0 : static_cast<double>(r.total);
}

template <class Row>
void sort_rows(std::vector<Row>& rows, OpSort by) {
  std::stable_sort(rows.begin(), rows.end(), [by](const Row& a, const Row& b) {
    const double x = sort_key(a, by), y = sort_key(b, by);
    return x != y ? x > y : by == OpSort::kName && a.name < b.name;
  });
}

struct SortName {
  std::string_view name;
  OpSort sort;
};
constexpr SortName kSortNames[] = {
    {"self_cpu", OpSort::kSelfCpu},
    {"cpu", OpSort::kCpu},
    {"self_gpu", OpSort::kSelfDevice},
    {"gpu", OpSort::kDevice},
    {"calls", OpSort::kCalls},
    {"average", OpSort::kAverage},
    {"self_memory", OpSort::kSelfMemory},
    {"memory", OpSort::kMemory},
    {"name", OpSort::kName},
};
constexpr SortName kTorchSortNames[] = {
    {"self_cpu_time_total", OpSort::kSelfCpu},
    {"cpu_time_total", OpSort::kCpu},
    {"self_cuda_time_total", OpSort::kSelfDevice},
    {"cuda_time_total", OpSort::kDevice},
    {"self_device_time_total", OpSort::kSelfDevice},
    {"device_time_total", OpSort::kDevice},
    {"cuda_time", OpSort::kAverage},
    {"device_time", OpSort::kAverage},
    {"cpu_time", OpSort::kAverage},
    {"count", OpSort::kCalls},
    {"self_cpu_memory_usage", OpSort::kSelfMemory},
    {"self_cuda_memory_usage", OpSort::kSelfMemory},
    {"self_device_memory_usage", OpSort::kSelfMemory},
    {"cpu_memory_usage", OpSort::kMemory},
    {"cuda_memory_usage", OpSort::kMemory},
    {"device_memory_usage", OpSort::kMemory},
    {"key", OpSort::kName},
};

}  // namespace

Result<OpSort> parse_op_sort(std::string_view text) {
  for (const SortName& s : kSortNames)
    if (s.name == text) return s.sort;
  // torch's names are taken too, so that sort_by of its profiler works.
  for (const SortName& s : kTorchSortNames)
    if (s.name == text) return s.sort;
  std::vector<std::string> names;
  for (const SortName& s : kSortNames) names.emplace_back(s.name);
  Diagnostic d =
      error(ErrorKind::kName, "a profile has no column '{}' to sort by; it has {}", text, fmt::join(names, ", "));
  for (const SortName& s : kTorchSortNames) names.emplace_back(s.name);
  const std::string near = nearest_name(text, names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
}

Ops ops(const Timeline& timeline, const OpsOptions& options) {
  Ops out = OpsMaker(timeline, options).make();
  // By the device's time where there is any: that is what a profile of a GPU is asked for.
  const OpSort by = options.sort.value_or(out.totals.device > 0 ? OpSort::kDevice : OpSort::kCpu);
  sort_rows(out.ops, by);
  sort_rows(out.work, by);
  return out;
}

}  // namespace kiln::profiler
