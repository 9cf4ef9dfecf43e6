// What is computed from counts alone and read along several dimensions, as the rows and columns of square windows are:
// a kernel has one loop for each reading, so each gets nodes of its own and no tensor of places is stored.
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

/// Operations that are repeated for each reading rather than stored once.
constexpr int kMostRepeated = 24;

/// The views through which a node is read, from what is not computed from counts inwards.
using Reading = std::vector<std::tuple<Shape, Shape, int64_t>>;

class Separator {
 public:
  explicit Separator(Dag& dag) : dag_(dag), size_(dag.nodes.size()) {}

  void run() {
    const size_t count = dag_.nodes.size();
    for (size_t i = 0; i < count; ++i) size_[i] = size_of(dag_.nodes[i]);
    for (size_t i = 0; i < count; ++i) {
      if (size_[i] > 0) continue;
      for (size_t k = 0; k < dag_.nodes[i].operands.size(); ++k) {
        const Operand o = dag_.nodes[i].operands[k];
        if (!o.is_number() && size_[at(o.node)] > 0) dag_.nodes[i].operands[k].node = read(o.node, through({}, o));
      }
    }
    tidy(dag_);
  }

 private:
  /// Of a node that is computed from counts and numbers: how many operations that takes. 0 of others.
  int size_of(const DagNode& n) const {
    if (n.kind != DagKind::kPointwise || n.op == ExprOp::kCall || n.op == ExprOp::kTake || n.row_stride > 0) return 0;
    int size = 1;
    bool counts = false;
    for (const Operand& o : n.operands) {
      if (o.is_number()) continue;
      const int part = size_[at(o.node)];
      if (part == 0 && !dag_.nodes[at(o.node)].counts) return 0;
      counts = true;
      size += part;
    }
    return counts && size <= kMostRepeated ? size : 0;
  }

  /// The same reading of an operand, which may be a view of its node.
  Reading through(Reading reading, const Operand& o) const {
    const Shape& own = dag_.nodes[at(o.node)].shape;
    if (o.offset != 0 || o.shape != own || o.strides != row_major(own))
      reading.emplace_back(o.shape, o.strides, o.offset);
    return reading;
  }

  /// The node for this reading: the first one keeps it.
  int read(int node, const Reading& reading) {
    const auto [owner, first] = owners_.emplace(node, reading);
    int mine = node;
    if (!first && owner->second != reading) {
      const auto [copy, made] = copies_.emplace(std::pair(node, reading), static_cast<int>(dag_.nodes.size()));
      mine = copy->second;
      if (!made) return mine;
      dag_.nodes.push_back(DagNode(dag_.nodes[at(node)]));
    }
    for (size_t k = 0; k < dag_.nodes[at(mine)].operands.size(); ++k) {
      const Operand o = dag_.nodes[at(mine)].operands[k];
      // What is a copy has been read here before.
      if (o.is_number() || at(o.node) >= size_.size() || size_[at(o.node)] == 0) continue;
      const int there = read(o.node, through(reading, o));
      dag_.nodes[at(mine)].operands[k].node = there;
    }
    return mine;
  }

  Dag& dag_;
  std::vector<int> size_;
  std::map<int, Reading> owners_;
  std::map<std::pair<int, Reading>, int> copies_;
};

}  // namespace

void separate_counts(Dag& dag) { Separator(dag).run(); }

}  // namespace kiln::fusion
