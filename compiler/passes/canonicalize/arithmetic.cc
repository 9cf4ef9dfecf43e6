#include <algorithm>
#include <array>

#include "compiler/interp/eval.h"
#include "compiler/passes/canonicalize/rules.h"
#include "compiler/passes/util/value_range.h"
#include "support/diag.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Predicate;
using ir::Type;
using ir::Value;

/// The constant operands of an op and what they are.
struct Facts {
  explicit Facts(const Op* op) : type(op->operands.empty() ? Type{} : op->operand(0)->type) {
    for (size_t i = 0; i < op->operands.size() && i < 3; ++i) bits[i] = constant_of(op->operands[i]);
    if (type.is_int()) {
      mask = interp::element_mask(type.element_bits());
    } else if (type.is_float()) {
      one_bits = float_to_bits(type.dtype, 1.0);
      minus_one_bits = float_to_bits(type.dtype, -1.0);
      minus_zero_bits = float_to_bits(type.dtype, -0.0);
    }
  }
  bool is(int i, uint64_t wanted) const { return bits[i] && *bits[i] == wanted; }
  bool zero(int i) const { return is(i, 0); }
  bool one(int i) const { return is(i, type.is_float() ? one_bits : 1); }
  bool all_ones(int i) const { return type.is_int() && is(i, mask); }
  bool minus_zero(int i) const { return type.is_float() && is(i, minus_zero_bits); }
  bool minus_one(int i) const { return type.is_float() && is(i, minus_one_bits); }

  Type type;
  std::array<std::optional<uint64_t>, 3> bits;
  uint64_t mask = 0, one_bits = 1, minus_one_bits = 0, minus_zero_bits = 0;
};

/// Integer division by zero has no value to fold to: each executor gives its own.
bool divides_by_zero(const Op* op, const Facts& f) {
  return (op->kind == OpKind::kDiv || op->kind == OpKind::kRem) && f.type.is_int() && f.zero(1);
}

Value* fold(Op* op, const Facts& f, ir::Builder& b) {
  if (!interp::has_scalar_meaning(op->kind) || op->operands.empty() || divides_by_zero(op, f)) return nullptr;
  if (ir::has_trait(op->kind, 'A')) return nullptr;  // a constant must not be another value than a variable
  uint64_t in[3] = {};
  for (size_t i = 0; i < op->operands.size(); ++i) {
    if (!f.bits[i]) return nullptr;
    in[i] = *f.bits[i];
  }
  return make_constant(b, op->result()->type, interp::eval(*op, std::span(in, op->operands.size())));
}

/// x % n written as x - x / n * n, or null: a remainder is known to be neither negative nor large.
Value* remainder(Value* x, Value* product, ir::Builder& b) {
  const Op* mul = defined_by(product, OpKind::kMul);
  for (int i = 0; mul && i < 2; ++i)
    if (const Op* div = defined_by(mul->operand(i), OpKind::kDiv);
        div && div->operand(0) == x && div->operand(1) == mul->operand(1 - i))
      return b.binary(OpKind::kRem, x, div->operand(1));
  return nullptr;
}

/// The value that an identity gives, among the op's operands and new constants; null when none applies.
Value* identity(Op* op, const Facts& f, ir::Builder& b) {
  Value* x = op->operand(0);
  Value* y = op->operands.size() > 1 ? op->operand(1) : nullptr;
  const Type& type = op->result()->type;
  const bool ints = f.type.is_int();
  auto zero = [&] { return b.zero(type); };
  switch (op->kind) {
    case OpKind::kAdd:  // -0 is the neutral element of float addition: 0 + -0 = 0
      if (ints ? f.zero(1) : f.minus_zero(1)) return x;
      return nullptr;
    case OpKind::kSub:
      if (f.zero(1)) return x;  // also for floats: -0 - 0 = -0
      if (ints && x == y) return zero();
      return ints ? remainder(x, y, b) : nullptr;
    case OpKind::kMul:
      if (f.one(1)) return x;
      if (ints && f.zero(1)) return y;
      if (f.minus_one(1)) return b.unary(OpKind::kNeg, x);
      // Masks are multiplied too; what follows of a mask is known of an `and`.
      return f.type.is_bool() ? b.binary(OpKind::kAnd, x, y) : nullptr;
    case OpKind::kDiv:
    case OpKind::kDivRn:
      return f.one(1) ? x : nullptr;
    case OpKind::kRem:
      return ints && f.one(1) ? zero() : nullptr;
    case OpKind::kMin:
    case OpKind::kMax:
      return x == y ? x : nullptr;
    case OpKind::kAnd:
      if (x == y || f.all_ones(1)) return x;
      return f.zero(1) ? y : nullptr;
    case OpKind::kOr:
      if (x == y || f.zero(1)) return x;
      return f.all_ones(1) ? y : nullptr;
    case OpKind::kXor:
      if (f.zero(1)) return x;
      return x == y ? zero() : nullptr;
    case OpKind::kShl:
    case OpKind::kShr:
      if (f.zero(1)) return x;
      return f.zero(0) ? x : nullptr;
    case OpKind::kNeg:
      if (Op* inner = defined_by(x, OpKind::kNeg)) return inner->operand(0);
      return nullptr;
    case OpKind::kAbs:
      if (defined_by(x, OpKind::kAbs)) return x;
      if (Op* inner = defined_by(x, OpKind::kNeg); inner && !ints) return b.unary(OpKind::kAbs, inner->operand(0));
      return nullptr;
    case OpKind::kFma:  // one exact product; with -0 it is libdevice.mul_rn, which keeps fuse_fma out
      if (f.minus_zero(2)) return nullptr;
      if (f.one(1)) return b.binary(OpKind::kAdd, x, op->operand(2));
      return f.one(0) ? b.binary(OpKind::kAdd, y, op->operand(2)) : nullptr;
    case OpKind::kAddPtr: {
      const Type& offset = op->operand(1)->type;
      if (f.zero(1)) return x;
      Op* inner = defined_by(x, OpKind::kAddPtr);
      if (!inner || !f.bits[1] || inner->operand(1)->type != offset) return nullptr;
      const auto first = constant_of(inner->operand(1));
      if (!first || offset.element_bits() == 64) return nullptr;
      const int64_t sum = interp::int_value(offset.dtype, *first) + interp::int_value(offset.dtype, *f.bits[1]);
      const uint64_t cut = static_cast<uint64_t>(sum) & interp::element_mask(offset.element_bits());
      if (interp::int_value(offset.dtype, cut) != sum) return nullptr;  // it would wrap, where two steps do not
      return b.addptr(inner->operand(0), make_constant(b, offset, cut));
    }
    default:
      return nullptr;  // the rest has no identities
  }
}

Predicate swapped(Predicate predicate) {
  switch (predicate) {
    case Predicate::kLt:
      return Predicate::kGt;
    case Predicate::kLe:
      return Predicate::kGe;
    case Predicate::kGt:
      return Predicate::kLt;
    case Predicate::kGe:
      return Predicate::kLe;
    case Predicate::kEq:
    case Predicate::kNe:
      return predicate;
  }
  KILN_UNREACHABLE("predicate");
}

/// Whether a comparison holds for all numbers between those of two ranges; nothing when it depends on them.
std::optional<bool> compared(Predicate p, const ValueRange& x, const ValueRange& y) {
  const bool below = x.high<y.low, above = x.low> y.high, up_to = x.high <= y.low, from = x.low >= y.high;
  auto either = [](bool always, bool never) {
    return always ? std::optional(true) : never ? std::optional(false) : std::nullopt;
  };
  switch (p) {
    case Predicate::kLt:
      return either(below, from);
    case Predicate::kLe:
      return either(up_to, above);
    case Predicate::kGt:
      return either(above, up_to);
    case Predicate::kGe:
      return either(from, below);
    case Predicate::kEq:
      return either(up_to && from, below || above);
    case Predicate::kNe:
      return either(below || above, up_to && from);
  }
  KILN_UNREACHABLE("predicate");
}

/// What the ranges of its operands make of an integer op: one of them, or a constant. Null when they do not decide.
Value* decided_by_ranges(Op* op, ir::Builder& b) {
  Value *x = op->operand(0), *y = op->operand(1);
  const Type& type = op->result()->type;
  const ValueRange in_x = range_of(x), in_y = range_of(y);
  switch (op->kind) {
    case OpKind::kMin:
    case OpKind::kMax:
      if (in_x.high <= in_y.low) return op->kind == OpKind::kMin ? x : y;
      return in_y.high <= in_x.low ? (op->kind == OpKind::kMin ? y : x) : nullptr;
    case OpKind::kRem:
      return in_x.low >= 0 && in_x.high < in_y.low ? x : nullptr;
    case OpKind::kDiv:
      if (const ValueRange all = range_of(op->result()); all.is_one_value())
        return b.constant_int(type, static_cast<int64_t>(all.low));
      return nullptr;
    default:
      return nullptr;
  }
}

Value* simplify_cmp(Op* op, const Facts& f, ir::Builder& b) {
  const auto p = op->word<Predicate>();
  Value *x = op->operand(0), *y = op->operand(1);
  if (f.type.is_float()) return nullptr;
  auto truth = [&](bool v) { return b.constant_int(op->result()->type, v); };
  if (x == y) return truth(p == Predicate::kEq || p == Predicate::kLe || p == Predicate::kGe);
  if (f.type.pointer) return nullptr;
  if (!f.type.is_bool())
    if (const auto always = compared(p, range_of(x), range_of(y))) return truth(*always);
  if ((p == Predicate::kLt || p == Predicate::kGe) && is_below_by_loop(x, y)) return truth(p == Predicate::kLt);
  if ((p == Predicate::kGt || p == Predicate::kLe) && is_below_by_loop(y, x)) return truth(p == Predicate::kGt);
  if (!f.bits[1]) return nullptr;
  if (f.type.is_bool() && ((p == Predicate::kEq && f.one(1)) || (p == Predicate::kNe && f.zero(1)))) return x;
  return nullptr;
}

/// Conditions that all hold where `v` does.
void add_conjuncts(const Value* v, std::vector<const Value*>& to) {
  if (const Op* both = defined_by(v, OpKind::kAnd)) {
    add_conjuncts(both->operand(0), to);
    add_conjuncts(both->operand(1), to);
  } else {
    to.push_back(v);
  }
}

/// Whether `x` is `bits` wherever the condition does not hold, since the mask of the load that it comes from said so:
///   select c, (cast (load p, c & m, 0)), 0
bool is_masked_by(const Value* condition, const Value* x, uint64_t bits) {
  while (bits == 0 && defined_by(x, OpKind::kCast)) x = x->op->operand(0);
  const Op* load = defined_by(x, OpKind::kLoad);
  if (!load || load->operands.size() < 2 || load->operand(1)->type.shape != condition->type.shape) return false;
  if (load->operands.size() > 2 ? constant_of(load->operand(2)) != bits : bits != 0) return false;
  std::vector<const Value*> asked, known;
  add_conjuncts(condition, asked);
  add_conjuncts(load->operand(1), known);
  return std::ranges::all_of(asked, [&](const Value* v) { return std::ranges::find(known, v) != known.end(); });
}

Value* simplify_select(Op* op, const Facts& f, ir::Builder& b) {
  Value *c = op->operand(0), *x = op->operand(1), *y = op->operand(2);
  if (f.bits[0]) return *f.bits[0] ? x : y;
  if (x == y) return x;
  if (op->result()->type.is_bool() && f.bits[1] && f.bits[2]) {
    if (*f.bits[1] == *f.bits[2]) return x;
    return *f.bits[1] ? c : b.binary(OpKind::kXor, c, b.constant_int(c->type, 1));
  }
  if (f.bits[2] && is_masked_by(c, x, *f.bits[2])) return x;
  // An arm that asks the same condition again.
  if (Op* inner = defined_by(x, OpKind::kSelect); inner && inner->operand(0) == c)
    return b.select(c, inner->operand(1), y);
  if (Op* inner = defined_by(y, OpKind::kSelect); inner && inner->operand(0) == c)
    return b.select(c, x, inner->operand(2));
  return nullptr;
}

bool is_add_like(OpKind kind) {
  return kind == OpKind::kAdd || kind == OpKind::kMul || kind == OpKind::kAnd || kind == OpKind::kOr ||
         kind == OpKind::kXor;
}

/// (x op c1) op c2 → x op (c1 op c2) for integers, which wrap.
Value* reassociate(Op* op, const Facts& f, ir::Builder& b) {
  if (!f.type.is_int() || !is_add_like(op->kind) || !f.bits[1]) return nullptr;
  Op* inner = defined_by(op->operand(0), op->kind);
  if (!inner) return nullptr;
  const auto c1 = constant_of(inner->operand(1));
  if (!c1) return nullptr;
  const uint64_t in[] = {*c1, *f.bits[1]};
  return b.binary(op->kind, inner->operand(0), make_constant(b, f.type, interp::eval(*op, in)));
}

/// Constants go to the right of commutative ops and comparisons; x - c becomes x + -c for integers.
bool reorder(Op* op, const Facts& f, ir::Builder& b) {
  if (f.bits[0] && !f.bits[1] && op->operands.size() == 2 && (ir::is_commutative(op) || op->kind == OpKind::kCmp)) {
    Value* left = op->operand(0);
    op->set_operand(0, op->operand(1));
    op->set_operand(1, left);
    if (op->kind == OpKind::kCmp) op->set(swapped(op->word<Predicate>()));
    return true;
  }
  if (op->kind == OpKind::kSub && f.type.is_int() && f.bits[1]) {
    replace(op, b.binary(OpKind::kAdd, op->operand(0), make_constant(b, f.type, (0 - *f.bits[1]) & f.mask)));
    return true;
  }
  return false;
}

}  // namespace

bool simplify_arithmetic(Op* op, ir::Builder& b) {
  if (!interp::has_scalar_meaning(op->kind)) return false;
  const Facts f(op);
  Value* simpler = fold(op, f, b);
  if (!simpler) simpler = identity(op, f, b);
  if (!simpler) simpler = reassociate(op, f, b);
  if (!simpler && f.type.is_int() && op->operands.size() == 2) simpler = decided_by_ranges(op, b);
  if (!simpler && op->kind == OpKind::kCmp) simpler = simplify_cmp(op, f, b);
  if (!simpler && op->kind == OpKind::kSelect) simpler = simplify_select(op, f, b);
  if (!simpler) return reorder(op, f, b);
  replace(op, simpler);
  return true;
}

}  // namespace kiln::passes
