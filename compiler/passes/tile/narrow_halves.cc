#include "compiler/passes/tile/narrow_halves.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/passes/util/rewrite.h"
#include "support/float_bits.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

bool is_cast(const Op* op, DType from, DType to) {
  return op && op->kind == OpKind::kCast && op->operand(0)->type.dtype == from && op->result()->type.dtype == to &&
         !op->has(ir::AttrName::kRounding);
}

class Narrower {
 public:
  Narrower(ir::Module& module, DType half) : b_(module), half_(half) {}

  /// Replaces `rounding`, a cast of f32 to the half, where it rounds what halves can compute.
  void visit(Op* rounding) {
    const Value* wide = rounding->operand(0);
    Op* op = wide->op;
    if (!op) return;
    const bool divides = op->kind == OpKind::kDivRn;
    if (divides || op->kind == OpKind::kAdd || op->kind == OpKind::kSub || op->kind == OpKind::kMul) {
      // Where others read all digits, the f32 instruction stays.
      const bool only_rounded =
          std::ranges::all_of(wide->uses, [&](const ir::Use& use) { return is_cast(use.op, DType::kF32, half_); });
      if (!only_rounded || !is_narrow(op->operand(0)) || !is_narrow(op->operand(1))) return;
      if (!divides)
        replace(rounding, remade(op));
      else if (Value* divisor = repeated(op->operand(1)))
        rounding->set_operand(0, half_ == DType::kF16 ? f16_quotient(op, divisor) : bf16_quotient(op, divisor));
    } else if (is_narrow(wide)) {
      replace(rounding, narrow(wide));
    }
  }

 private:
  /// What all or many of the divisors in a row are, so that its reciprocal costs little; else null.
  static Value* repeated(const Value* divisors) {
    constexpr int64_t kLeastRow = 16;
    const Op* op = divisors->op;
    if (op->kind == OpKind::kSplat) return op->operand(0);
    if (op->kind != OpKind::kBroadcast) return nullptr;
    return divisors->type.shape.numel() >= kLeastRow * op->operand(0)->type.shape.numel() ? op->operand(0) : nullptr;
  }

  /// `value`, made of what is repeated in `divisors`, as often.
  Value* as_often(Value* value, const Value* divisors) {
    return divisors->op->kind == OpKind::kSplat ? b_.splat(value, divisors->type.shape)
                                                : b_.broadcast(value, divisors->type.shape);
  }

  Value* number(const Value* like, double value) { return b_.constant_float(like->type, value); }

  /// x / y as x (high + low), where high + low is 1/y but for 2^-46 of it: after the rounding to f16 the same for all
  /// pairs of numbers, infinities and signed zeros (tried). Both have one sign, so that a quotient of 0 keeps its own.
  Value* f16_quotient(Op* op, Value* y) {
    const Value* divisors = op->operand(1);
    b_.set_before(op);
    b_.set_range(op->range);
    Value* nearest = b_.binary(OpKind::kDivRn, number(y, 1), y);
    Value* high = b_.binary(OpKind::kMul, nearest, number(y, 1 - 0x1p-22));
    Value* rest = b_.create1(OpKind::kFma, {b_.unary(OpKind::kNeg, y), high, number(y, 1)}, y->type);
    Value* low = b_.binary(OpKind::kMul, rest, nearest);
    low = b_.select(b_.cmp(ir::Predicate::kEq, low, low), low, high);  // of 0 and of infinity
    Value* x = op->operand(0);
    Value* product = b_.binary(OpKind::kMul, x, as_often(low, divisors));
    return b_.create1(OpKind::kFma, {x, as_often(high, divisors), product}, x->type);
  }

  /// x / y as x (1/y), which is rounded to bf16 as the quotient is (tried for all pairs). Divisors whose reciprocals
  /// are too large for f32 are multiplied by 2^32, as x is.
  Value* bf16_quotient(Op* op, Value* y) {
    const Value* divisors = op->operand(1);
    b_.set_before(op);
    b_.set_range(op->range);
    Value* is_tiny = b_.cmp(ir::Predicate::kLt, b_.unary(OpKind::kAbs, y), number(y, 0x1p-100));
    Value* scale = b_.select(is_tiny, number(y, 0x1p32), number(y, 1));
    Value* reciprocal = b_.binary(OpKind::kDivRn, number(y, 1), b_.binary(OpKind::kMul, y, scale));
    Value* scales = as_often(b_.cast(scale, half_), divisors);
    Value* x = narrow(op->operand(0));
    b_.set_before(op);
    x = b_.cast(b_.binary(OpKind::kMul, x, scales), DType::kF32);
    return b_.binary(OpKind::kMul, x, as_often(reciprocal, divisors));
  }

  /// Whether every element is a half, by an op that halves have too.
  bool is_narrow(const Value* v) const {
    const Op* op = v->op;
    if (!op || v->type.dtype != DType::kF32) return false;
    auto operands_are = [&](size_t from = 0) {
      return std::all_of(op->operands.begin() + static_cast<std::ptrdiff_t>(from), op->operands.end(),
                         [&](const Value* operand) { return is_narrow(operand); });
    };
    switch (op->kind) {
      case OpKind::kCast:
        return is_cast(op, half_, DType::kF32);
      case OpKind::kConstant: {
        const double number = float_from_bits(DType::kF32, *constant_of(v));
        return float_from_bits(half_, float_to_bits(half_, number)) == number;
      }
      case OpKind::kSplat:
      case OpKind::kExpandDims:
      case OpKind::kBroadcast:
        return operands_are();
      case OpKind::kReshape:  // these may move elements between threads, which twice would cost more
      case OpKind::kTrans:
      case OpKind::kNeg:
      case OpKind::kAbs:
      case OpKind::kMin:
      case OpKind::kMax:
        return v->uses.size() == 1 && operands_are();
      case OpKind::kSelect:
        return v->uses.size() == 1 && operands_are(1);
      default:
        return false;
    }
  }

  /// The elements of `v`, which is_narrow(), as halves.
  Value* narrow(const Value* v) {
    if (v->op->kind == OpKind::kCast) return v->op->operand(0);
    auto [known, is_new] = narrowed_.try_emplace(v);
    if (!is_new) return known->second;
    Value* made = v->op->kind == OpKind::kConstant ? constant(v) : remade(v->op);
    return narrowed_[v] = made;
  }

  Value* constant(const Value* v) {
    b_.set_after(v->op);
    b_.set_range(v->op->range);
    return b_.constant_float(half_type(v), float_from_bits(DType::kF32, *constant_of(v)));
  }

  /// The op on halves, behind the one on f32.
  Value* remade(Op* op) {
    std::vector<Value*> operands;
    for (Value* v : op->operands) operands.push_back(v->type.dtype == DType::kF32 ? narrow(v) : v);
    b_.set_after(op);
    b_.set_range(op->range);
    const ir::Type type = half_type(op->result());
    return b_.create(op->kind, operands, {&type, 1}, op->attrs)->result();
  }

  ir::Type half_type(const Value* v) const {
    ir::Type type = v->type;
    type.dtype = half_;
    return type;
  }

  ir::Builder b_;
  const DType half_;
  std::unordered_map<const Value*, Value*> narrowed_;
};

}  // namespace

Status narrow_halves(ir::Module& module, const target::Target& target) {
  for (const DType half : {DType::kF16, DType::kBF16}) {
    if (half == DType::kBF16 && !target.has(target::kBf16Arith)) continue;
    std::vector<Op*> roundings;
    ir::walk(module.body(), [&](Op* op) {
      if (is_cast(op, DType::kF32, half)) roundings.push_back(op);
    });
    Narrower narrower(module, half);
    for (Op* op : roundings) narrower.visit(op);
  }
  return {};
}

}  // namespace kiln::passes
