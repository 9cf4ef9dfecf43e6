#include "compiler/passes/tile/fuse_fma.h"

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

Op* single_use_product(const Value* v) {
  return v->op && v->op->kind == OpKind::kMul && v->uses.size() == 1 ? v->op : nullptr;
}

void fuse(Op* op, ir::Builder& b) {
  if (ir::is_float_sum(*op)) {
    const Op* product = single_use_product(op->operand(0));
    if (product && product->parent == op->parent) op->set(ir::AttrName::kContract, true);
    return;
  }
  if ((op->kind != OpKind::kAdd && op->kind != OpKind::kSub) || !op->result()->type.is_float()) return;
  Value *left = op->operand(0), *right = op->operand(1);
  Op* product = single_use_product(left);
  const bool product_is_left = product;
  if (!product) product = single_use_product(right);
  if (!product) return;
  b.set_before(op);
  b.set_range(op->range);
  Value *x = product->operand(0), *y = product->operand(1), *addend = product_is_left ? right : left;
  // a*b - c = a*b + (-c); c - a*b = (-a)*b + c: negation is exact.
  if (op->kind == OpKind::kSub) (product_is_left ? addend : x) = b.unary(OpKind::kNeg, product_is_left ? addend : x);
  const ir::Type type = op->result()->type;
  replace(op, b.create1(OpKind::kFma, {x, y, addend}, type));
  product->erase();
}

}  // namespace

Status fuse_fma(ir::Module& module, const FuseFmaOptions&) {
  ir::Builder b(module);
  ir::walk(module.body(), [&](Op* op) { fuse(op, b); });
  return {};
}

}  // namespace kiln::passes
