// Lines of scans: rows in runs of 16 bytes, and what joins two elements.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fusion/loop_writer.h"

namespace kiln::fusion {

bool LoopWriter::begins_anywhere(int64_t run, int64_t n_rows, int64_t n_cols) const {
  // Of long rows of 64 bits the ends leave no registers: what ptxas spilled then had wrong addresses on one machine.
  constexpr int64_t kMostWide = 8192;
  if (run <= 2 && n_cols > kMostWide) return false;
  if (n_rows == 1 || n_cols % run == 0 || kept_.size() != 1 || reduced_.size() != 1 || !looked_up_.empty())
    return false;
  const Shape strides = row_major(c_.dims);
  auto flat = [&](const Access& a) {
    return !full(a) || (a.strides == strides && a.offset % run == 0 && dag_.nodes[at(a.node)].dtype != DType::kI1);
  };
  return std::ranges::all_of(loads_, flat) && std::ranges::all_of(writes_, flat);
}

void LoopWriter::begin_runs(const std::string& run, int64_t run_size, int64_t n_rows, int64_t n_cols) {
  Emitter::Runs runs;
  runs.begin = e_.names.fresh("begin"), runs.end = e_.names.fresh("end"), runs.start = e_.names.fresh("start");
  runs.first = e_.names.fresh("first");
  runs.total = e_.size(n_rows * n_cols, "total");
  runs.run = run;
  runs.ahead = e_.names.fresh("ahead");
  runs.whole = n_rows * n_cols % run_size == 0;
  runs.strides = row_major(c_.dims);
  const std::string count = e_.size(n_cols, "n_cols");
  e_.line(fmt::format("{} = {} * {}", runs.begin, e_.index[at(kept_[0].dims.back())].text, count));
  e_.line(fmt::format("{} = {} + {}", runs.end, runs.begin, count));
  e_.runs = std::move(runs);
}

std::vector<std::string> LoopWriter::columns_in_runs(const std::string& col, const std::string& begin,
                                                     const std::string& inside, const std::string& block) const {
  const Emitter::Runs& runs = *e_.runs;
  return {fmt::format("{} = {} // {} * {}{}", runs.start, runs.begin, runs.run, runs.run,
                      begin.empty() ? "" : " + " + begin),
          fmt::format("{} = {} + tl.arange(0, {} // {}) * {}", runs.first, runs.start, block, runs.run, runs.run),
          fmt::format("{} = {}[:, None] + tl.arange(0, {})[None, :] - {}", col, runs.first, runs.run, runs.begin),
          fmt::format("{} = (tl.arange(0, {} // {}) == 0)[:, None] & ({} < 0)", runs.ahead, block, runs.run, col),
          fmt::format("{} = ({} >= 0) & ({})", e_.column_mask, col, inside)};
}

std::string LoopWriter::joint_of(const DagNode& scan) {
  if (scan.op == ExprOp::kCumSum) return "";
  const std::string name = scan.op == ExprOp::kCumProd  ? "multiply"
                           : scan.op == ExprOp::kCumMax ? "maximum"
                                                        : "minimum";
  e_.use_helper(name);
  return name;
}

std::string LoopWriter::reduced_text(const DagNode& scan, const std::string& tile) {
  return fmt::format(fmt::runtime(reduction_text(scan)), tile, e_.two_ranges ? 1 : 0);
}

std::string LoopWriter::reduction_text(const DagNode& scan) {
  const std::string joint = joint_of(scan);
  return joint.empty() ? "tl.sum({}, axis={})" : "tl.reduce({}, {}, " + joint + ")";
}

}  // namespace kiln::fusion
