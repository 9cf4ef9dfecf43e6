#include "compiler/interp/eval.h"
#include "compiler/passes/canonicalize/rules.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

bool moves_elements(OpKind kind) {
  return kind == OpKind::kSplat || kind == OpKind::kExpandDims || kind == OpKind::kBroadcast ||
         kind == OpKind::kReshape || kind == OpKind::kTrans;
}

const std::vector<int64_t>& order_of(const Op* op) {
  return std::get<std::vector<int64_t>>(*op->find(AttrName::kOrder));
}

Value* simpler_trans(Op* op, ir::Builder& b) {
  const std::vector<int64_t>& order = order_of(op);
  bool identity = true;
  for (size_t i = 0; i < order.size(); ++i) identity = identity && order[i] == static_cast<int64_t>(i);
  if (identity) return op->operand(0);
  const Op* inner = defined_by(op->operand(0), OpKind::kTrans);
  if (!inner) return nullptr;
  std::vector<int64_t> composed;
  for (int64_t d : order) composed.push_back(order_of(inner)[static_cast<size_t>(d)]);
  return b.trans(inner->operand(0), composed);
}

Value* simpler_move(Op* op, ir::Builder& b) {
  Value* x = op->operand(0);
  const Type& type = op->result()->type;
  if (const auto bits = constant_of(x)) return make_constant(b, type, *bits);
  // Wherever the elements go, they are all the same.
  if (Op* splat = defined_by(x, OpKind::kSplat)) return b.splat(splat->operand(0), type.shape);
  if (x->type == type && (op->kind == OpKind::kBroadcast || op->kind == OpKind::kReshape)) return x;
  if (op->kind == OpKind::kBroadcast) {
    Op* inner = defined_by(x, OpKind::kBroadcast);
    return inner ? b.broadcast(inner->operand(0), type.shape) : nullptr;
  }
  if (op->kind == OpKind::kReshape) {
    Op* inner = defined_by(x, OpKind::kReshape);
    if (!inner) inner = defined_by(x, OpKind::kExpandDims);
    return inner ? b.reshape(inner->operand(0), type.shape) : nullptr;
  }
  return op->kind == OpKind::kTrans ? simpler_trans(op, b) : nullptr;
}

/// f(splat a, splat b, constant) → splat f(a, b, constant): one scalar op instead of a tile's worth.
Value* scalarize(Op* op, ir::Builder& b) {
  if (!interp::has_scalar_meaning(op->kind) || op->kind == OpKind::kHint || op->result()->type.is_scalar())
    return nullptr;
  bool any_splat = false;
  for (Value* v : op->operands) {
    const bool splat = defined_by(v, OpKind::kSplat);
    if (!splat && !constant_of(v)) return nullptr;
    any_splat = any_splat || splat;
  }
  if (!any_splat) return nullptr;
  std::vector<Value*> scalars;
  for (Value* v : op->operands) {
    const auto bits = constant_of(v);
    scalars.push_back(bits ? make_constant(b, v->type.scalar(), *bits) : v->op->operand(0));
  }
  const Type type = op->result()->type.scalar();
  Value* scalar = b.create(op->kind, scalars, std::span(&type, 1), op->attrs)->result();
  return b.splat(scalar, op->result()->type.shape);
}

}  // namespace

bool simplify_shape(Op* op, ir::Builder& b) {
  Value* simpler = nullptr;
  if (moves_elements(op->kind)) {
    simpler = simpler_move(op, b);
  } else if (op->kind == OpKind::kArange && op->result()->type.shape.numel() == 1) {
    simpler = b.constant_int(op->result()->type, op->int_attr(AttrName::kStart));
  } else if (op->kind == OpKind::kJoin) {
    const auto left = constant_of(op->operand(0));
    if (left && left == constant_of(op->operand(1))) simpler = make_constant(b, op->result()->type, *left);
  } else if (op->kind == OpKind::kSplit) {
    const auto bits = constant_of(op->operand(0));
    Op* join = defined_by(op->operand(0), OpKind::kJoin);
    if (!bits && !join) return false;
    for (int side = 0; side < 2; ++side)
      ir::replace_all_uses(op->result(side),
                           bits ? make_constant(b, op->result(side)->type, *bits) : join->operand(side));
    op->erase();
    return true;
  } else {
    simpler = scalarize(op, b);
  }
  if (simpler) replace(op, simpler);
  return simpler;
}

bool simplify_memory(Op* op, ir::Builder& b) {
  // Where the mask stands, and whether a false one removes the op.
  int mask = 0;
  switch (op->kind) {
    case OpKind::kLoad:
      mask = 1;
      break;
    case OpKind::kStore:
    case OpKind::kAtomicRmw:
      mask = 2;
      break;
    case OpKind::kAssert:
      if (const auto fact = constant_of(op->operand(0)); fact && *fact) {
        op->erase();
        return true;
      }
      mask = 1;
      break;
    case OpKind::kAssume:
      if (const auto fact = constant_of(op->operand(0)); !fact || !*fact) return false;
      op->erase();
      return true;
    default:
      return false;  // no mask
  }
  if (static_cast<int>(op->operands.size()) <= mask) return false;
  const auto bits = constant_of(op->operand(mask));
  if (!bits) return false;
  if (*bits) {
    while (static_cast<int>(op->operands.size()) > mask) op->erase_operand(mask);  // a load's `other` goes too
    return true;
  }
  if (op->kind == OpKind::kLoad) {
    replace(op, op->operands.size() == 3 ? op->operand(2) : b.zero(op->result()->type));
    return true;
  }
  if (op->kind == OpKind::kAtomicRmw)
    replace(op, b.zero(op->result()->type));
  else
    op->erase();
  return true;
}

}  // namespace kiln::passes
