#include "compiler/passes/util/ring_reader.h"

#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"

namespace kiln::passes {

using ir::Op;
using ir::OpKind;
using ir::Value;

bool is_filled(const Op* load) {
  return load->kind == OpKind::kLoad && load->operands.size() == 3 && constant_of(load->operand(2)) != uint64_t{0};
}

void RingReader::take(Op* load, Value* handle) {
  const std::vector<ir::Use> uses = load->result()->uses;
  const bool filled = is_filled(load);
  for (const ir::Use& use : uses) {
    if (use.op->kind == OpKind::kConvertLayout && !filled) replace_conversion(use.op, handle);
    if (use.op->kind == OpKind::kTrans && !filled) take_transposed(use.op, handle);
  }
  b_.set_before(load);
  if (load->result()->uses.empty()) return load->erase();
  Value* v = read(handle, load->result()->type);
  if (filled) v = b_.select(load->operand(1), v, load->operand(2));
  replace(load, v);
}

Value* RingReader::read(Value* handle, const ir::Type& type) {
  handles_.push_back(handle);
  Value* v = b_.create1(OpKind::kSharedLoad, {handle}, type);
  reads_.push_back(v->op);
  return v;
}

void RingReader::replace_conversion(Op* convert, Value* handle) {
  b_.set_before(convert);
  replace(convert, read(handle, convert->result()->type));
}

/// The conversions of a transposed tile read the transposed memory.
void RingReader::take_transposed(Op* trans, Value* handle) {
  b_.set_before(trans);
  Value* turned = transposed(b_, handle, std::get<std::vector<int64_t>>(*trans->find(ir::AttrName::kOrder)));
  const std::vector<ir::Use> uses = trans->result()->uses;
  for (const ir::Use& use : uses)
    if (use.op->kind == OpKind::kConvertLayout) replace_conversion(use.op, turned);
  if (trans->result()->uses.empty()) trans->erase();
}

}  // namespace kiln::passes
