#include "compiler/fusion/row_facts.h"

#include <algorithm>
#include <set>

#include "compiler/fusion/join_totals.h"
#include "compiler/fusion/split.h"

namespace kiln::fusion {

bool RowFacts::is_for(int store, int tensor) const {
  std::set<int> from_it = {tensor};
  for (int m : c_.members) {
    const bool reads = std::ranges::any_of(
        dag_.nodes[at(m)].operands, [&](const Operand& o) { return !o.is_number() && from_it.contains(o.node); });
    if (!reads) continue;
    from_it.insert(m);
    if (m != store && r_.grouping.stored[at(m)]) return false;
  }
  return true;
}

bool RowFacts::is_of_pairs() const {
  auto varies = [](auto begin, auto end) { return std::any_of(begin, end, [](int64_t s) { return s != 0; }); };
  bool of_rows = false, of_columns = false;
  for (const Access& a : all_) of_rows = of_rows || varies(a.strides.begin(), a.strides.begin() + c_.kept);
  for (const Access& a : loads_) {
    if (full(a)) return false;
    of_columns = of_columns || varies(a.strides.begin() + c_.kept, a.strides.end());
  }
  return of_rows && of_columns && looked_up_.empty() && std::ranges::none_of(writes_, full);
}

bool RowFacts::reads_elements() const {
  if (std::ranges::any_of(loads_, full) || std::ranges::any_of(writes_, full)) return true;
  for (size_t i = 0; i < c_.members.size(); ++i)
    if (dag_.nodes[at(c_.members[i])].op == ExprOp::kTake &&
        std::ranges::any_of(c_.maps[i], [&](int loop) { return loop >= c_.kept; }))
      return true;
  return false;
}

bool RowFacts::is_of_windows() const {
  const int inner = kept_.back().dims.back();
  return std::ranges::any_of(loads_,
                             [&](const Access& a) {
                               const auto columns = a.strides.begin() + c_.kept;
                               return a.strides[at(inner)] != 0 &&
                                      std::find(columns, a.strides.end(), a.strides[at(inner)]) != a.strides.end();
                             }) ||
         takes_windows(inner);
}

bool RowFacts::takes_windows(int inner) const {
  if (std::ranges::any_of(loads_, full) || std::ranges::any_of(writes_, full)) return false;
  for (size_t i = 0; i < c_.members.size(); ++i) {
    const DagNode& n = dag_.nodes[at(c_.members[i])];
    if (n.op != ExprOp::kTake) continue;
    bool along_rows = false, along_columns = false;
    for (size_t k = 1; k < n.operands.size(); ++k)
      for (size_t d = 0; d < n.operands[k].shape.size(); ++d) {
        const int loop = n.operands[k].strides[d] == 0 ? -1 : c_.maps[i][d];
        along_rows = along_rows || loop == inner;
        along_columns = along_columns || loop >= c_.kept;
      }
    if (along_rows && along_columns) return true;
  }
  return false;
}

bool RowFacts::has_parts_across() const {
  return c_.splits > 1 && std::ranges::any_of(c_.members, [&](int m) {
           const DagNode& n = dag_.nodes[at(m)];
           return n.kind == DagKind::kReduce && keeps_last(n);
         });
}

bool RowFacts::runs_along_columns() const {
  if (reduced_.empty() || kept_.empty()) return true;
  const int64_t n_rows = size_of_runs(kept_);
  if (r_.machine.gpu() && n_rows >= kShortRow && (is_of_pairs() || is_of_windows())) return false;
  // Few rows, such as the classes of a one-hot encoding: each would read all columns. Their parts are as many as for
  // rows that share a program.
  if (r_.machine.gpu() && has_parts_across() && is_of_pairs()) return false;
  const Access& by = main();
  const int64_t columns = by.strides[at(reduced_.back().dims.back())], rows = by.strides[at(kept_.back().dims.back())];
  // Of points that are summed, the few coordinates lie side by side: memory runs on along both.
  const bool of_points = rows == 1 && columns == kept_.back().size && columns < kShortCrossing;
  if (c_.reduces() && c_.splits == 1 && of_points) return true;
  return columns == 1 || rows != 1;
}

RowWork RowFacts::row_work(int64_t n_rows, int64_t n_cols) const {
  RowWork w;
  w.n_rows = n_rows, w.n_cols = n_cols, w.splits = c_.splits, w.widest = widest_, w.depth = deepest();
  w.along = runs_along_columns();
  w.windows = !w.along && !reduced_.empty() && !kept_.empty() && is_of_windows();
  auto varies = [](auto from, auto to) { return std::any_of(from, to, [](int64_t s) { return s != 0; }); };
  for (const Access& a : std::set<Access>(loads_.begin(), loads_.end())) {
    if (!varies(a.strides.begin() + c_.kept, a.strides.end())) continue;
    ++w.tensors;
    w.read = std::max(w.read, size_of(dag_.nodes[at(a.node)].dtype));
    w.of_rows += varies(a.strides.begin(), a.strides.begin() + c_.kept);
  }
  w.exponentials = std::any_of(c_.members.begin(), c_.members.end(), [&](int m) { return exponentials_of(m) >= 0; }) ||
                   takes_functions_again();
  constexpr int kCostlyFlop = 8;
  w.costly = functions_of_columns() >= kCostlyFlop;
  w.computes = takes_longer_than_memory();
  w.divisions = static_cast<int>(std::ranges::count_if(c_.members, [&](int m) {
    const ExprOp op = dag_.nodes[at(m)].op;
    return (op == ExprOp::kDiv || op == ExprOp::kReciprocal || op == ExprOp::kSqrt) && e_.stored_along_columns(m);
  }));
  w.bytes = bytes_of_column();
  w.stores_rows = stores_rows();
  w.alone = r_.program == kProgramOfTotal;
  return w;
}

int RowFacts::functions_of_columns() const {
  constexpr int kFunctionFlop = 4;
  int flop = 0;
  for (int m : c_.members) {
    const DagNode& n = dag_.nodes[at(m)];
    const bool quick = n.op == ExprOp::kExp || n.op == ExprOp::kExp2 || n.op == ExprOp::kSqrt ||
                       n.op == ExprOp::kRsqrt || n.op == ExprOp::kMod;
    if (n.kind == DagKind::kPointwise && !quick && info(n.op).flop >= kFunctionFlop && e_.stored_along_columns(m))
      flop += info(n.op).flop;
  }
  return flop;
}

bool RowFacts::takes_longer_than_memory() const {
  constexpr int64_t kOfByte = 5, kOfReduction = 3;
  int64_t instructions = 0;
  for (int m : c_.members) {
    const DagNode& n = dag_.nodes[at(m)];
    if (n.kind == DagKind::kReduce)
      instructions += kOfReduction;
    else if (e_.stored_along_columns(m))
      instructions += instructions_of(n);
  }
  const int64_t bytes = bytes_of_column();
  return bytes > 0 && instructions >= kOfByte * bytes;
}

int64_t RowFacts::bytes_of_column() const {
  int64_t bytes = 0;
  for (const std::vector<Access>& accesses : {loads_, writes_})
    for (const Access& a : std::set<Access>(accesses.begin(), accesses.end()))
      if (full(a)) bytes += size_of(dag_.nodes[at(a.node)].dtype);
  return bytes;
}

bool RowFacts::stores_rows() const {
  return std::ranges::any_of(stores_, [&](int m) { return e_.stored_along_columns(m); });
}

bool RowFacts::takes_functions_again() const {
  constexpr int kFunctionFlop = 4, kDear = 8;
  if (!stores_rows() && deepest() < 2) return false;
  std::set<int> reduced;  // what reductions are computed from, from the last to the first
  int flop = 0;
  for (auto m = c_.members.rbegin(); m != c_.members.rend(); ++m) {
    const DagNode& n = dag_.nodes[at(*m)];
    if (n.kind != DagKind::kReduce && reduced.count(*m) == 0) continue;
    for (const Operand& o : n.operands)
      if (!o.is_number()) reduced.insert(o.node);
    if (n.kind == DagKind::kPointwise && info(n.op).flop >= kFunctionFlop && e_.stored_along_columns(*m))
      flop += info(n.op).flop;
  }
  return flop >= kDear;
}

std::map<int, int> RowFacts::depths() const {
  std::map<int, int> depth;
  for (int m : c_.members) {
    int d = 0;
    for (const Operand& o : dag_.nodes[at(m)].operands)
      if (!o.is_number() && c_.contains(o.node)) d = std::max(d, depth[o.node]);
    depth[m] = d + (dag_.nodes[at(m)].kind == DagKind::kReduce ? 1 : 0);
  }
  return depth;
}

int RowFacts::deepest() const {
  int most = 0;
  for (const auto& [m, d] : depths()) most = std::max(most, d);
  return most;
}

int RowFacts::exponentials_of(int maximum) const {
  const DagNode& m = dag_.nodes[at(maximum)];
  if (m.kind != DagKind::kReduce || !m.plain_max || m.operand_type != DType::kF32 || c_.splits > 1 || !r_.machine.gpu())
    return -1;
  const Operand& x = m.operands[0];
  for (int s : c_.members) {
    const DagNode& sum = dag_.nodes[at(s)];
    if (sum.kind != DagKind::kReduce || sum.op != ExprOp::kSum || !c_.contains(sum.operands[0].node)) continue;
    const DagNode& e = dag_.nodes[at(sum.operands[0].node)];
    if (e.op != ExprOp::kExp || !c_.contains(e.operands[0].node)) continue;
    const DagNode& below = dag_.nodes[at(e.operands[0].node)];
    if (below.op != ExprOp::kSub || below.operands[1].node != maximum) continue;
    if (is_same(below.operands[0], x)) return s;
  }
  return -1;
}

}  // namespace kiln::fusion
