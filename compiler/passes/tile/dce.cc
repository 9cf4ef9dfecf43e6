#include "compiler/passes/tile/dce.h"

#include <unordered_set>

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

/// Marks from the effects backwards; a value carried by a loop lives only when its result, or something live in the
/// body, needs it.
class Dce {
 public:
  void run(ir::Block* body) {
    mark_effects(body);
    while (!pending_.empty()) {
      const Value* v = pending_.back();
      pending_.pop_back();
      reach(v);
    }
    sweep(body);
  }

 private:
  static bool is_effect(const Op* op) {
    return ir::writes_memory(op) || op->kind == OpKind::kWhile || op->kind == OpKind::kReturn ||
           (ir::reads_memory(op) && op->flag(ir::AttrName::kVolatile));
  }

  void mark_effects(ir::Block* block) {
    for (Op* op : *block) {
      if (is_effect(op)) mark(op);
      for (ir::Block* region : op->regions) mark_effects(region);
    }
  }

  void need(const Value* v) {
    if (values_.insert(v).second) pending_.push_back(v);
  }

  /// The op runs: so do those around it, and what decides whether and how it runs is needed.
  void mark(const Op* op) {
    if (!ops_.insert(op).second) return;
    if (op->parent->parent) mark(op->parent->parent);
    switch (op->kind) {
      case OpKind::kFor:
        for (int i = 0; i < 3; ++i) need(op->operand(i));
        return;
      case OpKind::kYield:
        return;  // its operands are needed one by one
      case OpKind::kWhile:
        for (const Value* v : op->operands) need(v);
        for (const ir::Block* region : op->regions)
          for (const Value* v : region->terminator()->operands) need(v);
        return;
      default:
        for (const Value* v : op->operands) need(v);
        if (!has_combine_region(op)) return;
        for (const Value* v : op->region()->terminator()->operands) need(v);
        for (const Value* v : op->region()->args) need(v);
    }
  }

  void reach(const Value* v) {
    const Op* op = v->op ? v->op : v->block->parent;
    if (!op) return;  // a parameter
    mark(op);
    if (op->kind == OpKind::kIf) {
      for (const ir::Block* region : op->regions) need(region->terminator()->operands[v->index]);
    } else if (op->kind == OpKind::kFor && (v->op || v->index > 0)) {
      const size_t i = v->op ? v->index : v->index - 1;
      need(op->results[i]);
      need(op->region()->args[i + 1]);
      need(op->operands[i + 3]);
      need(op->region()->terminator()->operands[i]);
    }
  }

  void sweep(ir::Block* block) {
    for (Op *op = block->last, *previous = nullptr; op; op = previous) {
      previous = op->prev;
      if (ir::is_terminator(op)) continue;
      if (!ops_.contains(op)) {
        drop(op);
        continue;
      }
      const bool narrows = op->kind == OpKind::kIf || op->kind == OpKind::kFor;
      // What is yielded for nothing has its last use there.
      for (int i = static_cast<int>(op->results.size()) - 1; narrows && i >= 0; --i)
        if (dead(op, i))
          for (ir::Block* region : op->regions) region->terminator()->erase_operand(i);
      for (ir::Block* region : op->regions) sweep(region);
      for (int i = static_cast<int>(op->results.size()) - 1; narrows && i >= 0; --i)
        if (dead(op, i)) remove_result(op, i);
    }
  }
  bool dead(const Op* op, int i) const { return !values_.contains(op->results[i]); }

  // Dead ops may use each other in a circle through a loop, so operands go before the op.
  static void drop(Op* op) {
    for (ir::Block* region : op->regions) ir::walk(region, drop_operands);
    drop_operands(op);
    op->erase();
  }
  static void drop_operands(Op* op) {
    while (!op->operands.empty()) op->erase_operand(static_cast<int>(op->operands.size()) - 1);
  }

  static void remove_result(Op* op, int i) {
    if (op->kind == OpKind::kFor) {
      op->erase_operand(i + 3);
      op->parent->module->erase_arg(op->region(), i + 1);
    }
    erase_result(op, i);
  }

  std::unordered_set<const Op*> ops_;
  std::unordered_set<const Value*> values_;
  std::vector<const Value*> pending_;
};

}  // namespace

Status dce(ir::Module& module, const DceOptions&) {
  Dce().run(module.body());
  return {};
}

}  // namespace kiln::passes
