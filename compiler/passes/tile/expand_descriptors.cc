#include "compiler/passes/tile/expand_descriptors.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/host_expression.h"
#include "compiler/analysis/tensor_map.h"
#include "compiler/ir/block_elements.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/hopper/select_block_loads.h"
#include "compiler/passes/hopper/select_loop_loads.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "support/tensor_map.h"

namespace kiln::passes {

using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

/// Whether threads could store a block in wide words but for the test of each element: its rows may end inside of one.
bool is_tested_singly(const Op& store, const analysis::AxisAnalysis& axis) {
  if (store.has(ir::AttrName::kRmw) ||
      std::any_of(store.operands.begin() + 2, store.operands.end(), [](const Value* v) { return v->type.is_tile(); }))
    return false;
  const Op& descriptor = *store.operand(0)->op;
  const ir::Type& type = descriptor.result()->type;
  return axis.of(descriptor.operand(type.shape.rank)).divisibility[0] * size_of(type.dtype) % kTensorMapAlignment != 0;
}

/// i1: the whole block lies in the tensor.
Value* is_inside(ir::Builder& b, const Op& descriptor, std::span<Value* const> offsets) {
  const ir::Shape& block = descriptor.result()->type.shape;
  Value* inside = nullptr;
  for (size_t d = 0; d < offsets.size(); ++d) {
    const ir::Type i32 = ir::scalar_type(DType::kI32);
    Value* last = b.binary(OpKind::kSub, descriptor.operand(static_cast<int>(1 + d)),
                           b.constant_int(i32, block[static_cast<int>(d)]));
    Value* ends = b.binary(OpKind::kAnd, b.cmp(ir::Predicate::kGe, offsets[d], b.constant_int(i32, 0)),
                           b.cmp(ir::Predicate::kLe, offsets[d], last));
    inside = inside ? b.binary(OpKind::kAnd, inside, ends) : ends;
  }
  return inside;
}

/// `whole`, if any: i1, where no element has to be tested.
void store(ir::Builder& b, const ir::BlockElements& at, Value* value, Value* whole) {
  if (!whole) return b.store(at.pointers, value, at.inside), void();
  Op* branch = b.if_op(whole, {});
  for (int side : {0, 1}) {
    b.set_to_end(branch->region(side));
    b.store(at.pointers, value, side == 0 ? nullptr : at.inside);
    b.yield({});
  }
  b.set_after(branch);
}

/// `apart`: blocks that lie in their tensor are stored without tests.
void expand(ir::Module& module, Op* op, bool apart) {
  const bool is_load = op->kind == OpKind::kDescriptorLoad;
  const Op& descriptor = *op->operand(0)->op;
  ir::Builder b(module);
  b.set_before(op);
  b.set_range(op->range);
  const std::span<Value* const> offsets = std::span(op->operands).subspan(is_load ? 1 : 2);
  const ir::Shape& block = (is_load ? op->result() : op->operand(1))->type.shape;
  const ir::BlockElements at = ir::block_elements(b, descriptor, block, offsets);
  if (is_load) {
    Value* loaded = b.load(at.pointers, at.inside);
    loaded->name = op->result()->name;
    if (const ir::Attr* eviction = op->find(ir::AttrName::kEviction))
      loaded->op->set(ir::AttrName::kEviction, *eviction);
    ir::replace_all_uses(op->result(), loaded);
  } else if (const auto rmw = op->find_word<ir::Rmw>()) {
    Value* added[] = {at.pointers, op->operand(1), at.inside};
    Op* atomic = b.create(OpKind::kAtomicRmw, added, std::span(&op->operand(1)->type, 1));
    atomic->set(*rmw);
    atomic->set(ir::Sem::kRelaxed);
    atomic->set(ir::Scope::kGpu);
  } else {
    store(b, at, op->operand(1), apart ? is_inside(b, descriptor, offsets) : nullptr);
  }
  op->erase();
}

struct DescriptorOps {
  std::vector<Op*> accesses, makers;
};

DescriptorOps descriptor_ops(ir::Module& module) {
  DescriptorOps ops;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kDescriptorLoad || op->kind == OpKind::kDescriptorStore) ops.accesses.push_back(op);
    if (op->kind == OpKind::kMakeDescriptor) ops.makers.push_back(op);
  });
  return ops;
}

/// A tensor map needs its tensor and all but the last stride to be multiples of 16 bytes. Launches check that of what
/// the host computes; a descriptor of what the kernel has loaded promises it, as in Triton.
void rely_on_alignment(ir::Module& module, Op* maker) {
  const int rank = maker->result()->type.shape.rank;
  const int64_t bytes = kTensorMapAlignment, element = size_of(maker->result()->type.dtype);
  ir::Builder b(module);
  b.set_before(maker);
  b.set_range(maker->range);
  auto promise = [&](int operand, int64_t divisor) {
    Value* v = maker->operand(operand);
    if (analysis::host_expression(v)) return;
    maker->set_operand(operand, b.create1(OpKind::kHint, {v}, v->type,
                                          {{ir::AttrName::kMultipleOf, std::vector<int64_t>{divisor}},
                                           {ir::AttrName::kAssured, true}}));
  };
  promise(0, bytes);
  for (int d = 0; d + 1 < rank; ++d) promise(1 + rank + d, std::max<int64_t>(1, bytes / element));
}

void expand_all_but(const std::unordered_set<const Op*>& kept, ir::Module& module, const DescriptorOps& ops,
                    const std::unordered_set<const Op*>& apart = {}) {
  for (Op* op : ops.accesses)
    if (!kept.contains(op)) expand(module, op, apart.contains(op));
  for (Op* op : ops.makers)
    if (op->result()->uses.empty()) op->erase();
}

}  // namespace

void expand_all_descriptors(ir::Module& module) { expand_all_but({}, module, descriptor_ops(module)); }

Status expand_descriptors(ir::Module& module, const target::Target& target) {
  const DescriptorOps ops = descriptor_ops(module);
  if (ops.makers.empty()) return {};
  for (Op* maker : ops.makers) rely_on_alignment(module, maker);
  std::unordered_set<const Op*> kept, apart;
  bool by_groups = false;  // warp groups hold 32 bytes of a row side by side, and leave whole rows to a copy
  ir::walk(module.body(), [&](Op* op) {
    by_groups = by_groups || is_wgmma(op);
    if (is_ahead(op) || is_in_loop_ring(op)) kept.insert(op);
    for (int i : {0, 1})
      if (op->kind == OpKind::kDot)
        if (const Op* load = slot_load(op, i)) kept.insert(load);
  });
  const analysis::AxisAnalysis axis(module);
  for (const Op* op : ops.accesses) {
    if (op->kind != OpKind::kDescriptorStore) continue;
    const ir::Type& tile = op->operand(1)->type;
    if ((by_groups || !kept.empty()) && tile.shape.rank == 2 &&
        layout::widest_swizzle(tile.shape[1], tile.element_bits()) != 0 &&
        analysis::has_tensor_map(*op->operand(0)->op, axis, /*stored=*/true))
      kept.insert(op);
    else if (target.is_cuda() && is_tested_singly(*op, axis))
      apart.insert(op);
  }
  expand_all_but(kept, module, ops, apart);
  return {};
}

}  // namespace kiln::passes
