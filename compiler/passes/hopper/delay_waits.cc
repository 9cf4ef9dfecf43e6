#include "compiler/passes/hopper/delay_waits.h"

#include <algorithm>
#include <vector>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Value;

constexpr int kSum = 2;  // the operand of a product

bool uses(const Op* op, const Value* v) {
  return ir::any_nested(op, [&](const Op* inner) {
    return std::find(inner->operands.begin(), inner->operands.end(), v) != inner->operands.end();
  });
}

bool is_shared(const Value* v) { return v->type.form == ir::Form::kShared; }

/// Whether the op computes `v` behind `product`, in the same block.
bool is_computed_behind(const Value* v, const Op* product) {
  return v->op && v->op->parent == product->parent && !v->op->is_before(product);
}

/// What made the memory behind a handle; null: something else than an allocation.
const Op* allocation_of(const Value* handle) {
  const Op* op = handle->op;
  while (op && op->kind != OpKind::kSharedAlloc) op = op->operand(0)->op;
  return op;
}

/// Whether only TMA writes what lies behind the handle, which waits until the slot is released.
bool is_slot(const Value* handle) {
  const Op* op = allocation_of(handle);
  if (!op) return false;
  std::vector<const Value*> views = {op->result()};
  for (size_t i = 0; i < views.size(); ++i)
    for (const ir::Use& use : views[i]->uses) {
      if (use.op->kind == OpKind::kSharedStore || use.op->kind == OpKind::kAsyncCopy) return false;
      if (use.op->kind == OpKind::kSharedView || use.op->kind == OpKind::kSharedTrans)
        views.push_back(use.op->result());
    }
  return true;
}

/// Whether warps that go on may write nothing that the product reads. Behind a loop other buffers take the place of its
/// slots.
bool reads_slots(const Op* product) {
  return is_in_loop(product->parent) && std::all_of(product->operands.begin(), product->operands.end(),
                                                    [](const Value* v) { return !is_shared(v) || is_slot(v); });
}

/// Whether what the product reads lies in memory that is nobody else's while the loop around it runs, so that scratch
/// memory of the ops beside it is other memory.
bool reads_rings(const Op* product) {
  const Op* loop = product->parent->parent;
  while (loop && loop->kind != OpKind::kFor && loop->kind != OpKind::kWhile) loop = loop->parent->parent;
  return loop && std::ranges::all_of(product->operands, [&](const Value* v) {
           if (!is_shared(v)) return true;
           const Op* alloc = allocation_of(v);
           return alloc && !encloses(loop, alloc->parent);
         });
}

/// Whether a copy goes to other memory than the product reads. Of one ring that is another slot: whoever copies ahead
/// has one more than he fills.
bool copies_elsewhere(const Op* copy, const Op* product) {
  const Value* to = copy->operand(0);
  const bool in_ring = to->op && to->op->kind == OpKind::kSharedView;
  return in_ring && std::ranges::none_of(product->operands, [&](const Value* v) {
           while (v->op && v->op->kind == OpKind::kSharedTrans) v = v->op->operand(0);
           if (!is_shared(v)) return false;
           if (!v->op || v->op->kind != OpKind::kSharedView) return v == to->op->operand(0);
           return v->op->operands == to->op->operands;
         });
}

/// Whether `product` may be unfinished while this runs, whatever it multiplies.
bool runs_beside(const Op* op, const Op* product) {
  switch (op->kind) {
    case OpKind::kWgmma:
      // ptxas lets no product run while others' operands are computed into registers: it would wait for each at once.
      return is_shared(op->operand(0)) || !is_computed_behind(op->operand(0), product);
    case OpKind::kWgmmaWait: {
      // Who waits for a later product has waited for this one; ptxas counts on waits in the order of their products.
      const Op* other = op->operand(0)->op;
      return !other || other->parent != product->parent || other->is_before(product);
    }
    case OpKind::kLoad:
    case OpKind::kSharedLoad:
    case OpKind::kAsyncCommit:
      return true;
    case OpKind::kAsyncCopy:
      return copies_elsewhere(op, product);
    case OpKind::kAtomicRmw:
      return analysis::scratch_bytes(*op) == 0;
    case OpKind::kDescriptorStore:  // it becomes stores to shared memory and barriers
    case OpKind::kSharedStore:
    case OpKind::kFenceAsync:
    case OpKind::kBarrier:
      return reads_slots(product);
    case OpKind::kReduce:
    case OpKind::kConvertLayout:
      return analysis::scratch_bytes(*op) == 0 || reads_rings(product);
    default:
      return ir::is_pure(op) && op->regions.empty() && analysis::scratch_bytes(*op) == 0;
  }
}

/// Whether the product of `wait` goes into the sum of `next` and nowhere else: those of one sum run in their order.
bool is_continued(const Op* wait, const Op* next) {
  const std::vector<ir::Use>& users = wait->result()->uses;
  return next->kind == OpKind::kWgmma && users.size() == 1 && users[0].op == next && users[0].index == kSum;
}

/// Conversions of scales through shared memory, at whose barriers warps would wait before the product starts, go behind
/// it where nothing needs them sooner: to where they or the product's result are used first.
void convert_behind_products(Block* block) {
  // Of a tile, whose registers a product needs for itself, they stay.
  constexpr int kMostRegisters = 16;
  std::vector<Op*> conversions;
  for (Op* op : *block)
    if (op->kind == OpKind::kConvertLayout && analysis::scratch_bytes(*op) > 0 &&
        op->operand(0)->type.layout->num_registers() <= kMostRegisters)
      conversions.push_back(op);
  for (Op* conversion : conversions) {
    const Op* wait = nullptr;  // for the product that the conversion has passed
    Op* end = conversion->next;
    while (end != block->terminator() && !uses(end, conversion->result()) && !(wait && uses(end, wait->result()))) {
      if (end->kind == OpKind::kWgmmaWait && end->operand(0)->op && reads_rings(end->operand(0)->op)) wait = end;
      end = end->next;
    }
    if (!wait) continue;
    conversion->unlink();
    block->insert_before(end, conversion);
  }
}

void delay(Block* block) {
  convert_behind_products(block);
  std::vector<Op*> waits;
  for (Op* op : *block) {
    if (op->kind != OpKind::kWgmmaWait) continue;
    if (op->int_attr(AttrName::kCount) != 0) return;
    if (op->operand(0)->op && op->operand(0)->op->kind == OpKind::kWgmma) waits.push_back(op);
  }
  // From the last one on: the others may then pass it.
  for (auto at = waits.rbegin(); at != waits.rend(); ++at) {
    Op* wait = *at;
    // The registers of a computed operand are the product's while it runs, too.
    const Value* operand = wait->operand(0)->op->operand(0);
    Op* end = wait->next;
    while (end != block->terminator() && runs_beside(end, wait->operand(0)->op) && !uses(end, wait->result()) &&
           (is_shared(operand) || !uses(end, operand)))
      end = end->next;
    if (is_continued(wait, end)) {
      end->set_operand(kSum, wait->operand(0));
      wait->erase();
      continue;
    }
    wait->unlink();
    block->insert_before(end, wait);
  }
  for (Op* op : *block) {
    if (op->kind != OpKind::kWgmmaWait) continue;
    const Op* product = op->operand(0)->op;
    if (!product || product->kind != OpKind::kWgmma) continue;
    int64_t later = 0;
    for (const Op* after = product->next; after != op; after = after->next) later += after->kind == OpKind::kWgmma;
    op->set(AttrName::kCount, later);
  }
}

}  // namespace

Status delay_waits(ir::Module& module, const target::Target&) {
  std::vector<Block*> blocks = {module.body()};
  ir::walk(module.body(), [&](Op* op) { blocks.insert(blocks.end(), op->regions.begin(), op->regions.end()); });
  for (Block* block : blocks) delay(block);
  return {};
}

}  // namespace kiln::passes
