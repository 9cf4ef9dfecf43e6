// Selects between values that are computed alike, as of an image and its mirror image behind the same normalization:
// what differs is selected first, and all that follows is computed once.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

constexpr size_t kMostPairs = 64;  // looked at for one select

class SelectPuller {
 public:
  explicit SelectPuller(Dag& dag) : dag_(dag) {}

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i) {
      const DagNode& n = dag_.nodes[i];
      if (n.kind == DagKind::kPointwise && n.op == ExprOp::kWhere && !n.operands[0].is_number()) pull(i);
    }
    tidy(dag_);
  }

 private:
  /// What both sides of the select read at one place, and what takes the place of both.
  struct Pair {
    Operand yes, no;
    bool is_merged;  // one operation for both; else a select between them
    int readers = 1;
    std::optional<Operand> result{};
  };

  void pull(size_t select) {
    const DagNode& n = dag_.nodes[select];
    const Operand yes = n.operands[1], no = n.operands[2];
    if (yes.is_number() || no.is_number() || dag_.nodes[at(yes.node)].dtype != n.dtype) return;
    apart_.clear();
    if (!are_alike(yes, no)) return;  // nearly always, and known without counting uses
    uses_ = uses_of_nodes(dag_);
    if (uses_[select] == 0) return;
    // Operations that others read as well are computed anyway: these stay apart, and the rest is looked at anew.
    do {
      pairs_.clear();
      if (!look(yes, no)) return;
    } while (keep_apart_what_others_read());
    int saved = 1, selects = 0;
    for (const Pair& p : pairs_) {
      if (p.is_merged)
        saved += std::max(1, info(dag_.nodes[at(p.yes.node)].op).flop);
      else
        ++selects;
    }
    if (!pairs_[0].is_merged || selects >= saved) return;
    const DagNode model = n;
    DagNode merged = made_for(0, model);
    dag_.nodes[select] = std::move(merged);
  }

  /// Notes the pair and, where one operation serves both, those of its operands. Whether a select could choose.
  bool look(const Operand& yes, const Operand& no) {
    if (Pair* known = find(yes, no)) {
      ++known->readers;
      return true;
    }
    if (pairs_.size() >= kMostPairs || dag_.nodes[at(yes.node)].dtype != dag_.nodes[at(no.node)].dtype) return false;
    const size_t place = pairs_.size();
    pairs_.push_back({yes, no, are_alike(yes, no)});
    if (!pairs_[place].is_merged) return true;
    const std::vector<Operand> a = dag_.nodes[at(yes.node)].operands, b = dag_.nodes[at(no.node)].operands;
    for (size_t k = 0; k < a.size(); ++k)
      if (!is_same(a[k], b[k]) && !look(a[k], b[k])) return false;
    return true;
  }

  Pair* find(const Operand& yes, const Operand& no) {
    const auto known =
        std::ranges::find_if(pairs_, [&](const Pair& p) { return is_same(p.yes, yes) && is_same(p.no, no); });
    return known == pairs_.end() ? nullptr : &*known;
  }

  /// Whether both are all of one operation on operands of which selects could choose.
  bool are_alike(const Operand& yes, const Operand& no) const {
    const DagNode &a = dag_.nodes[at(yes.node)], &b = dag_.nodes[at(no.node)];
    if (a.kind != DagKind::kPointwise || b.kind != DagKind::kPointwise || a.op != b.op || a.op == ExprOp::kPut ||
        a.op == ExprOp::kCall || apart_.contains({yes.node, no.node}))
      return false;
    if (!is_whole(yes, a.shape) || !is_whole(no, b.shape) || a.operand_type != b.operand_type ||
        a.number_type != b.number_type || a.taken != b.taken || a.operands.size() != b.operands.size())
      return false;
    for (size_t k = 0; k < a.operands.size(); ++k) {
      const Operand &x = a.operands[k], &y = b.operands[k];
      const bool is_chosen = k == 0 && (a.op == ExprOp::kTake || a.op == ExprOp::kWhere);  // a table, a condition
      if (!is_same(x, y) && (is_chosen || x.is_number() || y.is_number())) return false;
    }
    return true;
  }

  bool keep_apart_what_others_read() {
    const size_t before = apart_.size();
    for (const Pair& p : pairs_)
      if (p.is_merged && (uses_[at(p.yes.node)] != p.readers || uses_[at(p.no.node)] != p.readers))
        apart_.emplace(p.yes.node, p.no.node);
    return apart_.size() > before;
  }

  /// The operation that both sides share, on what its operands become, or the select between two that differ.
  DagNode made_for(size_t pair, const DagNode& select) {
    const Operand yes = pairs_[pair].yes, no = pairs_[pair].no;
    DagNode n = dag_.nodes[at(yes.node)];
    if (pairs_[pair].is_merged) {
      const std::vector<Operand> others = dag_.nodes[at(no.node)].operands;
      for (size_t k = 0; k < others.size(); ++k)
        if (!is_same(n.operands[k], others[k])) n.operands[k] = made_once(n.operands[k], others[k], select);
      return n;
    }
    DagNode chosen = select;
    chosen.dtype = n.dtype;
    chosen.operand_type = chosen.number_type = register_type(n.dtype);
    chosen.name.clear();
    chosen.operands = {select.operands[0], yes, no};
    return chosen;
  }

  Operand made_once(const Operand& yes, const Operand& no, const DagNode& select) {
    const auto pair = static_cast<size_t>(find(yes, no) - pairs_.data());
    if (!pairs_[pair].result) {
      DagNode n = made_for(pair, select);
      pairs_[pair].result = append(dag_, std::move(n));
    }
    return *pairs_[pair].result;
  }

  Dag& dag_;
  std::vector<int> uses_;
  std::vector<Pair> pairs_;              // the select's own first
  std::set<std::pair<int, int>> apart_;  // of nodes
};

}  // namespace

void pull_selects(Dag& dag) { SelectPuller(dag).run(); }

}  // namespace kiln::fusion
