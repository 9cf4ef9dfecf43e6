#include "compiler/passes/tile/licm.h"

#include <algorithm>

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

void hoist_from(Op* loop) {
  for (ir::Block* region : loop->regions) {
    for (Op* op : *region) {
      const bool invariant = std::all_of(op->operands.begin(), op->operands.end(), [&](const Value* v) {
        return !encloses(loop, v->block ? v->block : v->op->parent);
      });
      if (!ir::is_pure(op) || !invariant) continue;
      op->unlink();
      loop->parent->insert_before(loop, op);
    }
  }
}

void visit(ir::Block* block) {
  for (Op* op : *block) {
    for (ir::Block* region : op->regions) visit(region);
    if (op->kind == OpKind::kFor || op->kind == OpKind::kWhile) hoist_from(op);
  }
}

}  // namespace

Status licm(ir::Module& module, const LicmOptions&) {
  visit(module.body());
  return {};
}

}  // namespace kiln::passes
