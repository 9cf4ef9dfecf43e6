// The tables of ops.h.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "compiler/target/target.h"
#include "profiler/measure/stats.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/ops.h"
#include "profiler/roofline/occupancy.h"
#include "support/text_width.h"

namespace kiln::profiler {

namespace {

using report::Align;
using report::Cell;
using report::Column;
using report::Table;

constexpr int kLongestName = 60;  // columns, in text

Cell name_cell(const std::string& name) {
  if (report::display_width(name) <= kLongestName) return name;
  return std::string(beginning_of_width(name, kLongestName - 1)) + "…";
}

Cell percent(double fraction) { return Cell::of(fraction * 100, 1); }
Cell share(Ns part, Ns whole) {
  return whole > 0 ? percent(static_cast<double>(part) / static_cast<double>(whole)) : Cell("");
}

std::string dims(const std::array<uint32_t, 3>& d) {
  if (d[2] > 1) return fmt::format("{}×{}×{}", d[0], d[1], d[2]);
  return d[1] > 1 ? fmt::format("{}×{}", d[0], d[1]) : fmt::format("{}", d[0]);
}
bool is_known(const std::array<uint32_t, 3>& d) { return d[0] > 0; }
bool is_cluster(const std::array<uint32_t, 3>& d) { return d[0] * d[1] * d[2] > 1; }

size_t shown_rows(size_t count, const OpsOptions& options) {
  return options.rows > 0 ? std::min(count, static_cast<size_t>(options.rows)) : count;
}
void note_hidden(Table& table, size_t count, size_t shown) {
  if (shown < count)
    table.add_note(fmt::format("{} more row{}: rows=0 shows all", count - shown, count - shown == 1 ? "" : "s"));
}

template <class Rows, class Has>
bool any(const Rows& rows, Has has) {
  return std::any_of(rows.begin(), rows.end(), has);
}

/// Per second of the device's time; empty where nothing was declared.
Cell rate_cell(double amount, Ns device, double unit, int digits) {
  if (amount < 0) return "";
  if (device <= 0) return Cell::unknown("nothing that ran on the device is known to belong to it");
  return Cell::of(amount / static_cast<double>(device) / unit, digits);  // 1e9 per second is 1 per nanosecond
}
constexpr double kGiga = 1, kTera = 1e3;

Cell or_unknown(int64_t v) { return v >= 0 ? Cell::of(v) : Cell::unknown("the profile has no record of it"); }

void add_resources(std::vector<Cell>& cells, const Timeline& t, const WorkRow& w) {
  if (w.kind != WorkKind::kKernel) {
    cells.insert(cells.end(), 7, Cell(""));
    return;
  }
  cells.push_back(is_known(w.block) ? Cell(dims(w.block)) : Cell::unknown("the profile has no record of it"));
  cells.push_back(or_unknown(w.registers));
  cells.push_back(or_unknown(w.static_shared));
  cells.push_back(or_unknown(w.dynamic_shared));
  cells.push_back(or_unknown(w.local_bytes));
  if (auto o = occupancy_of(t, w)) {
    cells.push_back(percent(o->fraction));
    cells.emplace_back(o->limiter);
  } else {
    cells.push_back(Cell::unknown("it follows from registers, shared memory and the target"));
    cells.emplace_back("");
  }
}

std::string device_word(const Timeline& t) { return t.is_cuda() ? "GPU" : "kernel"; }

}  // namespace

std::optional<WorkOccupancy> occupancy_of(const Timeline& timeline, const WorkRow& row) {
  const target::Target* target = target::find(timeline.target);
  if (!target || !target->is_cuda() || row.registers < 0 || row.static_shared < 0 || row.dynamic_shared < 0 ||
      !is_known(row.block))
    return std::nullopt;
  const Occupancy o = occupancy(*target, {.threads = static_cast<int>(row.block[0] * row.block[1] * row.block[2]),
                                          .registers_per_thread = row.registers,
                                          .shared_bytes = row.static_shared + row.dynamic_shared});
  return WorkOccupancy{o.fraction, std::string(name(o.limiter))};
}

report::Table ops_table(const Timeline& timeline, const Ops& ops, const OpsOptions& options) {
  const bool rate = any(ops.ops, [](const OpRow& r) { return r.bytes >= 0; });
  const bool math = any(ops.ops, [](const OpRow& r) { return r.flop >= 0; });
  const std::string device = device_word(timeline);
  std::vector<Column> columns = {{"name", "", Align::kLeft}, {"kind", "", Align::kLeft}};
  if (options.by_shape) columns.push_back({"shapes", "", Align::kLeft});
  if (options.stack > 0) columns.push_back({"called at", "", Align::kLeft, "stack"});
  columns.insert(columns.end(), {{"calls", ""},
                                 {"self CPU", "", Align::kRight, "self_cpu_us"},
                                 {"%", "", Align::kRight, "self_cpu_percent"},
                                 {"CPU", "", Align::kRight, "cpu_us"},
                                 {"self " + device, "", Align::kRight, "self_device_us"},
                                 {"%", "", Align::kRight, "self_device_percent"},
                                 {device, "", Align::kRight, "device_us"},
                                 {"CPU/call", "", Align::kRight, "cpu_per_call_us"},
                                 {device + "/call", "", Align::kRight, "device_per_call_us"}});
  if (options.memory)
    columns.insert(columns.end(), {{"self memory", "", Align::kRight, "self_memory_bytes"},
                                   {"memory", "", Align::kRight, "memory_bytes"}});
  if (rate) columns.push_back({"rate", "GB/s"});
  if (math) columns.push_back({"math", "TFLOP/s"});
  Table table(std::move(columns));
  table.set_title("ranges and operations");
  const std::string why = why_no_device_work(timeline);
  // The reason stands once.
  auto device_time = [&](Ns time) { return why.empty() ? time_cell(time) : Cell::unknown(why); };
  auto total_time = [&](double v) { return why.empty() ? time_cell(v) : Cell::unknown({}); };
  const size_t shown = shown_rows(ops.ops.size(), options);
  for (size_t i = 0; i < shown; ++i) {
    const OpRow& r = ops.ops[i];
    std::vector<Cell> cells = {name_cell(r.name), r.kind};
    if (options.by_shape) cells.emplace_back(r.shapes);
    if (options.stack > 0) cells.emplace_back(r.stack);
    const double calls = static_cast<double>(std::max<int64_t>(r.calls, 1));
    cells.insert(cells.end(),
                 {Cell::of(r.calls), time_cell(r.self_cpu), share(r.self_cpu, ops.totals.cpu), time_cell(r.cpu),
                  device_time(r.self_device), share(r.self_device, ops.totals.device), total_time(us(r.device)),
                  time_cell(us(r.cpu) / calls), total_time(us(r.device) / calls)});
    if (options.memory) cells.push_back(bytes_cell(r.self_memory)), cells.push_back(bytes_cell(r.memory));
    if (rate) cells.push_back(rate_cell(r.bytes, r.device, kGiga, 1));
    if (math) cells.push_back(rate_cell(r.flop, r.device, kTera, 3));
    table.add_row(std::move(cells));
  }
  note_hidden(table, ops.ops.size(), shown);
  table.add_note(fmt::format("self: without the rows inside it; {}: time of the work it launched, wherever it ran{}",
                             device, rate || math ? "; rates: as declared, over that time" : ""));
  if (options.memory) table.add_note("memory: of tensors, allocated minus freed");
  return table;
}

Cell achieved_cell(const OpsOptions& options, const WorkRow& w) {
  if (w.kind != WorkKind::kKernel) return Cell("");
  for (const auto& [kernel, percent_of_warps] : options.achieved)
    if (kernel == w.name) return Cell::of(percent_of_warps, 1);
  return Cell::unknown("the counters have no launch of it");
}

/// How many clusters of a kernel fit the GPU at once, for each row that has any.
void note_clusters(report::Table& table, const Timeline& timeline, std::span<const WorkRow> rows) {
  const target::Target* target = target::find(timeline.target);
  for (const WorkRow& w : rows) {
    if (!is_cluster(w.cluster) || !target || !target->is_cuda() || timeline.multiprocessors == 0) continue;
    if (!is_known(w.block) || w.registers < 0 || w.static_shared < 0 || w.dynamic_shared < 0) continue;
    const int blocks = static_cast<int>(w.cluster[0] * w.cluster[1] * w.cluster[2]);
    const Occupancy o = occupancy(*target, {.threads = static_cast<int>(w.block[0] * w.block[1] * w.block[2]),
                                            .registers_per_thread = w.registers,
                                            .shared_bytes = w.static_shared + w.dynamic_shared});
    table.add_note(fmt::format(
        "{}: at most {} clusters of {} blocks at once, by what {} SMs hold; fewer where {} does not divide "
        "what a GPC holds",
        w.name, most_clusters(o, timeline.multiprocessors, blocks), blocks, timeline.multiprocessors, blocks));
  }
}

report::Table work_table(const Timeline& timeline, const Ops& ops, const OpsOptions& options) {
  const bool gpu = timeline.is_cuda();
  const bool rate = any(ops.work, [](const WorkRow& r) { return r.bytes >= 0 || r.copied > 0; });
  const bool math = any(ops.work, [](const WorkRow& r) { return r.flop >= 0; });
  const bool cluster = any(ops.work, [](const WorkRow& r) { return is_cluster(r.cluster); });
  std::vector<Column> columns = {{"kernel", "", Align::kLeft},
                                 {"calls", ""},
                                 {"total", "", Align::kRight, "total_us"},
                                 {"%", "", Align::kRight, "percent"},
                                 {"mean", "", Align::kRight, "mean_us"},
                                 {"min", "", Align::kRight, "min_us"},
                                 {"median", "", Align::kRight, "median_us"},
                                 {"max", "", Align::kRight, "max_us"}};
  columns.push_back({"grid", "", Align::kRight});
  if (gpu && cluster) columns.push_back({"cluster", "", Align::kRight});
  if (gpu)
    columns.insert(columns.end(), {{"block", ""},
                                   {"regs", ""},
                                   {"static", "B", Align::kRight, "static_shared"},
                                   {"dynamic", "B", Align::kRight, "dynamic_shared"},
                                   {"local", "B", Align::kRight, "local_bytes"},
                                   {"occupancy", "%"},
                                   {"limited by", "", Align::kLeft}});
  const bool achieved = gpu && !options.achieved.empty();
  if (achieved) columns.push_back({"achieved", "%"});
  if (rate) columns.push_back({"rate", "GB/s"});
  if (math) columns.push_back({"math", "TFLOP/s"});
  Table table(std::move(columns));
  table.set_title(gpu ? "kernels, copies and fills" : "kernels on the CPU");
  bool varies = false;
  const size_t shown = shown_rows(ops.work.size(), options);
  for (size_t i = 0; i < shown; ++i) {
    const WorkRow& w = ops.work[i];
    const Cell lost = Cell::unknown("the profiler lost the times of these launches");
    auto figure = [&](double v) { return w.us.empty() ? lost : time_cell(v); };
    const Summary s = summarize(w.us);
    std::vector<Cell> cells = {
        name_cell(w.name), Cell::of(w.calls), figure(us(w.total)), share(w.total, ops.totals.device),
        figure(s.mean),    figure(s.min),     figure(s.median),    figure(s.max)};
    varies = varies || !w.same_launch;
    cells.push_back(w.kind != WorkKind::kKernel ? Cell("")
                    : is_known(w.grid)          ? Cell(dims(w.grid) + (w.same_launch ? "" : " …"))
                                                : Cell::unknown("the profile has no record of it"));
    if (gpu && cluster) cells.emplace_back(is_cluster(w.cluster) ? dims(w.cluster) : "");
    if (gpu) add_resources(cells, timeline, w);
    if (achieved) cells.push_back(achieved_cell(options, w));
    if (rate)
      cells.push_back(rate_cell(w.bytes >= 0   ? w.bytes
                                : w.copied > 0 ? static_cast<double>(w.copied)
                                               : -1,
                                w.total, kGiga, 1));
    if (math) cells.push_back(rate_cell(w.flop, w.total, kTera, 3));
    table.add_row(std::move(cells));
  }
  note_hidden(table, ops.work.size(), shown);
  if (varies) table.add_note("…: several launch configurations, the first is shown; `shapes` separates them");
  if (achieved) table.add_note("achieved: by counters, in a separate run");
  if (cluster) note_clusters(table, timeline, std::span(ops.work).first(shown));
  if (gpu)
    table.add_note("local: spills and stack per thread; occupancy: theoretical; times: from start to end on the GPU");
  return table;
}

std::string totals_line(const Timeline& timeline, const Totals& t) {
  const std::string why = why_no_device_work(timeline);
  const std::string device = timeline.is_cuda() ? "GPU" : "kernels";
  std::string out = why.empty() ? fmt::format("{} busy {:.1f} % of {}", device, t.busy_fraction() * 100,
                                              report::human_time(us(t.window)))
                                : fmt::format("GPU busy: unknown ({}); {}", why, report::human_time(us(t.window)));
  out += fmt::format(" · CPU total {}", report::human_time(us(t.cpu)));
  if (why.empty()) out += fmt::format(" · {} total {}", device, report::human_time(us(t.device)));
  out += fmt::format(" · {} kernel{} in {} launch{}", t.kernels, t.kernels == 1 ? "" : "s", t.launches,
                     t.launches == 1 ? "" : "es");
  if (t.copies) out += fmt::format(" · {} cop{}", t.copies, t.copies == 1 ? "y" : "ies");
  if (t.fills) out += fmt::format(" · {} fill{}", t.fills, t.fills == 1 ? "" : "s");
  if (timeline.is_cuda()) out += fmt::format(" · {} records dropped", t.dropped);
  if (t.lost) out += fmt::format(" · {} without times", t.lost);
  return out;
}

report::Table totals_table(const Timeline& timeline, const Ops& ops) {
  const Totals& t = ops.totals;
  const bool gpu = timeline.is_cuda();
  const std::string device = gpu ? "GPU" : "kernels", why = why_no_device_work(timeline);
  Table table({{"total", "", Align::kLeft, "figure"}, {"value", ""}, {"", "", Align::kLeft, "unit"}});
  auto add_time = [&](std::string figure, Ns time) { table.add_row({std::move(figure), Cell::of(us(time), 1), "us"}); };
  auto add_count = [&](std::string figure, int64_t n) { table.add_row({std::move(figure), Cell::of(n), ""}); };
  auto add_device = [&](std::string figure, Cell value, const char* unit) {
    table.add_row({std::move(figure), why.empty() ? std::move(value) : Cell::unknown(why), unit});
  };
  add_time("window", t.window);
  add_device(device + " busy", percent(t.busy_fraction()), "%");
  add_time("CPU total", t.cpu);
  add_device(device + " total", Cell::of(us(t.device), 1), "us");
  if (t.unattributed) add_device("launched outside of all rows", Cell::of(us(t.unattributed), 1), "us");
  add_device("kernels", Cell::of(t.kernels), "");
  add_device("launches", Cell::of(t.launches), "");
  if (t.copies) add_count("copies", t.copies);
  if (t.fills) add_count("fills", t.fills);
  if (gpu) add_device("records dropped", Cell::of(t.dropped), "");
  if (t.lost) add_count("without times", t.lost);
  table.add_note(totals_line(timeline, t));
  for (const Unknown& u : timeline.unknown) table.add_note(fmt::format("not known: {}: {}", u.what, u.why));
  return table;
}

}  // namespace kiln::profiler
