#include "profiler/profile/tables.h"

#include <nlohmann/json.hpp>

#include "profiler/profile/graph_nodes.h"
#include "profiler/profile/intervals.h"
#include "profiler/profile/latency.h"
#include "profiler/profile/memory.h"
#include "profiler/profile/streams.h"

namespace kiln::profiler {

std::vector<NamedTable> profile_tables(const Timeline& timeline, const ProfileView& view) {
  std::vector<NamedTable> out;
  OpsOptions rows = view.ops;
  // Asked for as columns of operations, or as tables of their own: the columns come with both.
  rows.memory = rows.memory || view.memory;
  const Ops all = ops(timeline, rows);
  out.push_back({"operations", ops_table(timeline, all, rows)});
  if (!all.work.empty()) out.push_back({"kernels", work_table(timeline, all, view.ops)});
  const Latency launches = latency(timeline);
  if (launches.idle + launches.queued > 0) out.push_back({"latency", latency_table(timeline, launches)});
  if (!launches.first.empty()) out.push_back({"first_launches", first_launches_table(launches)});
  if (!launches.graphs.empty()) {
    out.push_back({"graphs", graphs_table(launches)});
    out.push_back({"graph_nodes", graph_nodes_table(graph_nodes(timeline), view.ops.rows)});
  }
  if (view.memory) {
    const Memory m = memory(timeline);
    out.push_back({"memory", memory_table(m, view.ops.rows)});
    out.push_back({"memory_totals", memory_totals_table(m)});
  }
  if (view.streams) out.push_back({"streams", streams_table(timeline, streams(timeline))});
  out.push_back({"totals", totals_table(timeline, all)});
  return out;
}

report::Table cycles_table(std::span<const Timeline> cycles) {
  using report::Cell;
  report::Table table({{"cycle", ""},
                       {"window", "", report::Align::kRight, "window_us"},
                       {"busy", "%"},
                       {"CPU total", "", report::Align::kRight, "cpu_us"},
                       {"device total", "", report::Align::kRight, "device_us"}});
  for (size_t i = 0; i < cycles.size(); ++i) {
    const Totals t = ops(cycles[i]).totals;
    const std::string why = why_no_device_work(cycles[i]);
    table.add_row({Cell::of(static_cast<int64_t>(i) + 1), time_cell(t.window),
                   why.empty() ? Cell::of(t.busy_fraction() * 100, 1) : Cell::unknown(why), time_cell(t.cpu),
                   // The reason stands under the table once; an empty one adds no second note.
                   why.empty() ? time_cell(t.device) : Cell::unknown({})});
  }
  table.add_note("the other tables are of the last cycle");
  return table;
}

std::string tables_json(const Timeline& timeline, std::span<const NamedTable> tables) {
  using nlohmann::ordered_json;
  ordered_json doc;
  doc["device"] = timeline.device;
  doc["hardware"] = timeline.hardware;
  doc["target"] = timeline.target;
  doc["driver"] = timeline.driver;
  // By way of the text of each table, so that its rows and units have the form that every reader knows.
  for (const NamedTable& t : tables) doc["tables"][t.name] = ordered_json::parse(report::to_json(t.table));
  return doc.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kiln::profiler
