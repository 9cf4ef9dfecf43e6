// What is computed from numbers alone, as the first sums of an optimizer are from zeros: each reader computes its own.
// One node of it would make one kernel of all that read it, however little they have to do with each other.
#include <algorithm>
#include <vector>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

class Copier {
 public:
  explicit Copier(Dag& dag) : dag_(dag), is_constant_(dag.nodes.size()), owner_(dag.nodes.size(), kNobody) {}

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i) is_constant_[i] = is_of_numbers(dag_.nodes[i]);
    for (const Operand& o : dag_.outputs) owner_[at(o.node)] = kResult;
    for (size_t i = 0; i < count; ++i)
      if (!is_constant_[i] || owner_[i] == kResult) own_operands(static_cast<int>(i));
    tidy(dag_);
  }

 private:
  static constexpr int kNobody = -1, kResult = -2;

  bool is_of_numbers(const DagNode& n) const {
    if (n.kind != DagKind::kPointwise || n.op == ExprOp::kCall || n.row_stride > 0) return false;
    return std::ranges::all_of(n.operands, [&](const Operand& o) { return o.is_number() || is_constant_[at(o.node)]; });
  }

  void own_operands(int reader) {
    for (size_t k = 0; k < dag_.nodes[at(reader)].operands.size(); ++k) {
      const Operand& o = dag_.nodes[at(reader)].operands[k];
      if (o.is_number() || !is_constant_[at(o.node)]) continue;
      const int own = owned(o.node, reader);
      dag_.nodes[at(reader)].operands[k].node = own;
    }
  }

  /// The node itself for the first who reads it, a copy for others.
  int owned(int node, int reader) {
    if (owner_[at(node)] == reader) return node;
    if (owner_[at(node)] != kNobody) {
      dag_.nodes.push_back(DagNode(dag_.nodes[at(node)]));
      is_constant_.push_back(true);
      owner_.push_back(kNobody);
      node = static_cast<int>(dag_.nodes.size()) - 1;
    }
    owner_[at(node)] = reader;
    own_operands(node);
    return node;
  }

  Dag& dag_;
  std::vector<bool> is_constant_;
  std::vector<int> owner_;  // who reads it
};

}  // namespace

void separate_constants(Dag& dag) { Copier(dag).run(); }

}  // namespace kiln::fusion
