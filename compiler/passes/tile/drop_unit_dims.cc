#include "compiler/passes/tile/drop_unit_dims.h"

#include <vector>

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int kMatrix = 2;  // dimensions: fewer are no block that the hardware copies

bool lacks_unit_dims(const ir::Shape& all, const ir::Shape& fewer) {
  return fewer.rank >= kMatrix && ir::dropped_dims(all, fewer) > 0;
}

void drop_of_load(Op* load) {
  Value* block = load->result();
  if (block->uses.size() != 1) return;
  Op* shaped = block->uses[0].op;
  if (shaped->kind != OpKind::kReshape || !lacks_unit_dims(block->type.shape, shaped->result()->type.shape)) return;
  block->type = shaped->result()->type;
  if (block->name.empty()) block->name = shaped->result()->name;
  ir::replace_all_uses(shaped->result(), block);
  shaped->erase();
}

void drop_of_store(Op* store) {
  const Value* block = store->operand(1);
  Op* shaped = block->op;
  if (!shaped || (shaped->kind != OpKind::kReshape && shaped->kind != OpKind::kExpandDims)) return;
  if (!lacks_unit_dims(block->type.shape, shaped->operand(0)->type.shape)) return;
  store->set_operand(1, shaped->operand(0));
  if (shaped->result()->uses.empty()) shaped->erase();
}

}  // namespace

Status drop_unit_dims(ir::Module& module, const DropUnitDimsOptions&) {
  std::vector<Op*> accesses;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kDescriptorLoad || op->kind == OpKind::kDescriptorStore) accesses.push_back(op);
  });
  for (Op* op : accesses) op->kind == OpKind::kDescriptorLoad ? drop_of_load(op) : drop_of_store(op);
  return {};
}

}  // namespace kiln::passes
