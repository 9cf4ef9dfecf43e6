#include "compiler/passes/tile/index_pointers.h"

#include <map>

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

bool is_outside(const Op* loop, const Value* v) { return !encloses(loop, v->block ? v->block : v->op->parent); }

/// The scalar that every element of an addend is, as `type` in front of the loop; null when there is none.
Value* uniform_step(ir::Builder& b, Op* loop, Value* step, DType type) {
  if (const auto bits = constant_of(step)) {
    const unsigned unused = 64 - static_cast<unsigned>(step->type.element_bits());
    const auto high = *bits << unused;
    return b.constant_int(ir::scalar_type(type), is_signed(step->type.dtype) ? static_cast<int64_t>(high) >> unused
                                                                             : static_cast<int64_t>(high >> unused));
  }
  if (!step->op || step->op->kind != OpKind::kSplat || !is_outside(loop, step->op->operand(0))) return nullptr;
  return b.cast(step->op->operand(0), type);
}

/// How often the loop's body has run, as `type`.
Value* turn_of(ir::Builder& b, const Op* loop, DType type) {
  Value* turn = b.cast(loop->region()->args[0], type);
  if (constant_of(loop->operand(0)) != uint64_t{0}) turn = b.binary(OpKind::kSub, turn, b.cast(loop->operand(0), type));
  if (constant_of(loop->operand(2)) != uint64_t{1}) turn = b.binary(OpKind::kDiv, turn, b.cast(loop->operand(2), type));
  return turn;
}

/// How often it has run when the loop ends, of a positive constant step.
Value* turns_of(ir::Builder& b, const Op* loop, DType type) {
  const DType wide = DType::kI64;
  Value *first = b.cast(loop->operand(0), wide), *end = b.cast(loop->operand(1), wide);
  Value* zero = b.constant_int(ir::scalar_type(wide), 0);
  Value* turns = b.binary(OpKind::kSub, end, first);
  if (const auto step = static_cast<int64_t>(*constant_of(loop->operand(2))); step != 1) {
    turns = b.binary(OpKind::kAdd, turns, b.constant_int(ir::scalar_type(wide), step - 1));
    turns = b.binary(OpKind::kDiv, turns, b.constant_int(ir::scalar_type(wide), step));
  }
  return b.cast(b.select(b.cmp(ir::Predicate::kLt, first, end), turns, zero), type);
}

bool advances(const Value* arg, const Value* next) {
  if (!arg->type.is_tile() || !next->op || next->op->operands.empty() || next->op->operand(0) != arg) return false;
  if (arg->type.pointer) return next->op->kind == OpKind::kAddPtr && is_signed(next->op->operand(1)->type.dtype);
  return next->op->kind == OpKind::kAdd && arg->type.is_int();
}

void visit_loop(ir::Module& module, Op* loop, bool pointers) {
  ir::Block* body = loop->region();
  Op* yield = body->terminator();
  std::map<DType, Value*> turns;
  constexpr uint64_t kMostStep = 1 << 30;  // not one of a negative sign
  const auto by = constant_of(loop->operand(2));
  const bool ends_known = !pointers && by && *by > 0 && *by <= kMostStep;
  for (size_t i = 0; i < loop->results.size(); ++i) {
    Value *arg = body->args[i + 1], *next = yield->operands[i];
    if (arg->type.pointer != pointers || !advances(arg, next) || (!ends_known && !loop->results[i]->uses.empty()))
      continue;
    const DType type = pointers ? DType::kI64 : arg->type.dtype;
    ir::Builder b(module);
    b.set_before(loop);
    b.set_range(next->op->range);
    Value* step = uniform_step(b, loop, next->op->operand(1), type);
    if (!step) continue;
    Value*& turn = turns[type];
    if (turn && turn->op) {
      b.set_after(turn->op);
    } else {
      b.set_before(body->first);
      if (!turn) turn = turn_of(b, loop, type);
    }
    Value* offset = b.splat(b.binary(OpKind::kMul, turn, step), arg->type.shape);
    Value* first = loop->operand(static_cast<int>(i) + 3);
    Value* now = pointers ? b.addptr(first, offset) : b.binary(OpKind::kAdd, first, offset);
    ir::replace_all_uses(arg, now);
    yield->set_operand(static_cast<int>(i), arg);
    if (Value* last = loop->results[i]; !last->uses.empty()) {
      b.set_after(loop);
      Value* end = b.splat(b.binary(OpKind::kMul, turns_of(b, loop, type), step), arg->type.shape);
      ir::replace_all_uses(last, b.binary(OpKind::kAdd, first, end));
    }
  }
}

}  // namespace

Status index_pointers(ir::Module& module, const IndexOptions&) {
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor) visit_loop(module, op, true);
  });
  return {};
}

Status index_integers(ir::Module& module, const IndexOptions&) {
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor && constant_of(op->operand(2))) visit_loop(module, op, false);
  });
  return {};
}

}  // namespace kiln::passes
