#include "compiler/passes/distributed/assign_layouts.h"

#include <algorithm>
#include <map>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/cheap_values.h"
#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/layout_ops.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/distributed/choose_layouts.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "support/diag.h"

namespace kiln::passes {

using analysis::CheapValues;
using analysis::is_shape_op;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;
using layout::LinearLayout;

namespace {

/// Writes the chosen layouts into the IR.
class Rewriter {
 public:
  Rewriter(ir::Module& module, const CheapValues& cheap, LayoutChoice& choice)
      : module_(module), cheap_(cheap), choice_(choice) {}

  void run() {
    walk_block(module_.body());
    erase_unused(module_.body());
    module_.stage = ir::Stage::kDistributed;
  }

 private:
  void walk_block(Block* block) {
    for (Op* op : *block) rewrite(op);
  }

  void set_layout(Value* v, const LinearLayout* layout) {
    if (is_tile(v)) v->type.layout = layout;
  }
  void choose_layout(Value* v) {
    if (is_tile(v)) v->type.layout = choice_.of(v);
  }

  /// `v` with `layout`, for a use by `user`.
  Value* held(Value* v, const LinearLayout* layout, Op* user) {
    if (!is_tile(v)) return v;
    if (cheap_.has(v)) return recomputed(v, layout);
    if (v->type.layout == layout) return v;
    auto& made = converted_[{v, layout}];
    if (made) return made;
    // Once for all uses, and outside of loops that do not change it: right where the value is made.
    ir::Builder b(module_);
    if (v->op)
      b.set_after(v->op);
    else if (v->block->first)
      b.set_before(v->block->first);
    b.set_range(v->op ? v->op->range : user->range);
    made = b.create1(OpKind::kConvertLayout, {v}, v->type.with_layout(layout));
    return made;
  }

  Value* recomputed(Value* v, const LinearLayout* layout) {
    auto& made = converted_[{v, layout}];
    if (made) return made;
    Op* op = v->op;
    std::vector<Value*> operands;
    for (size_t i = 0; i < op->operands.size(); ++i) {
      Value* operand = op->operands[i];
      if (is_tile(operand)) {
        auto wanted = analysis::operand_layout(*op, static_cast<int>(i), *layout);
        KILN_ASSERT(wanted, "{} is not cheap", ir::info(op->kind).mnemonic);
        operand = recomputed(operand, module_.intern(*wanted));
      }
      operands.push_back(operand);
    }
    ir::Builder b(module_);
    b.set_before(op);
    b.set_range(op->range);
    ir::Type type = v->type.with_layout(layout);
    Value* copy = b.create(op->kind, operands, std::span(&type, 1), op->attrs)->result();
    copy->name = v->name;
    return converted_[{v, layout}] = copy;
  }

  void hold_operand(Op* op, size_t i, const LinearLayout* layout) {
    op->set_operand(static_cast<int>(i), held(op->operands[i], layout, op));
  }
  void hold_all(Op* op, const LinearLayout* layout) {
    for (size_t i = 0; i < op->operands.size(); ++i) hold_operand(op, i, layout);
  }

  /// Gives a result the layout that the op makes, and its users the one that was chosen for them.
  void give(Op* op, Value* result, const LinearLayout* made) {
    if (!is_tile(result)) return;
    const LinearLayout* chosen = choice_.of(result);
    result->type.layout = made;
    if (made == chosen) return;
    ir::Builder b(module_);
    b.set_after(op);
    b.set_range(op->range);
    std::vector<ir::Use> uses = result->uses;
    Value* copy = b.create1(OpKind::kConvertLayout, {result}, result->type.with_layout(chosen));
    for (const ir::Use& use : uses) use.op->set_operand(static_cast<int>(use.index), copy);
  }

  void rewrite(Op* op) {
    switch (op->kind) {
      case OpKind::kFor:
      case OpKind::kWhile:
      case OpKind::kIf:
        rewrite_control(op);
        return;
      default:  // distinguished by traits below
        break;
    }
    bool has_tile = std::any_of(op->operands.begin(), op->operands.end(), is_tile) ||
                    std::any_of(op->results.begin(), op->results.end(), is_tile);
    if (!has_tile || ir::is_terminator(op)) return;
    if (op->results.size() == 1 && cheap_.has(op->result())) return;  // made where it is wanted

    if (op->kind == OpKind::kDot && !is_wgmma(op)) {
      choose_layout(op->result());
      const LinearLayout* result = op->result()->type.layout;
      hold_operand(op, 2, result);
      for (int i = 0; i < 2; ++i)
        hold_operand(op, static_cast<size_t>(i), module_.intern(analysis::dot_operand_layout(*op, i, *result)));
    } else if (is_forward(op)) {
      const LinearLayout* in = choice_.of(op);
      hold_all(op, in);
      for (Value* r : op->results)
        if (is_tile(r)) give(op, r, module_.intern(*analysis::result_layout(*op, *in)));
    } else if (is_shape_op(op) || op->kind == OpKind::kSplit) {
      for (Value* r : op->results) choose_layout(r);
      auto wanted = analysis::operand_layout(*op, 0, *op->result()->type.layout);
      hold_operand(op, 0, module_.intern(*wanted));
    } else if (is_wgmma(op)) {
      choose_layout(op->result());
      hold_operand(op, 2, op->result()->type.layout);
      if (takes_registers(op)) {
        const ir::Type& a = op->operand(0)->type;
        hold_operand(op, 0,
                     module_.intern(layout::mma_operand(layout::DotSide::kA, a.shape.span(), a.element_bits(),
                                                        *op->result()->type.layout)));
      }
      for (int i : {0, 1})  // any layout does for what is stored to shared memory
        if (const Value* v = op->operand(i); is_staged(op, i) && cheap_.has(v))
          hold_operand(op, static_cast<size_t>(i), module_.intern(default_layout(v->type.shape, module_.num_warps)));
    } else if (ir::is_gather(op->kind)) {
      choose_layout(op->result());
      hold_operand(op, 0, choice_.of(op));
      for (size_t i = 1; i < op->operands.size(); ++i) hold_operand(op, i, op->result()->type.layout);
    } else if (op->kind == OpKind::kBucketPlace) {
      for (Value* r : op->results) choose_layout(r);
      hold_operand(op, 0, op->result()->type.layout);
    } else if (ir::is_pure(op)) {
      for (Value* r : op->results) choose_layout(r);
      hold_all(op, op->result()->type.layout);
    } else {
      const LinearLayout* own = choice_.of(op);
      hold_all(op, own);
      for (Value* r : op->results) give(op, r, own);
    }
  }

  void rewrite_control(Op* op) {
    for (Value* r : op->results) choose_layout(r);
    for (Block* b : op->regions)
      for (Value* arg : b->args) choose_layout(arg);
    size_t skip = op->kind == OpKind::kFor ? 3 : 0;
    if (op->kind != OpKind::kIf)
      for (size_t i = skip; i < op->operands.size(); ++i)
        hold_operand(op, i, op->region(0)->args[i - skip + (skip ? 1 : 0)]->type.layout);
    for (Block* b : op->regions) walk_block(b);
    for (size_t r = 0; r < op->regions.size(); ++r) {
      Op* end = op->region(static_cast<int>(r))->terminator();
      bool condition = end->kind == OpKind::kCondition;
      for (size_t i = condition ? 1 : 0; i < end->operands.size(); ++i) {
        const Value* target = condition                    ? op->region(1)->args[i - 1]
                              : op->kind == OpKind::kWhile ? op->region(0)->args[i]
                                                           : op->results[i];
        hold_operand(end, i, target->type.layout);
      }
    }
  }

  /// The cheap originals, whose recomputed forms are used now.
  void erase_unused(Block* block) {
    for (Op* op = block->last; op;) {
      Op* previous = op->prev;
      for (Block* b : op->regions)
        if (op->kind != OpKind::kReduce && op->kind != OpKind::kScan) erase_unused(b);
      bool used = std::any_of(op->results.begin(), op->results.end(), [](const Value* v) { return !v->uses.empty(); });
      if (!used && ir::is_pure(op)) op->erase();
      op = previous;
    }
  }

  ir::Module& module_;
  const CheapValues& cheap_;
  LayoutChoice& choice_;
  std::map<std::pair<Value*, const LinearLayout*>, Value*> converted_;
};

/// The accesses that move less at a time than their threads hold of a tile, with what limits them.
void tell_narrow_accesses(ir::Module& module, Remarks& remarks) {
  constexpr int64_t kWidestBytes = 16;
  const analysis::AxisAnalysis axis(module);
  ir::walk(module.body(), [&](const Op* op) {
    if (op->kind != OpKind::kLoad && op->kind != OpKind::kStore) return;
    const Value *pointer = op->operand(0), *mask = analysis::mask_of(op);
    if (!pointer->type.layout) return;
    const int64_t size = size_of(pointer->type.dtype), bytes = axis.vector_width(op) * size;
    const int64_t possible = std::min(kWidestBytes, pointer->type.layout->num_registers() * size);
    if (bytes >= possible) return;
    const int dim = axis.order_of(pointer)[0];
    const auto d = static_cast<size_t>(dim);
    const analysis::AxisInfo& info = axis.of(pointer);
    const int64_t unmasked = axis.alignment_width(pointer, nullptr, dim) * size;
    if (axis.alignment_width(pointer, mask, dim) * size > bytes)
      remark(&remarks, op->range, Reason::kAccessAcross, bytes, possible, bytes / size);
    else if (unmasked > bytes)
      remark(&remarks, op->range, Reason::kAccessMasked, bytes, possible, axis.of(mask).prefix[d]);
    else if (info.contiguity[d] * size <= bytes)
      remark(&remarks, op->range, Reason::kAccessScattered, bytes, possible, info.contiguity[d]);
    else
      remark(&remarks, op->range, Reason::kAccessUnaligned, bytes, possible, std::max(size, info.divisibility[d]));
  });
}

}  // namespace

Status assign_layouts(ir::Module& module, Remarks* remarks) {
  CheapValues cheap(module.body());
  LayoutChoice choice(module, cheap);
  Rewriter(module, cheap, choice).run();
  if (remarks) tell_narrow_accesses(module, *remarks);
  return {};
}

}  // namespace kiln::passes
