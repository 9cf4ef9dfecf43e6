#include "compiler/fusion/library.h"

namespace kiln::fusion {

namespace {

/// The only user of a node, or -1.
int only_user(const Dag& dag, int node) {
  int user = -1, uses = 0;
  for (size_t i = 0; i < dag.nodes.size(); ++i)
    for (const Operand& o : dag.nodes[i].operands)
      if (o.node == node) user = static_cast<int>(i), ++uses;
  for (const Operand& o : dag.outputs) uses += o.node == node;
  return uses == 1 ? user : -1;
}

/// The library's gelu is the tanh form, up to 4.7e-4 from the exact one: about what 16 bits round off, and wrong where
/// there are more.
bool may_be_tanh(const DagNode& n) { return n.op == ExprOp::kGelu && bits(n.dtype) <= 16; }

}  // namespace

bool absorb_epilogues(Dag& dag) {
  bool any = false;
  for (size_t p = 0; p < dag.nodes.size(); ++p) {
    if (dag.nodes[p].kind != DagKind::kProduct || dag.nodes[p].shape.size() != 2 || dag.nodes[p].operands.size() != 2)
      continue;
    int last = static_cast<int>(p);
    Operand bias;
    bias.node = -1;
    Activation activation = Activation::kNone;
    std::vector<int> absorbed;
    for (int user = only_user(dag, last); user >= 0; user = only_user(dag, last)) {
      const DagNode& u = dag.nodes[at(user)];
      const DagNode& so_far = dag.nodes[at(last)];
      if (u.dtype != so_far.dtype || u.shape != so_far.shape || u.kind != DagKind::kPointwise) break;
      if (u.op == ExprOp::kAdd && bias.node < 0 && activation == Activation::kNone) {
        const size_t own = u.operands[0].node == last ? 0 : 1;
        const Operand& other = u.operands[1 - own];
        if (other.is_number() || !is_whole(u.operands[own], so_far.shape) ||
            dag.nodes[at(other.node)].dtype != u.dtype || other.strides[0] != 0 ||
            (other.strides[1] != 1 && other.shape[1] != 1))
          break;
        bias = other;
        bias.shape = {other.shape[1]};
        bias.strides = {1};
      } else if ((u.op == ExprOp::kRelu || u.op == ExprOp::kGeluTanh || may_be_tanh(u)) &&
                 activation == Activation::kNone && is_whole(u.operands[0], so_far.shape)) {
        activation = u.op == ExprOp::kRelu ? Activation::kRelu : Activation::kGeluTanh;
      } else {
        break;
      }
      absorbed.push_back(so_far.origin);
      last = user;
    }
    if (last == static_cast<int>(p)) continue;
    any = true;
    DagNode product = dag.nodes[p];
    if (bias.node >= 0) product.operands.push_back(bias);
    product.activation = activation;
    product.origin = dag.nodes[at(last)].origin;
    product.absorbed = std::move(absorbed);
    if (!dag.nodes[at(last)].name.empty()) product.name = dag.nodes[at(last)].name;
    dag.nodes[at(last)] = std::move(product);
  }
  tidy(dag);
  return any;
}

}  // namespace kiln::fusion
