#include "compiler/passes/canonicalize/rules.h"

namespace kiln::passes {

using ir::Op;
using ir::OpKind;
using ir::Value;

bool simplify_dot(Op* op, ir::Builder& b) {
  if (op->kind != OpKind::kAdd) return false;
  for (int side = 0; side < 2; ++side) {
    Op* dot = op->operand(side)->op;
    Value* addend = op->operand(1 - side);
    if (!dot || dot->kind != OpKind::kDot || dot->result()->uses.size() != 1 || dot->parent != op->parent) continue;
    if (const auto start = constant_of(dot->operand(2)); !start || *start != 0) continue;
    const ir::Type type = op->result()->type;
    replace(op, b.create1(OpKind::kDot, {dot->operand(0), dot->operand(1), addend}, type, dot->attrs));
    return true;
  }
  return false;
}

}  // namespace kiln::passes
