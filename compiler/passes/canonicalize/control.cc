#include "compiler/passes/canonicalize/rules.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

/// Gives each result's uses to a value and erases the op.
void replace_results(Op* op, std::span<Value* const> values) {
  for (size_t i = 0; i < op->results.size(); ++i) ir::replace_all_uses(op->results[i], values[i]);
  op->erase();
}

bool simplify_if(Op* op) {
  if (const auto condition = constant_of(op->operand(0))) {
    ir::Block* taken = op->region(*condition ? 0 : 1);
    const std::vector<Value*> yielded = taken->terminator()->operands;
    inline_block(taken, op);
    replace_results(op, yielded);
    return true;
  }
  // Both branches give the same value: it is defined outside of them.
  bool changed = false;
  for (size_t i = 0; i < op->results.size(); ++i) {
    Value* v = op->region(0)->terminator()->operands[i];
    if (v != op->region(1)->terminator()->operands[i] || op->results[i]->uses.empty()) continue;
    ir::replace_all_uses(op->results[i], v);
    changed = true;
  }
  return changed;
}

bool simplify_for(Op* op) {
  const std::vector<Value*> inits(op->operands.begin() + 3, op->operands.end());
  ir::Block* body = op->region();
  const auto trips = trip_count(op);
  if (trips == 0 || (op->operand(0) == op->operand(1) && constant_of(op->operand(2)))) {
    replace_results(op, inits);
    return true;
  }
  if (trips == 1) {
    ir::replace_all_uses(body->args[0], op->operand(0));
    for (size_t i = 0; i < inits.size(); ++i) ir::replace_all_uses(body->args[i + 1], inits[i]);
    const std::vector<Value*> yielded = body->terminator()->operands;
    inline_block(body, op);
    replace_results(op, yielded);
    return true;
  }
  // A loop value that each iteration passes on as it was is its initial value.
  bool changed = false;
  for (size_t i = 0; i < inits.size(); ++i) {
    Value *arg = body->args[i + 1], *yielded = body->terminator()->operands[i];
    if ((yielded != arg && yielded != inits[i]) || (arg->uses.empty() && op->results[i]->uses.empty())) continue;
    ir::replace_all_uses(arg, inits[i]);
    ir::replace_all_uses(op->results[i], inits[i]);
    changed = true;
  }
  return changed;
}

/// `before` runs once when its condition is false.
bool simplify_while(Op* op) {
  ir::Block* before = op->region(0);
  const Op* condition = before->terminator();
  const auto holds = constant_of(condition->operand(0));
  if (!holds || *holds) return false;
  for (size_t i = 0; i < op->operands.size(); ++i) ir::replace_all_uses(before->args[i], op->operands[i]);
  const std::vector<Value*> values(condition->operands.begin() + 1, condition->operands.end());
  inline_block(before, op);
  replace_results(op, values);
  return true;
}

}  // namespace

bool simplify_control(Op* op, ir::Builder&) {
  if (op->kind == OpKind::kIf) return simplify_if(op);
  if (op->kind == OpKind::kFor) return simplify_for(op);
  if (op->kind == OpKind::kWhile) return simplify_while(op);
  return false;
}

}  // namespace kiln::passes
