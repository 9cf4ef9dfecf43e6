#include "repl/views/static_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/target/target.h"
#include "profiler/roofline/occupancy.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using report::Align;
using report::Cell;
using report::Table;

profiler::BlockResources resources(const KernelInfo& info) {
  // The threads of a block are those of producer warps, too.
  return {.threads = (info.num_warps + info.extra_warps) * 32,
          .registers_per_thread = info.registers,
          .shared_bytes = info.shared_bytes};
}

// Directives begin with a dot, labels do not end with a semicolon.
int ptx_instructions(const std::string& ptx) {
  int count = 0;
  for (size_t at = 0; at < ptx.size();) {
    size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string_view line(ptx.data() + at, end - at);
    size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line.back() == ';' && line[first] != '.') ++count;
    at = end + 1;
  }
  return count;
}

}  // namespace

Table static_table() {
  return Table({{"kernel", "", Align::kLeft},
                {"target", "", Align::kLeft},
                {"warps", ""},
                {"registers", ""},
                {"spills", "B"},
                {"shared", "B"},
                {"blocks/SM", ""},
                {"occupancy", "%"},
                {"limited by", "", Align::kLeft},
                {"PTX instructions", ""}});
}

void add_static_row(Table& table, const std::string& label, const KernelInfo& info) {
  const target::Target* target = target::find(info.target);
  KILN_ASSERT(target && target->is_cuda(), "a static row for target {}", info.target);
  // Without an assembler the PTX is still there, so only the figures that come from the cubin are unknown.
  bool known = info.registers >= 0;
  auto or_unknown = [&](int64_t v) { return known ? Cell::of(v) : Cell::unknown(kNoLinker); };
  const profiler::Occupancy o = known ? profiler::occupancy(*target, resources(info)) : profiler::Occupancy{};
  table.add_row({label, info.target, Cell::of(int64_t{info.num_warps + info.extra_warps}), or_unknown(info.registers),
                 or_unknown(info.spill_bytes), Cell::of(info.shared_bytes), or_unknown(o.blocks_per_sm),
                 known ? Cell::of(o.fraction * 100, 1) : Cell::unknown(kNoLinker),
                 known ? Cell(std::string(name(o.limiter))) : Cell::unknown(kNoLinker),
                 Cell::of(int64_t{ptx_instructions(info.ptx)})});
  for (const std::string& warning : info.warnings) table.add_note(label + ": " + warning);
}

Table without_assembler(const Table& table) {
  std::vector<size_t> known;
  for (size_t i = 0; i < table.columns().size(); ++i) {
    // A column is left out for all rows: half of a table would invite comparisons.
    const bool is_unknown = std::ranges::any_of(table.rows(), [&](const auto& row) { return row[i].is_unknown; });
    if (!is_unknown) known.push_back(i);
  }
  Table out = table.with_columns(known);
  out.add_note(
      fmt::format("registers, spills and occupancy: {}; install ptxas (Debian: nvidia-cuda-toolkit; NVIDIA's "
                  "repository: cuda-nvcc) or libnvJitLink",
                  kNoLinker));
  return out;
}

Result<Table> occupancy_table(const KernelInfo& info, int multiprocessors) {
  const target::Target* target = target::find(info.target);
  if (!target || !target->is_cuda())
    return with_note(error(ErrorKind::kValue, "occupancy is a figure of GPUs; the target is {}", info.target),
                     fmt::format("help: choose one with %target {}", target::kDefaultGpu));
  if (info.registers < 0) return error(ErrorKind::kDevice, "registers are unknown: {}", kNoLinker);
  profiler::BlockResources block = resources(info);
  profiler::Occupancy now = profiler::occupancy(*target, block);
  Table table({{"resource", "", Align::kLeft},
               {"of one block", ""},
               {"of an SM", ""},
               {"blocks/SM", ""},
               {"for one block more", "", Align::kLeft}});
  std::string fewer = "none would";
  // What limits is the least of the four; the others have room for a block more.
  if (now.by_registers > now.blocks_per_sm)
    fewer = "fits already";
  else if (int r = profiler::registers_for(*target, block, now.blocks_per_sm + 1))
    fewer = fmt::format("{} registers", r);
  const int64_t share = profiler::shared_for(*target, now.blocks_per_sm + 1);
  table.add_row({"threads", Cell::of(int64_t{block.threads}), Cell::of(int64_t{target->threads_per_sm}),
                 Cell::of(int64_t{now.by_threads}),
                 now.by_threads > now.blocks_per_sm ? "fits already" : "fewer warps"});
  table.add_row({"registers", Cell::of(int64_t{block.registers_per_thread}),
                 Cell::of(int64_t{target->registers_per_sm}), Cell::of(int64_t{now.by_registers}), fewer});
  table.add_row({"shared memory", Cell::of(block.shared_bytes), Cell::of(target->shared_per_sm),
                 Cell::of(int64_t{now.by_shared}),
                 now.by_shared > now.blocks_per_sm ? std::string("fits already") : fmt::format("{} bytes", share)});
  table.add_row({"blocks", Cell::of(int64_t{1}), Cell::of(int64_t{target->blocks_per_sm}),
                 Cell::of(int64_t{now.by_blocks}), now.by_blocks > now.blocks_per_sm ? "fits already" : "none would"});
  table.add_note(fmt::format("{}: {} blocks per SM, {} of {} warps, {:.1f} % occupancy, limited by {}", info.target,
                             now.blocks_per_sm, now.warps_per_sm, target->threads_per_sm / 32, now.fraction * 100,
                             name(now.limiter)));
  if (info.num_ctas > 1) {
    const std::string most = multiprocessors > 0
                                 ? fmt::format("{} SMs hold at most {}", multiprocessors,
                                               profiler::most_clusters(now, multiprocessors, info.num_ctas))
                                 // Without a GPU the number of SMs is not known: the formula stands in for it.
                                 : fmt::format("S SMs hold at most S × {} / {}", now.blocks_per_sm, info.num_ctas);
    table.add_note(
        fmt::format("clusters of {} blocks: {} at once, and fewer where a cluster's size does not divide what a "
                    "GPC holds",
                    info.num_ctas, most));
  }
  return table;
}

Table occupancy_by_warps(const std::vector<WarpsRow>& rows) {
  Table table({{"num_warps", ""},
               {"threads", ""},
               {"registers", ""},
               {"spills", "B"},
               {"shared", "B"},
               {"blocks/SM", ""},
               {"warps/SM", ""},
               {"occupancy", "%"},
               {"limited by", "", Align::kLeft},
               {"fewer registers", "", Align::kLeft},
               {"less shared memory", "", Align::kLeft}});
  auto step = [](const std::optional<profiler::OccupancyStep>& s, const char* unit) {
    if (!s) return std::string("no gain");
    return fmt::format("{}{} → {} block{}, {:.1f} %", s->needs, unit, s->gives.blocks_per_sm,
                       s->gives.blocks_per_sm == 1 ? "" : "s", s->gives.fraction * 100);
  };
  for (const WarpsRow& row : rows) {
    Cell warps = Cell::of(int64_t{row.num_warps});
    // The mark is for people; the cell's number stays a number.
    if (row.is_current) warps.text += " *";
    const target::Target* target = row.info.ok() ? target::find(row.info->target) : nullptr;
    if (!target || row.info->registers < 0) {
      const std::string why = row.info.ok() ? kNoLinker : row.info.error().message;
      std::vector<Cell> cells = {warps};
      // The reason is each cell's, and printed once below.
      while (cells.size() < table.columns().size())
        cells.push_back(Cell::unknown(fmt::format("num_warps={}: {}", row.num_warps, why)));
      table.add_row(std::move(cells));
      continue;
    }
    const profiler::BlockResources block = resources(*row.info);
    const profiler::Occupancy o = profiler::occupancy(*target, block);
    table.add_row({warps, Cell::of(int64_t{block.threads}), Cell::of(int64_t{block.registers_per_thread}),
                   Cell::of(row.info->spill_bytes), Cell::of(block.shared_bytes), Cell::of(int64_t{o.blocks_per_sm}),
                   Cell::of(int64_t{o.warps_per_sm}), Cell::of(o.fraction * 100, 1), std::string(name(o.limiter)),
                   step(profiler::fewer_registers(*target, block), ""),
                   step(profiler::less_shared(*target, block), " B")});
  }
  table.add_note(
      "* the current one; every row was compiled with its num_warps and has its own registers and shared memory");
  return table;
}

}  // namespace kiln::repl
