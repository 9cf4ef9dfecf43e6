#include "compiler/passes/distributed/sink_conversions.h"

#include <vector>

namespace kiln::passes {

using ir::Op;
using ir::OpKind;

namespace {

/// The first op of the value's own block that uses it, or has an op which does.
Op* first_user(const Op* made) {
  Op* first = nullptr;
  for (const ir::Use& use : made->result()->uses) {
    Op* user = use.op;
    while (user->parent != made->parent) user = user->parent->parent;
    if (!first || user->is_before(first)) first = user;
  }
  return first;
}

}  // namespace

Status sink_conversions(ir::Module& module) {
  std::vector<Op*> conversions;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind != OpKind::kConvertLayout || op->result()->type.shape.rank < 2) return;
    if (op->result()->type.layout->num_registers() > op->operand(0)->type.layout->num_registers())
      conversions.push_back(op);
  });
  for (Op* op : conversions) {
    Op* user = first_user(op);
    if (!user || user == op->next) continue;
    op->unlink();
    user->parent->insert_before(user, op);
  }
  return {};
}

}  // namespace kiln::passes
