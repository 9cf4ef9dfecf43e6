#include "compiler/passes/distributed/read_operands.h"

#include <algorithm>
#include <vector>

#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/shared_memory.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"

namespace kiln::passes {

namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;

constexpr int kWideOperand = 64;  // registers

class OperandReader {
 public:
  OperandReader(ir::Module& module, const target::Target& target)
      : module_(module), room_(shared_room(module, target)), b_(module) {}

  void run() {
    collect(module_.body());
    for (Op* dot : dots_)
      for (int i : {0, 1}) read_late(dot, i);
  }

 private:
  void collect(Block* block) {
    for (Op* op : *block) {
      if (op->kind == OpKind::kDot && !analysis::uses_mma(*op)) dots_.push_back(op);
      for (Block* b : op->regions) collect(b);
    }
  }

  static bool is_operand(const ir::Use& use) {
    return use.op->kind == OpKind::kDot && use.index < 2 && !analysis::uses_mma(*use.op);
  }
  static bool is_wide(const Value* operand) { return operand->type.layout->num_registers() > kWideOperand; }

  void read_late(Op* dot, int i) {
    Value* operand = dot->operand(i);
    Op* made = operand->op;
    if (!made || !is_wide(operand) || !std::ranges::all_of(operand->uses, is_operand)) return;
    if (made->kind == OpKind::kSharedLoad && operand->uses.size() == 1 && stays_until(made, dot)) {
      made->unlink();
      dot->parent->insert_before(dot, made);
    } else if (made->kind == OpKind::kConvertLayout) {
      by_buffer(made);
    }
  }

  /// Whether nothing is copied into shared memory between the two: a ring's next tile may go where this one is.
  static bool stays_until(const Op* load, const Op* dot) {
    if (load->parent != dot->parent) return false;
    for (const Op* op = load; op != dot; op = op->next) {
      auto copies = [](const Op* inner) { return inner->kind == OpKind::kAsyncCopy; };
      if (ir::any_nested(op, copies)) return false;
    }
    return true;
  }

  /// Whether a barrier of this round comes first, so that nobody still reads what the round before stored.
  static bool has_waited(const Op* convert) {
    for (const ir::Use& use : convert->result()->uses)
      if (use.op->parent != convert->parent) return false;
    for (const Op* op = convert->parent->first; op != convert; op = op->next)
      if (op->kind == OpKind::kBarrier && !op->has(ir::AttrName::kWarps)) return true;
    return false;
  }

  void by_buffer(Op* convert) {
    const ir::Type &from = convert->operand(0)->type, &to = convert->result()->type;
    const layout::ConvertPlan plan = layout::plan_convert(*from.layout, *to.layout, size_of(to.dtype));
    if (plan.kind != layout::ConvertKind::kShared) return;
    const ir::Type type = ir::shared_type(to.dtype, to.shape, module_.intern(*plan.scratch), 1);
    const int64_t bytes = analysis::shared_bytes(type);
    if (bytes > room_) return;
    room_ -= bytes;
    b_.set_range(convert->range);
    b_.set_before(module_.body()->first);
    Value* buffer = b_.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result();
    b_.set_before(convert);
    if (is_in_loop(convert->parent) && !has_waited(convert)) join_lanes(b_, true);
    Value* stored[] = {buffer, convert->operand(0)};
    b_.create(OpKind::kSharedStore, stored, {});
    join_lanes(b_, true);
    const std::vector<ir::Use> uses = convert->result()->uses;
    for (const ir::Use& use : uses) {
      b_.set_before(use.op);
      use.op->set_operand(static_cast<int>(use.index), b_.create1(OpKind::kSharedLoad, {buffer}, to));
    }
    convert->erase();
  }

  ir::Module& module_;
  int64_t room_;
  ir::Builder b_;
  std::vector<Op*> dots_;
};

}  // namespace

Status read_operands(ir::Module& module, const target::Target& target) {
  OperandReader(module, target).run();
  return {};
}

}  // namespace kiln::passes
