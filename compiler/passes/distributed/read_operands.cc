#include "compiler/passes/distributed/read_operands.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/shared_memory.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"

namespace kiln::passes {

namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;

constexpr int kWideOperand = 64;     // registers
constexpr int kMostConverted = 128;  // for operands of all sums of a block

class OperandReader {
 public:
  OperandReader(ir::Module& module, const target::Target& target)
      : module_(module), room_(shared_room(module, target)), b_(module) {}

  void run() {
    collect(module_.body());
    std::map<const Block*, std::set<const Op*>> converted;
    for (const Op* dot : dots_)
      for (int i : {0, 1})
        if (const Op* made = dot->operand(i)->op; made && made->kind == OpKind::kConvertLayout)
          converted[dot->parent].insert(made);
    for (const auto& [block, conversions] : converted) {
      int registers = 0;
      for (const Op* op : conversions) registers += op->result()->type.layout->num_registers();
      if (registers > kMostConverted) crowded_.insert(block);
    }
    for (Op* dot : dots_)
      for (int i : {0, 1}) read_late(dot, i);
    for (Value* tile : tiles_) store_once(tile);
  }

 private:
  void collect(Block* block) {
    for (Op* op : *block) {
      if (op->kind == OpKind::kDot && !analysis::uses_mma(*op)) dots_.push_back(op);
      if (op->kind == OpKind::kLoad) tiles_.push_back(op->result());
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
    if (!made || !std::ranges::all_of(operand->uses, is_operand)) return;
    const bool waits = operand->uses.size() > 1 && crowded_.contains(dot->parent);  // for its next product
    if (!is_wide(operand) && !(waits && made->kind == OpKind::kConvertLayout)) return;
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

  /// Whether all warps meet in this round first, so that nobody still reads what the round before stored.
  static bool has_met(const Op* before) {
    for (const Op* op = before->parent->first; op != before; op = op->next) {
      if (op->kind == OpKind::kBarrier && !op->has(ir::AttrName::kWarps)) return true;
      if (op->kind == OpKind::kConvertLayout && analysis::scratch_bytes(*op) > 0) return true;
    }
    return false;
  }
  static bool has_waited(const Op* convert) {
    for (const ir::Use& use : convert->result()->uses)
      if (use.op->parent != convert->parent) return false;
    return has_met(convert);
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

  /// A conversion through shared memory to what instructions multiply, of a tile or of its transpose.
  struct Fragment {
    Op* convert;
    bool turned;
  };

  static bool is_fragment(const Op* convert) {
    if (convert->kind != OpKind::kConvertLayout) return false;
    const Value *from = convert->operand(0), *to = convert->result();
    return layout::plan_convert(*from->type.layout, *to->type.layout, size_of(to->type.dtype)).kind ==
               layout::ConvertKind::kShared &&
           std::ranges::all_of(to->uses, [](const ir::Use& use) {
             return use.op->kind == OpKind::kDot && use.index < 2 && analysis::uses_mma(*use.op) &&
                    analysis::is_on_registers(*use.op);
           });
  }

  /// What several products read, such as keys that are values too, is stored once, and its registers are free from
  /// there on. Of halves, which ldmatrix reads either way.
  void store_once(Value* tile) {
    constexpr int kHalf = 2;  // bytes
    const ir::Type& type = tile->type;
    if (!type.is_tile() || type.pointer || type.shape.rank != 2 || size_of(type.dtype) != kHalf) return;
    std::vector<Fragment> fragments;
    for (const ir::Use& use : tile->uses) {
      if (use.op->parent != tile->op->parent) return;
      if (is_fragment(use.op)) fragments.push_back({use.op, false});
      if (use.op->kind != OpKind::kTrans) continue;
      for (const ir::Use& of_turned : use.op->result()->uses)
        if (of_turned.op->parent == tile->op->parent && is_fragment(of_turned.op))
          fragments.push_back({of_turned.op, true});
    }
    const int along = dim_of_neighbours(*type.layout);
    const int order[] = {along, 1 - along};
    if (fragments.size() < 2 || layout::widest_swizzle(type.shape[along], type.element_bits()) == 0) return;
    const ir::Type buffer_type = swizzled_type(module_, type, order);
    const int64_t bytes = analysis::shared_bytes(buffer_type);
    if (bytes > room_) return;
    room_ -= bytes;
    b_.set_range(tile->op->range);
    b_.set_before(module_.body()->first);
    Value* buffer = b_.create(OpKind::kSharedAlloc, {}, std::span(&buffer_type, 1))->result();
    b_.set_after(tile->op);
    if (is_in_loop(tile->op->parent) && !has_met(tile->op)) join_lanes(b_, true);
    Value* stored[] = {buffer, tile};
    b_.create(OpKind::kSharedStore, stored, {});
    join_lanes(b_, true);
    for (const auto& [convert, turned] : fragments) {
      b_.set_before(convert);
      Op* trans = turned ? convert->operand(0)->op : nullptr;
      Value* handle = turned ? transposed(b_, buffer, kSwap) : buffer;
      replace(convert, b_.create1(OpKind::kSharedLoad, {handle}, convert->result()->type));
      if (trans && trans->result()->uses.empty()) trans->erase();
    }
  }

  ir::Module& module_;
  int64_t room_;
  ir::Builder b_;
  std::vector<Op*> dots_;
  std::vector<Value*> tiles_;       // that are loaded
  std::set<const Block*> crowded_;  // whose operands fill the registers
};

}  // namespace

Status read_operands(ir::Module& module, const target::Target& target) {
  OperandReader(module, target).run();
  return {};
}

}  // namespace kiln::passes
