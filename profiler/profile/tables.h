// All tables of a profile, in the order in which they are read.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "profiler/profile/ops.h"
#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

struct ProfileView {
  OpsOptions ops;
  bool memory = false, streams = false;
};

using report::NamedTable;

/// "operations", "kernels", "latency", "first_launches", "graphs", "graph_nodes", "memory"…; tables that would have no
/// rows are left out.
std::vector<NamedTable> profile_tables(const Timeline& timeline, const ProfileView& view = {});

/// One row per cycle of a schedule that repeats.
report::Table cycles_table(std::span<const Timeline> cycles);

/// {"device": …, "tables": {name: table}} on one line.
std::string tables_json(const Timeline& timeline, std::span<const NamedTable> tables);

}  // namespace kiln::profiler
