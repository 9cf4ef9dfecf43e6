// The advisor's rules about kernels: the hottest one, its variation, its limiter.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "profiler/measure/stats.h"
#include "profiler/profile/advisor_limits.h"
#include "profiler/profile/advisor_rule.h"
#include "profiler/profile/work_facts.h"

namespace kiln::profiler::rules {

namespace {

double share(Ns part, Ns whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

bool worth_tuning(const Facts& f, const KernelRuns& k) { return share(k.total, f.kernel_time) >= limits::kWorthTuning; }

/// "add_kernel, train.py:3 `…`"
std::string kernel_and_lines(const Facts& f, const KernelRuns& k) {
  std::vector<int> spans;
  for (size_t i : k.runs) spans.push_back(f.t.work[i].span);
  std::string lines = f.lines(spans);
  return lines.empty() ? k.name : k.name + ", " + lines;
}

/// Whether a kernel multiplies tiles: known from its source, or else guessed from its name, which is said.
struct Dot {
  bool has = false, is_guess = false;
};
Dot dot_of(const Facts& f, const std::string& kernel) {
  if (const KernelSource* s = f.source(kernel)) return {s->has_dot, false};
  for (std::string_view word : {"matmul", "gemm", "_mm", "dot", "linear", "attention", "conv"})
    if (kernel.find(word) != std::string::npos) return {true, true};
  return {};
}

/// The most shared bytes with which so many blocks fit on an SM; negative: none.
int64_t shared_for(const target::Target& target, BlockResources block, int blocks) {
  int64_t fits = -1, too_many = block.shared_bytes + 1;
  // Occupancy falls as shared memory grows, which makes bisection right.
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    block.shared_bytes = middle;
    (occupancy(target, block).blocks_per_sm >= blocks ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace

void hotspot(const Facts& f, FindingSink& sink) {
  if (f.kernels.size() < 2) return;
  const KernelRuns& k = f.kernels[0];
  const double part = share(k.total, f.kernel_time);
  // The weight of a finding is the time that it is about; the advisor shows the heaviest.
  if (part < limits::kDominates) return;
  sink.add(part,
           fmt::format("{} takes {:.0f} % of the kernels' time: {} in {} run{}", k.name, part * 100, time_text(k.total),
                       count_text(static_cast<int64_t>(k.runs.size())), k.runs.size() == 1 ? "" : "s"),
           kernel_and_lines(f, k),
           fmt::format("start with {}: if it were twice as fast, the kernels' time would fall by {:.0f} %", k.name,
                       part * 50));
}

void spread(const Facts& f, FindingSink& sink) {
  for (const KernelRuns& k : f.kernels) {
    // Runs of different sizes are not the same thing.
    std::map<std::tuple<std::array<uint32_t, 3>, std::array<uint32_t, 3>>, std::vector<double>> by_grid;
    for (size_t i : k.runs) {
      const Work& w = f.t.work[i];
      by_grid[{w.grid, w.block}].push_back(static_cast<double>(w.duration()) / 1e3);
    }
    for (const auto& [launch, us] : by_grid) {
      const Summary s = summarize(us);
      if (s.n < limits::kSpreadRuns || s.spread() < limits::kSpread) continue;
      if (s.median * 1e3 < static_cast<double>(limits::kSpreadLeast)) continue;
      const auto& grid = std::get<0>(launch);
      sink.add(s.spread() * s.median * s.n,
               fmt::format("{} runs of {} from {:.1f} to {:.1f} us, median {:.1f} us ± {:.0f} %", count_text(s.n),
                           k.name, s.min, s.max, s.median, s.spread() * 100),
               fmt::format("{}; grid {} x {} x {}", kernel_and_lines(f, k), grid[0], grid[1], grid[2]),
               "quote the median and the spread, not one run; the cause is clocks, heat, another process, or its data: "
               "see the flags of %bench");
    }
  }
}

void low_tensor_use(const Facts& f, FindingSink& sink) {
  for (const KernelRuns& k : f.kernels) {
    const KernelFigures* figures = f.figures(k.name);
    const Dot dot = dot_of(f, k.name);
    if (!figures || !figures->tensor_percent || !dot.has || !worth_tuning(f, k)) continue;
    if (*figures->tensor_percent >= limits::kLowTensor) continue;
    sink.add(static_cast<double>(k.total),
             fmt::format("the tensor pipe of {} works {:.1f} % of the cycles{}", k.name, *figures->tensor_percent,
                         dot.is_guess ? ", if it multiplies, as its name suggests" : ""),
             kernel_and_lines(f, k),
             *figures->tensor_percent == 0
                 ? "f16, bf16, 8-bit or tf32 operands, and tiles of at least 16 x 16 x 16: %ptx shows mma or wgmma then"
                 : "larger tiles, more stages, or a grid that fills the GPU: %lines shows the stall reasons");
  }
}

void occupancy_limit(const Facts& f, FindingSink& sink) {
  const target::Target* target = target::find(f.t.target);
  for (const KernelRuns& k : f.kernels) {
    const Work& w = f.t.work[k.runs[0]];
    const auto o = theoretical_occupancy(target, w);
    if (!o || o->fraction >= limits::kLowOccupancy || !worth_tuning(f, k)) continue;
    const KernelFigures* figures = f.figures(k.name);
    // Tensor cores are fed by few warps, so low occupancy does no harm where they are busy.
    if (figures && figures->tensor_percent.value_or(0) >= limits::kGoodTensor) continue;
    const int64_t shared = w.static_shared + w.dynamic_shared;
    const BlockResources block{block_threads(w), w.registers, shared};
    std::string need;
    if (o->limiter == OccupancyLimiter::kRegisters) {
      const int registers = registers_for(*target, block, o->blocks_per_sm + 1);
      if (registers == 0) continue;
      need = fmt::format("one more block needs {} registers per thread or fewer, it has {}", registers, w.registers);
    } else if (o->limiter == OccupancyLimiter::kSharedMemory) {
      const int64_t bytes = shared_for(*target, block, o->blocks_per_sm + 1);
      if (bytes < 0) continue;
      need = fmt::format("one more block needs {} bytes of shared memory or fewer, it has {}", count_text(bytes),
                         count_text(shared));
    } else {
      continue;
    }
    std::string what = fmt::format("{} of {} threads on an SM, {:.1f} % of its warps, limited by {}; {}",
                                   o->blocks_per_sm == 1 ? "1 block" : fmt::format("{} blocks", o->blocks_per_sm),
                                   block_threads(w), o->fraction * 100, name(o->limiter), need);
    if (figures && figures->achieved_occupancy)
      what += fmt::format("; achieved {:.1f} %", *figures->achieved_occupancy);
    sink.add(
        static_cast<double>(k.total), std::move(what), kernel_and_lines(f, k),
        o->limiter == OccupancyLimiter::kRegisters
            ? "a smaller tile or more warps for it; it matters where warps wait for memory (%lines), not where the "
              "tensor cores are busy"
            : "fewer stages or a smaller tile; it matters where warps wait for memory (%lines), not where the tensor "
              "cores are busy");
  }
}

void memory_bound(const Facts& f, FindingSink& sink) {
  for (const KernelRuns& k : f.kernels) {
    const KernelFigures* figures = f.figures(k.name);
    if (!figures || !figures->dram_percent || !worth_tuning(f, k)) continue;
    if (*figures->dram_percent < limits::kNearCeiling) continue;
    std::string what = fmt::format("memory at {:.0f} % of its peak rate", *figures->dram_percent);
    if (figures->dram_read_bytes && figures->dram_write_bytes)
      what += fmt::format(": {} read and {} written by one run", report::human_bytes(*figures->dram_read_bytes),
                          report::human_bytes(*figures->dram_write_bytes));
    sink.add(static_cast<double>(k.total), std::move(what), kernel_and_lines(f, k),
             "move fewer bytes: smaller types, fusion with the kernels before or after it, or reuse from the "
             "L2");
  }
}

namespace {

std::string where_it_waits(const Facts& f, const std::string& kernel, std::string KernelSource::*line,
                           std::string_view what) {
  const KernelSource* s = f.source(kernel);
  return s && !(s->*line).empty() ? fmt::format("; it waits most for {} at {}", what, s->*line) : "";
}

}  // namespace

void shared_conflicts(const Facts& f, FindingSink& sink) {
  for (const KernelRuns& k : f.kernels) {
    const KernelFigures* figures = f.figures(k.name);
    if (!figures || !figures->bank_conflicts || !figures->us || !figures->sm_mhz) continue;
    // Cycles of all SMs while the kernel ran: MHz times microseconds.
    const double cycles = *figures->us * *figures->sm_mhz * f.t.multiprocessors;
    if (cycles <= 0 || *figures->bank_conflicts / cycles < limits::kConflictShare) continue;
    sink.add(static_cast<double>(k.total),
             fmt::format("{} extra cycles of shared memory in one run, {:.0f} % of the SMs' cycles",
                         count_text(static_cast<int64_t>(*figures->bank_conflicts)),
                         *figures->bank_conflicts / cycles * 100),
             kernel_and_lines(f, k) + where_it_waits(f, k.name, &KernelSource::shared_line, "shared memory"),
             "a transposed or strided access to a tile: load it transposed, or change the tile's shape; %lines "
             "names the line");
  }
}

void uncoalesced(const Facts& f, FindingSink& sink) {
  for (const KernelRuns& k : f.kernels) {
    const KernelFigures* figures = f.figures(k.name);
    if (!figures || !figures->sectors_per_request || *figures->sectors_per_request < limits::kManySectors) continue;
    if (!worth_tuning(f, k)) continue;
    sink.add(
        static_cast<double>(k.total),
        fmt::format("a warp's global load touches {:.1f} sectors of 32 bytes (4 for neighbouring f32, 16 for four of "
                    "them per lane)",
                    *figures->sectors_per_request),
        kernel_and_lines(f, k) + where_it_waits(f, k.name, &KernelSource::memory_line, "memory"),
        "make the last dimension of the tile the contiguous one in memory, or make the tensor contiguous; "
        "%lines names the line");
  }
}

void one_stream(const Facts& f, FindingSink& sink) {
  if (f.t.multiprocessors == 0 || f.stream_busy.size() != 1) return;
  Ns small = 0, end = 0;
  int64_t n = 0;
  std::vector<int> spans;
  for (const Work& w : f.t.work) {
    if (w.is_lost()) continue;
    // Work is in the order of time, so this is the gap behind what ran before.
    const Ns gap = w.start - std::exchange(end, w.end);
    if (w.kind != WorkKind::kKernel || w.grid[0] == 0) continue;
    const double blocks = double(w.grid[0]) * w.grid[1] * w.grid[2];
    if (blocks >= limits::kHalfFull * f.t.multiprocessors || gap > limits::kBackToBack) continue;
    small += w.duration(), ++n;
    spans.push_back(w.span);
  }
  if (n < limits::kOneStreamKernels || share(small, f.kernel_time) < limits::kOneStreamShare) return;
  const std::string lines = f.lines(spans);
  sink.add(
      static_cast<double>(small),
      fmt::format("{} kernels with fewer blocks than half of the {} SMs follow each other directly, {:.0f} % of the "
                  "kernels' time, all on stream {}",
                  count_text(n), f.t.multiprocessors, share(small, f.kernel_time) * 100, f.stream_busy.begin()->first),
      lines.empty() ? "the line is not known" : lines,
      "where they do not need each other's results, put them on separate streams (with stream(s):), or batch "
      "them into one launch");
}

}  // namespace kiln::profiler::rules
