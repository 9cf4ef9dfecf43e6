#include "compiler/passes/distributed/load_early.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/passes/distributed/prefetch_loads.h"
#include "compiler/passes/util/loop_slice.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;

/// Of a thread, for all loads before one loop or dot, which keeps them until it ends.
constexpr int kMostRegistersBefore = 8;

/// Registers that a dot, or the dots of a loop at any depth, leave; nothing where there is none.
std::optional<int> room_beside(const Op* op) {
  if (op->kind == OpKind::kDot) return std::min(kMostRegistersBefore, prefetch_room(*op->parent));
  std::optional<int> room;
  if (has_combine_region(op)) return room;
  for (const Block* body : op->regions)
    for (const Op* inner : *body)
      if (const auto beside = room_beside(inner)) room = std::min(room.value_or(*beside), *beside);
  return room;
}

/// Whether loads behind it may see other values than before it.
bool is_barrier(const Op* op) {
  return changes_memory(op) || ir::any_nested(op, [](const Op* inner) {
           return inner->kind == OpKind::kGdcWait || waits_for_others(inner) ||
                  (inner->kind == OpKind::kLoad && inner->flag(AttrName::kVolatile));
         });
}

/// Moves loads from behind a loop, or a dot, to before it.
class EarlyLoads {
 public:
  EarlyLoads(ir::Module& module, Op* dots, int room) : dots_(dots), room_(room), b_(module) {}

  void run() {
    Op* next = nullptr;
    for (Op* op = dots_->next; op && !is_barrier(op); op = next) {
      next = op->next;
      behind_.insert(op);
      if (op->kind != OpKind::kLoad) continue;
      const int registers = registers_of(op->result()->type);
      if (registers > room_ || !std::ranges::all_of(op->operands, [&](const Value* v) { return is_known(v); }))
        continue;
      room_ -= registers;
      move(op);
    }
  }

 private:
  /// Whether `v` can be computed before the dots, each thread for itself.
  bool is_known(const Value* v) const {
    const Op* op = v->op;
    if (!op || op->parent != dots_->parent) return true;  // of a block around
    if (op == dots_) return false;
    if (!behind_.contains(op)) return true;
    const bool is_own = ir::is_pure(op) && op->regions.empty() && !ir::is_across(op->kind);
    return is_own && std::ranges::all_of(op->operands, [&](const Value* o) { return is_known(o); });
  }

  /// `v` before the dots: what others use of it behind them keeps no registers meanwhile.
  Value* before(Value* v) {
    if (!v->op || !behind_.contains(v->op)) return v;
    if (const auto known = copies_.find(v); known != copies_.end()) return known->second;
    return copies_[v] = copy(*v->op)->result();
  }
  Op* copy(const Op& op) {
    std::vector<Value*> operands;
    for (Value* v : op.operands) operands.push_back(before(v));
    b_.set_range(op.range);
    const ir::Type type = op.result()->type;
    return b_.create(op.kind, operands, std::span(&type, 1), op.attrs);
  }

  void move(Op* load) {
    b_.set_before(dots_);
    Value* early = copy(*load)->result();
    behind_.erase(load);
    replace(load, early);
  }

  Op* dots_;
  int room_;
  ir::Builder b_;
  std::unordered_set<const Op*> behind_;
  Copies copies_;
};

}  // namespace

Status load_early(ir::Module& module) {
  // A producer would wait for them, too, before it gives its registers away (products with scales: up to 5 % slower).
  if (has_op(module, OpKind::kDescriptorLoad)) return {};
  std::vector<Op*> waited_for;
  ir::walk(module.body(), [&](Op* op) {
    const bool is_loop = op->kind == OpKind::kFor || op->kind == OpKind::kWhile;
    // prefetch_loads loads what a loop's own dots are followed by.
    if (is_loop || (op->kind == OpKind::kDot && !is_in_loop(op->parent))) waited_for.push_back(op);
  });
  for (Op* op : waited_for)
    if (const auto room = room_beside(op); room && !is_barrier(op)) EarlyLoads(module, op, *room).run();
  return {};
}

}  // namespace kiln::passes
