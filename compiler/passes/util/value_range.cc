#include "compiler/passes/util/value_range.h"

#include <algorithm>
#include <optional>

#include "compiler/interp/eval.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;
using Int = __int128;

constexpr int kDepth = 8;
constexpr Int kMostPrograms = (Int{1} << 31) - 1;

ValueRange whole(const Type& type) {
  const int bits = type.element_bits();
  if (!is_signed(type.dtype)) return {0, (Int{1} << bits) - 1};
  return {-(Int{1} << (bits - 1)), (Int{1} << (bits - 1)) - 1};
}

std::optional<Int> constant(const Value* v) {
  const auto bits = v->type.is_int() ? constant_of(v) : std::nullopt;
  if (!bits) return std::nullopt;
  return is_signed(v->type.dtype) ? Int{interp::int_value(v->type.dtype, *bits)} : Int{*bits};
}

const Op* defined_by(const Value* v, OpKind kind) { return v->op && v->op->kind == kind ? v->op : nullptr; }

class Walk {
 public:
  static ValueRange of(const Value* v, int depth) {
    if (!v->type.is_int()) return {0, 0};
    const ValueRange all = whole(v->type);
    if (depth == 0) return all;
    const ValueRange r = v->op ? of_op(v, *v->op, all, depth - 1) : of_argument(v, all, depth - 1);
    return r.low < all.low || r.high > all.high ? all : r;  // it may wrap
  }

 private:
  static ValueRange of_argument(const Value* v, const ValueRange& all, int depth) {
    const Op* loop = v->block ? v->block->parent : nullptr;
    if (!loop || loop->kind != OpKind::kFor || v != loop->region()->args[0]) return all;
    if (of(loop->operand(2), depth).low <= 0) return all;
    const Int low = of(loop->operand(0), depth).low;
    return {low, std::max(low, of(loop->operand(1), depth).high - 1)};
  }

  static ValueRange of_op(const Value* v, const Op& op, const ValueRange& all, int depth) {
    switch (op.kind) {
      case OpKind::kConstant:
        return {*constant(v), *constant(v)};
      case OpKind::kArange:
        return {op.int_attr(ir::AttrName::kStart), op.int_attr(ir::AttrName::kEnd) - 1};
      case OpKind::kProgramId:
        return {0, kMostPrograms - 1};
      case OpKind::kNumPrograms:
        return {1, kMostPrograms};
      case OpKind::kSplat:
      case OpKind::kExpandDims:
      case OpKind::kBroadcast:
      case OpKind::kReshape:
      case OpKind::kTrans:
      case OpKind::kHint:
        return of(op.operand(0), depth);
      case OpKind::kCast:
        return op.operand(0)->type.is_int() && !v->type.is_bool() ? of(op.operand(0), depth) : all;
      case OpKind::kSelect: {
        const ValueRange a = of(op.operand(1), depth), b = of(op.operand(2), depth);
        return {std::min(a.low, b.low), std::max(a.high, b.high)};
      }
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kDiv:
      case OpKind::kRem:
      case OpKind::kMin:
      case OpKind::kMax:
      case OpKind::kAnd:
        return of_binary(op, all, depth);
      default:
        return all;
    }
  }

  static ValueRange of_binary(const Op& op, const ValueRange& all, int depth) {
    const ValueRange a = of(op.operand(0), depth), b = of(op.operand(1), depth);
    switch (op.kind) {
      case OpKind::kAdd:
        return {a.low + b.low, a.high + b.high};
      case OpKind::kSub:
        // What is left of a bound that a loop has not reached.
        if (is_below_by_loop(op.operand(1), op.operand(0))) return {1, std::max<Int>(1, a.high)};
        return {a.low - b.high, a.high - b.low};
      case OpKind::kMul: {
        if (op.result()->type.element_bits() == 64 && !fits_product(a, b)) return all;
        const Int ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
        return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
      }
      case OpKind::kDiv:
        return b.low > 0 && b.is_one_value() ? ValueRange{a.low / b.low, a.high / b.low} : all;
      case OpKind::kRem:
        if (b.low <= 0) return all;
        return {a.low >= 0 ? 0 : -(b.high - 1), a.high <= 0 ? 0 : std::min(a.high, b.high - 1)};
      case OpKind::kMin:
        return {std::min(a.low, b.low), std::min(a.high, b.high)};
      case OpKind::kMax:
        return {std::max(a.low, b.low), std::max(a.high, b.high)};
      case OpKind::kAnd:
        if (a.low >= 0 && b.low >= 0) return {0, std::min(a.high, b.high)};
        if (a.low >= 0 || b.low >= 0) return {0, a.low >= 0 ? a.high : b.high};
        return all;
      default:
        return all;
    }
  }

  /// Whether products of 64-bit integers stay within 128 bits.
  static bool fits_product(const ValueRange& a, const ValueRange& b) {
    constexpr Int kMost = Int{1} << 62;
    return a.low > -kMost && a.high < kMost && b.low > -kMost && b.high < kMost;
  }
};

const Op* counting_loop(const Value* v, int depth) {
  const Op* loop = !v->op && v->block ? v->block->parent : nullptr;
  if (!loop || loop->kind != OpKind::kFor || v != loop->region()->args[0]) return nullptr;
  return Walk::of(loop->operand(2), depth).low > 0 && Walk::of(loop->operand(0), depth).low >= 0 ? loop : nullptr;
}

}  // namespace

ValueRange range_of(const Value* v) { return Walk::of(v, kDepth); }

bool is_below_by_loop(const Value* x, const Value* bound) {
  constexpr int kBoundDepth = 4;
  if (const Op* loop = counting_loop(x, kBoundDepth)) return loop->operand(1) == bound;
  const Op* mul = defined_by(x, OpKind::kMul);
  const auto factor = mul ? constant(mul->operand(1)) : std::nullopt;
  if (!factor || *factor <= 0) return false;
  const Op* loop = counting_loop(mul->operand(0), kBoundDepth);
  const Op* div = loop ? defined_by(loop->operand(1), OpKind::kDiv) : nullptr;
  if (!div || constant(div->operand(1)) != factor) return false;
  // i + 1 <= (bound + c-1) / c, whose sum has not wrapped below what it is, so (i + 1) * c <= bound + c-1.
  const Op* add = defined_by(div->operand(0), OpKind::kAdd);
  return add && add->operand(0) == bound && constant(add->operand(1)) == *factor - 1;
}

}  // namespace kiln::passes
