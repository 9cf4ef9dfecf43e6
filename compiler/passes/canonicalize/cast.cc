#include "compiler/passes/canonicalize/rules.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

/// Bits of magnitude that a type holds exactly: integers without the sign, floats with the hidden bit.
int exact_bits(DType t) {
  if (is_int(t)) return bits(t) - is_signed(t);
  switch (bits(t)) {
    case 64:
      return 53;
    case 32:
      return 24;
    case 16:
      return t == DType::kF16 ? 11 : 8;
    default:
      return t == DType::kF8E5M2 ? 3 : 4;
  }
}

/// Every value of `from` is a value of `to`.
bool lossless(DType from, DType to) {
  if (from == to) return true;
  if (is_int(from)) {
    if (is_signed(from) && is_int(to) && !is_signed(to)) return false;
    return !is_fp8(to) && exact_bits(from) <= exact_bits(to) && to != DType::kI1;
  }
  if (is_int(to) || is_fp8(to)) return false;
  if (is_fp8(from)) return true;  // f16 and bf16 hold all fp8 formats
  return bits(from) < bits(to);
}

/// cast(cast(x : a) : b) : c as one cast of x.
bool chain_is_one_cast(const Op* inner, const Op* outer) {
  const DType a = inner->operand(0)->type.dtype, b = inner->result()->type.dtype, c = outer->result()->type.dtype;
  if (outer->has(AttrName::kRounding) && a != c) return false;
  // A cast to fp8 saturates, so there and back turns the infinities of f8e5m2 into its largest numbers, and 1.875 of
  // f8e4b15 into 1.75.
  if (a == c && (a == DType::kF8E5M2 || a == DType::kF8E4B15)) return false;
  if (lossless(a, b)) {
    // A float in the middle saturates where integers wrap.
    return !(is_int(a) && is_float(b) && is_int(c)) || lossless(a, c) || c == DType::kI1;
  }
  // Low bits of low bits.
  return is_int(a) && is_int(b) && is_int(c) && bits(c) <= bits(b) && c != DType::kI1 && b != DType::kI1;
}

Value* bitcast_to(Value* v, const Type& type, ir::Builder& b) {
  return v->type == type ? v : b.create1(OpKind::kBitcast, {v}, type);
}

bool is_cast(OpKind kind) {
  return kind == OpKind::kCast || kind == OpKind::kBitcast || kind == OpKind::kIntToPtr || kind == OpKind::kPtrToInt;
}

Value* simpler_cast(Op* op, ir::Builder& b) {
  Value* x = op->operand(0);
  const Type& type = op->result()->type;
  const Op* inner = x->op;
  // The int ↔ pointer casts and bitcasts keep the bits: a pair of them is a bitcast, when that may be.
  if (x->type == type) return x;
  if (op->kind == OpKind::kCast) {
    if (!inner || inner->kind != OpKind::kCast || !chain_is_one_cast(inner, op)) return nullptr;
    return b.cast(inner->operand(0), type.dtype);
  }
  const OpKind undone = op->kind == OpKind::kIntToPtr   ? OpKind::kPtrToInt
                        : op->kind == OpKind::kPtrToInt ? OpKind::kIntToPtr
                                                        : OpKind::kBitcast;
  return inner && inner->kind == undone ? bitcast_to(inner->operand(0), type, b) : nullptr;
}

}  // namespace

bool simplify_cast(Op* op, ir::Builder& b) {
  if (!is_cast(op->kind)) return false;
  Value* simpler = simpler_cast(op, b);
  if (simpler) replace(op, simpler);
  return simpler;
}

}  // namespace kiln::passes
