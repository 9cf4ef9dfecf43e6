#include "compiler/passes/util/loop_slice.h"

#include <algorithm>

#include "compiler/layout/linear_layout.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int kMostIndexRegisters = 8;

}  // namespace

bool LoopSlice::add(const Value* v) {
  if (given_.contains(v)) return varies_ = true;
  if (v->block == body_) {
    varies_ = true;
    if (v->index == 0 || !args_.insert(v).second) return true;
    return add(body_->terminator()->operands[v->index - 1]);
  }
  if (!v->op || v->op->parent != body_ || ops_.contains(v->op)) return true;
  const Op* op = v->op;
  const bool is_index = stored_ && op->kind == OpKind::kLoad && !op->flag(AttrName::kVolatile) &&
                        registers_of(op->result()->type) <= kMostIndexRegisters &&
                        !analysis::pointer_origins(op->operand(0)).meets(*stored_);
  const bool is_computed =
      ir::is_pure(op) && op->regions.empty() && !ir::has_trait(op->kind, 'X') && !ir::has_trait(op->kind, 'H');
  if (!is_index && !is_computed) return false;
  ops_.insert(op);
  return std::all_of(op->operands.begin(), op->operands.end(), [&](const Value* operand) { return add(operand); });
}

int registers_of(const ir::Type& type) {
  const int words = type.pointer || size_of(type.dtype) == 8 ? 2 : 1;
  return words * (type.layout ? type.layout->num_registers() : 1);
}

int stages_of(const Op* loop, const ir::Module& module) {
  return static_cast<int>(loop->int_or(AttrName::kNumStages, module.num_stages));
}

std::optional<analysis::PointerOrigins> stored_origins(const Op* loop, const Op** unknown) {
  analysis::PointerOrigins stored;
  const Op* last = nullptr;
  // Barriers of a loop with rings are those of its rings: loops with others get none.
  const bool has_rings = ir::any_nested(loop, [](const Op* op) { return op->kind == OpKind::kAsyncCopy; });
  ir::any_nested(loop, [&](const Op* op) {
    if (has_rings && (op->kind == OpKind::kAsyncCopy || op->kind == OpKind::kBarrier)) return false;
    if (op->kind == OpKind::kStore || op->kind == OpKind::kDescriptorStore)
      stored.join(analysis::pointer_origins(op->operand(0)));
    else if (op->kind == OpKind::kGdcWait || (op != loop && waits_for_others(op)) ||
             (op->regions.empty() && changes_memory(op)))
      last = op;
    return false;
  });
  if (unknown) *unknown = last;
  if (last) return std::nullopt;
  return stored;
}

Value* runs(ir::Builder& b, const Op* loop, Value* iv) {
  return b.cmp(ir::Predicate::kLt, b.cast(iv, DType::kI64), b.cast(loop->operand(1), DType::kI64));
}

Value* masked(ir::Builder& b, Value* v, Value* mask, const Value* pointers) {
  if (pointers->type.is_tile()) v = b.create1(OpKind::kSplat, {v}, pointers->type.with_dtype(DType::kI1));
  return mask ? b.binary(OpKind::kAnd, mask, v) : v;
}

std::vector<Value*> masked_load(ir::Builder& b, Value* v, std::vector<Value*> operands) {
  Value* mask = masked(b, v, operands.size() > 1 ? operands[1] : nullptr, operands[0]);
  operands.resize(std::max<size_t>(2, operands.size()));
  operands[1] = mask;
  return operands;
}

}  // namespace kiln::passes
