#include "compiler/analysis/written_params.h"

#include "compiler/analysis/affine.h"

namespace kiln::analysis {

using ir::Value;

const Value* parameter_of(const Value* address) {
  if (address->type.is_tile())  // through loops
    if (const auto tile = affine_tile(address); tile && tile->base && !tile->base->op && !tile->base->block->parent)
      return tile->base;
  while (address->op) {
    if (!address->type.pointer && address->type.is_value()) return nullptr;
    if (address->op->operands.empty()) return nullptr;
    address = address->op->operand(0);
  }
  return address->block->parent ? nullptr : address;
}

std::unordered_set<const Value*> written_params(ir::Module& module) {
  std::unordered_set<const Value*> found;
  ir::walk(module.body(), [&](ir::Op* op) {
    if (!ir::writes_memory(op)) return;
    for (const Value* v : op->operands)
      if (v->type.pointer || v->type.form == ir::Form::kDescriptor) found.insert(parameter_of(v));
  });
  return found;
}

}  // namespace kiln::analysis
