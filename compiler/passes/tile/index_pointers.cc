#include "compiler/passes/tile/index_pointers.h"

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

bool is_outside(const Op* loop, const Value* v) { return !encloses(loop, v->block ? v->block : v->op->parent); }

/// The scalar that every element of an addend is, as i64 in front of the loop; null when there is none.
Value* uniform_step(ir::Builder& b, Op* loop, Value* step) {
  if (!is_signed(step->type.dtype)) return nullptr;
  const ir::Type i64 = ir::scalar_type(DType::kI64);
  if (const auto bits = constant_of(step)) {
    const unsigned unused = 64 - static_cast<unsigned>(step->type.element_bits());
    return b.constant_int(i64, static_cast<int64_t>(*bits << unused) >> unused);
  }
  if (!step->op || step->op->kind != OpKind::kSplat || !is_outside(loop, step->op->operand(0))) return nullptr;
  return b.cast(step->op->operand(0), DType::kI64);
}

void visit_loop(ir::Module& module, Op* loop) {
  ir::Block* body = loop->region();
  Op* yield = body->terminator();
  Value* turn = nullptr;
  for (size_t i = 0; i < loop->results.size(); ++i) {
    Value *arg = body->args[i + 1], *next = yield->operands[i];
    const bool advances = arg->type.pointer && arg->type.is_tile() && next->op && next->op->kind == OpKind::kAddPtr &&
                          next->op->operand(0) == arg;
    if (!advances || !loop->results[i]->uses.empty()) continue;
    ir::Builder b(module);
    b.set_before(loop);
    b.set_range(next->op->range);
    Value* step = uniform_step(b, loop, next->op->operand(1));
    if (!step) continue;
    b.set_before(body->first);
    if (!turn) {
      auto wide = [&](Value* v) { return b.cast(v, DType::kI64); };
      Value* distance = b.binary(OpKind::kSub, wide(body->args[0]), wide(loop->operand(0)));
      turn = b.binary(OpKind::kDiv, distance, wide(loop->operand(2)));
    } else {
      b.set_after(turn->op);
    }
    Value* offset = b.splat(b.binary(OpKind::kMul, turn, step), arg->type.shape);
    Value* pointers = b.addptr(loop->operand(static_cast<int>(i) + 3), offset);
    ir::replace_all_uses(arg, pointers);
    yield->set_operand(static_cast<int>(i), arg);
  }
}

}  // namespace

Status index_pointers(ir::Module& module, const IndexPointersOptions&) {
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor) visit_loop(module, op);
  });
  return {};
}

}  // namespace kiln::passes
