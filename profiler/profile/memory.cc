#include "profiler/profile/memory.h"

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

const Span* around(const Timeline& t, int span, trace::Step step) {
  for (; span >= 0; span = t.spans[static_cast<size_t>(span)].parent)
    if (t.spans[static_cast<size_t>(span)].step == step) return &t.spans[static_cast<size_t>(span)];
  return nullptr;
}

std::string statement_of_line(const Timeline& t, int span) {
  const Span* s = around(t, span, trace::Step::kStatement);
  return s ? fmt::format("{}:{} {}", s->file, s->line, s->name) : std::string();
}

}  // namespace

Memory memory(const Timeline& timeline) {
  std::map<std::tuple<std::string, std::string, std::string>, MemoryRow> rows;
  std::map<std::string, MemoryTotals> devices;
  for (const MemoryChange& m : timeline.memory) {
    MemoryTotals& d = devices[m.device];
    d.device = m.device;
    // What the allocator takes from the driver is reported per device only: it belongs to no tensor.
    if (m.reserve) {
      (m.bytes > 0 ? d.reserve_taken : d.reserve_returned) += std::abs(m.bytes);
      continue;
    }
    const Span* operation = around(timeline, m.span, trace::Step::kOperation);
    // A free is charged to the statement that released the last handle, which may differ from the one that allocated.
    std::string line = statement_of_line(timeline, m.span);
    MemoryRow& r = rows[{m.device, line, operation ? operation->name : std::string()}];
    r.device = m.device, r.operation = operation ? operation->name : std::string();
    if (m.bytes > 0) {
      ++r.allocations, ++d.allocations;
      r.allocated += m.bytes, d.allocated += m.bytes;
      r.largest = std::max(r.largest, m.bytes);
    } else {
      ++r.frees;
      r.freed -= m.bytes;
    }
    d.live = m.total;
    // The first time that the peak was reached names the line.
    if (m.total > d.peak) d.peak = m.total, d.peak_line = line;
    r.line = std::move(line);
  }
  Memory out;
  for (auto& [key, row] : rows) out.rows.push_back(std::move(row));
  // By what was allocated: a line that frees what others made comes behind them.
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const MemoryRow& a, const MemoryRow& b) {
    return a.allocated != b.allocated ? a.allocated > b.allocated : a.freed > b.freed;
  });
  for (auto& [name, totals] : devices) out.devices.push_back(std::move(totals));
  return out;
}

Table memory_table(const Memory& memory, int64_t rows) {
  const bool several = memory.devices.size() > 1;
  std::vector<report::Column> columns;
  if (several) columns.push_back({"device", "", Align::kLeft});
  columns.insert(columns.end(), {{"line", "", Align::kLeft},
                                 {"operation", "", Align::kLeft},
                                 {"allocations", ""},
                                 {"allocated", "", Align::kRight, "allocated_bytes"},
                                 {"largest", "", Align::kRight, "largest_bytes"},
                                 {"frees", ""},
                                 {"freed", "", Align::kRight, "freed_bytes"},
                                 {"net", "", Align::kRight, "net_bytes"}});
  Table table(std::move(columns));
  table.set_title("memory of tensors, by line and operation");
  const size_t shown = rows > 0 ? std::min(memory.rows.size(), static_cast<size_t>(rows)) : memory.rows.size();
  for (size_t i = 0; i < shown; ++i) {
    const MemoryRow& r = memory.rows[i];
    std::vector<Cell> cells;
    if (several) cells.emplace_back(r.device);
    cells.insert(cells.end(),
                 {r.line, r.operation, Cell::of(r.allocations), bytes_cell(r.allocated), bytes_cell(r.largest),
                  Cell::of(r.frees), bytes_cell(r.freed), bytes_cell(r.allocated - r.freed)});
    table.add_row(std::move(cells));
  }
  if (shown < memory.rows.size())
    table.add_note(fmt::format("{} more row{}: rows=0 shows all", memory.rows.size() - shown,
                               memory.rows.size() - shown == 1 ? "" : "s"));
  table.add_note(memory.rows.empty()
                     ? "no tensor was allocated or freed"
                     : "net: another line may free it; the allocator keeps freed memory for the next tensor");
  return table;
}

Table memory_totals_table(const Memory& memory) {
  Table table({{"device", "", Align::kLeft},
               {"allocations", ""},
               {"allocated", "", Align::kRight, "allocated_bytes"},
               {"peak", "", Align::kRight, "peak_bytes"},
               {"live at the end", "", Align::kRight, "live_bytes"},
               {"taken from the driver", "", Align::kRight, "reserve_taken_bytes"},
               {"returned to the driver", "", Align::kRight, "reserve_returned_bytes"},
               {"peak at", "", Align::kLeft}});
  for (const MemoryTotals& d : memory.devices)
    table.add_row({d.device, Cell::of(d.allocations), bytes_cell(d.allocated), bytes_cell(d.peak), bytes_cell(d.live),
                   bytes_cell(d.reserve_taken), bytes_cell(d.reserve_returned), d.peak_line});
  table.add_note("peak and live count from the start of the profile; earlier allocations are not included");
  return table;
}

}  // namespace kiln::profiler
