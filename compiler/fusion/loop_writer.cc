#include "compiler/fusion/loop_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace kiln::fusion {

LoopWriter::LoopWriter(const WriteRequest& r, Group& group)
    : r_(r), dag_(r.dag), c_(r.cluster), group_(group), e_(r.dag, r.grouping, r.cluster, r.value_of) {
  group.kernel = e_.names.fresh(group.name + "_kernel");
  if (r.program != kOwnProgram) e_.names.fresh(r.program);  // so that nothing else is called so
  e_.factors_sizes = r.machine.gpu();
}

void LoopWriter::collect() {
  for (int m : c_.members) {
    const DagNode& n = dag_.nodes[at(m)];
    for (size_t i = 0; i < n.operands.size(); ++i)
      if (!n.operands[i].is_number() && !c_.contains(n.operands[i].node)) {
        const Access a = e_.access(m, i);
        (dag_.nodes[at(a.node)].counts ? all_ : loads_).push_back(a);
        if (!dag_.nodes[at(a.node)].counts && (n.op != ExprOp::kTake || i > 0)) early_.push_back(a);
        if (n.op == ExprOp::kTake && i == 0) looked_up_.insert(a.node);
      }
    if (r_.grouping.stored[at(m)]) {
      stores_.push_back(m);
      Access a = e_.store_access(m);
      a.strides.resize(c_.dims.size());
      writes_.push_back(std::move(a));
    }
  }
  for (const auto* list : {&loads_, &writes_}) {
    all_.insert(all_.end(), list->begin(), list->end());
    // Of pointwise kernels: along the innermost dimension; the places of rows are read once for many elements, and
    // what is repeated often comes from the cache.
    for (const Access& a : *list)
      if (c_.reduces() || a.strides.empty() || (a.strides.back() != 0 && repeats(a) < kRepeatedOften))
        widest_ = std::max(widest_, size_of(dag_.nodes[at(a.node)].dtype));
  }
}

bool LoopWriter::is_read_once(const Access& a) const {
  return std::ranges::all_of(loads_, [&](const Access& other) { return other.node != a.node || other == a; });
}

int64_t LoopWriter::repeats(const Access& a) const {
  int64_t times = 1;
  for (size_t d = 0; d < a.strides.size(); ++d)
    if (a.strides[d] == 0) times *= c_.dims[d];
  return times;
}

const Access& LoopWriter::main() const {
  const auto& first = c_.reduces() ? loads_ : writes_;
  const auto& second = c_.reduces() ? writes_ : loads_;
  for (const auto* list : {&first, &second})
    for (const Access& a : *list)
      if (full(a)) return a;
  const bool looks_up = c_.reduces() && !looked_up_.empty() && !writes_.empty();
  return first.empty() || looks_up ? second.front() : first.front();
}

std::vector<Run> LoopWriter::runs(int begin, int end) const {
  std::vector<int> dims(at(end - begin));
  std::iota(dims.begin(), dims.end(), begin);
  const Access& by = main();
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) { return by.strides[at(a)] > by.strides[at(b)]; });
  std::vector<Run> out;
  for (int d : dims) {
    const bool joins = !out.empty() && std::all_of(all_.begin(), all_.end(), [&](const Access& a) {
      return a.strides[at(out.back().dims.back())] == a.strides[at(d)] * c_.dims[at(d)];
    });
    if (!joins) out.emplace_back();
    out.back().dims.push_back(d);
    out.back().size *= c_.dims[at(d)];
  }
  return out;
}

void LoopWriter::order() {
  e_.index.resize(c_.dims.size());
  kept_ = runs(0, c_.kept);
  reduced_ = runs(c_.kept, static_cast<int>(c_.dims.size()));
}

int64_t LoopWriter::size_of_runs(const std::vector<Run>& runs) {
  int64_t n = 1;
  for (const Run& r : runs) n *= r.size;
  return n;
}

bool LoopWriter::wide(const std::vector<Run>& runs, int64_t slack) const {
  if (size_of_runs(runs) + slack >= kInt32) return true;
  for (const Access& a : all_)
    for (const Run& r : runs) {
      const int inner = r.dims.back();
      if (std::abs(a.strides[at(inner)]) > 0 && r.size * std::abs(a.strides[at(inner)]) >= kInt32) return true;
    }
  return false;
}

std::vector<std::string> LoopWriter::decompose(const std::vector<Run>& runs, const std::string& var, unsigned level) {
  std::vector<std::string> lines;
  int64_t inner = 1;
  if (runs.size() > 1) {
    Walk w{var, level, {}};
    for (const Run& r : runs) w.dims.emplace_back(r.dims.back(), r.size);
    e_.walks.push_back(std::move(w));
  }
  for (size_t i = runs.size(); i-- > 0;) {
    std::string text = var;
    if (runs.size() > 1) {
      text = e_.names.fresh(fmt::format("{}_{}", var, i));
      std::string from = inner == 1 ? var : fmt::format("{} // {}", var, inner);
      lines.push_back(fmt::format("{} = {}", text, i > 0 ? fmt::format("{} % {}", from, runs[i].size) : from));
    }
    e_.index[at(runs[i].dims.back())] = {text, level};
    inner *= runs[i].size;
  }
  return lines;
}

void LoopWriter::lines(const std::vector<std::string>& list) {
  for (const std::string& l : list) e_.line(l);
}

void LoopWriter::finish(int64_t programs, int warps) {
  write_source(e_, cluster_comment(r_), group_);
  group_.grid = {programs, 1, 1};
  group_.num_warps = warps;
  group_.num_stages = 3;
}

void LoopWriter::configuration(std::vector<std::pair<std::string, int64_t>> constants, int64_t programs, int warps) {
  group_.configurations.push_back({{.num_warps = warps, .num_stages = 3}, std::move(constants), {programs, 1, 1}});
}

void LoopWriter::store_all() {
  for (int m : stores_) e_.store(m);
}

void LoopWriter::load_early(int64_t each, int64_t most) {
  if (!r_.machine.gpu()) return;
  for (const Access& a : early_) {
    bool along_columns = false;
    for (size_t d = 0; d < a.strides.size() && d < e_.index.size(); ++d)
      along_columns = along_columns || (a.strides[d] != 0 && (e_.index[d].level & kAlongColumns));
    if (along_columns && (most -= each) < 0) return;
    e_.preload(a);
  }
}

std::string LoopWriter::row_range(const std::string& pid, int64_t rows, int64_t n_rows) {
  if (rows == 1) {
    std::string row = e_.names.fresh("row");
    e_.line(fmt::format("{} = {}", row, pid));
    return row;
  }
  e_.two_ranges = true;
  rows_name_ = e_.constant(rows, "ROWS");
  std::string row = e_.names.fresh("rows");
  const std::string first = pid.empty() ? "" : fmt::format("{} * {} + ", pid, rows_name_);
  e_.line(fmt::format("{} = {}tl.arange(0, {})", row, first, rows_name_));
  if (n_rows % rows) {
    e_.row_mask = e_.names.fresh("in_rows");
    e_.line(fmt::format("{} = {} < {}", e_.row_mask, row, e_.size(n_rows, "n_rows")));
  }
  return row;
}

}  // namespace kiln::fusion
