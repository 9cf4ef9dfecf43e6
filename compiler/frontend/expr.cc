// Expressions: constants evaluate as Python does, tensors make ops.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

using ast::BinaryOp;
using ast::CompareOp;
using ast::ExprKind;
using ir::OpKind;

namespace {

std::string_view what(const ast::Expr& e) {
  switch (e.kind) {
    case ExprKind::kSet:
      return "a set";
    case ExprKind::kDict:
      return "a dict";
    case ExprKind::kLambda:
      return "a lambda";
    case ExprKind::kComprehension:
      return "a comprehension";
    case ExprKind::kStarred:
      return "a starred expression";
    case ExprKind::kSlice:
      return "a slice";
    case ExprKind::kEllipsis:
      return "an ellipsis";
    case ExprKind::kNamedExpr:
      return "an assignment inside an expression";
    case ExprKind::kYield:
      return "'yield'";
    case ExprKind::kConstant:
    case ExprKind::kName:
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kBoolOp:
    case ExprKind::kCompare:
    case ExprKind::kIfExp:
    case ExprKind::kCall:
    case ExprKind::kAttribute:
    case ExprKind::kSubscript:
    case ExprKind::kJoinedStr:
      break;
  }
  return "this expression";
}

}  // namespace

Result<Value> Codegen::expr(const ast::Expr& e) {
  RangeScope scope(*this, e.range);
  switch (e.kind) {
    case ExprKind::kConstant:
      if (ast::as<ast::ConstantExpr>(e).is_bytes)
        return error_at(e.range, ErrorKind::kUnsupported, "a kernel has no bytes: use ints");
      return Value(ast::as<ast::ConstantExpr>(e).value);
    case ExprKind::kName:
      return name(ast::as<ast::Name>(e).id, e.range);
    case ExprKind::kTuple:
    case ExprKind::kList: {
      const std::vector<ast::ExprPtr>& items =
          e.kind == ExprKind::kTuple ? ast::as<ast::Tuple>(e).items : ast::as<ast::List>(e).items;
      std::vector<Value> values;
      for (const ast::ExprPtr& item : items) {
        if (const auto* star = ast::dyn_as<ast::Starred>(item.get())) {
          KILN_TRY(Value inner, expr(*star->value));
          if (!inner.as_tuple())
            return fail(item->range, ErrorKind::kType, "only a tuple can be spread with *, got {}", describe(inner));
          KILN_CHECK_OK(spend(inner.as_tuple()->items.size() * sizeof(Value), item->range));
          for (const Value& v : inner.as_tuple()->items) values.push_back(v);
          continue;
        }
        KILN_TRY(Value v, expr(*item));
        values.push_back(std::move(v));
      }
      return Value::tuple(std::move(values));
    }
    case ExprKind::kUnary: {
      const auto& u = ast::as<ast::Unary>(e);
      KILN_TRY(Value v, expr(*u.operand));
      return unary(u.op, {std::move(v), u.operand->range}, e.range);
    }
    case ExprKind::kBinary: {
      const auto& x = ast::as<ast::Binary>(e);
      KILN_TRY(Value l, expr(*x.left));
      KILN_TRY(Value r, expr(*x.right));
      return binary(x.op, {std::move(l), x.left->range}, {std::move(r), x.right->range}, e.range);
    }
    case ExprKind::kBoolOp:
      return bool_op(ast::as<ast::BoolOp>(e));
    case ExprKind::kCompare:
      return comparison(ast::as<ast::Compare>(e));
    case ExprKind::kIfExp:
      return if_exp(ast::as<ast::IfExp>(e));
    case ExprKind::kCall:
      return call_expr(ast::as<ast::Call>(e));
    case ExprKind::kAttribute: {
      const auto& a = ast::as<ast::Attribute>(e);
      KILN_TRY(Value base, expr(*a.base));
      return attribute({std::move(base), a.base->range}, a.name, e.range, a.name_range);
    }
    case ExprKind::kSubscript:
      return subscript(ast::as<ast::Subscript>(e));
    case ExprKind::kJoinedStr:
      return joined_str(ast::as<ast::JoinedStr>(e));
    case ExprKind::kComprehension:
      return comprehension(ast::as<ast::Comprehension>(e));
    case ExprKind::kNamedExpr: {
      if (!computing()) break;
      const auto& n = ast::as<ast::NamedExpr>(e);
      KILN_TRY(Value v, expr(*n.value));
      KILN_CHECK_OK(bind(n.target, v, e.range, false));
      return v;
    }
    case ExprKind::kDict:
      if (!computing()) break;
      return dict(ast::as<ast::Dict>(e));
    case ExprKind::kSet:
    case ExprKind::kLambda:
    case ExprKind::kStarred:
    case ExprKind::kSlice:
    case ExprKind::kEllipsis:
    case ExprKind::kYield:
      break;
  }
  Diagnostic d = fail(e.range, ErrorKind::kUnsupported, "{} is not supported in kernels", what(e));
  if (e.kind == ExprKind::kLambda)
    d = with_note(std::move(d), "help: define a function at module level under @triton.jit");
  return d;
}

Result<Value> Codegen::bool_op(const ast::BoolOp& e) {
  std::vector<Arg> dynamic;
  Value last;
  for (const ast::ExprPtr& sub : e.values) {
    KILN_TRY(Value v, expr(*sub));
    if (v.tensor()) {
      dynamic.push_back({v, sub->range});
      continue;
    }
    KILN_TRY(bool known, constant_truth(v, sub->range));
    // Short-circuits at compile time. What is to the right is not compiled, so it may be invalid for this
    // specialisation.
    if (known != e.is_and) return v;
    last = v;
  }
  if (dynamic.empty()) return last;
  return joined(dynamic, e.is_and, e.range);
}

/// Each operand is evaluated once, and none behind a comparison that is known to be false.
Result<Value> Codegen::comparison(const ast::Compare& e) {
  KILN_TRY(Value left, expr(*e.left));
  SourceRange at = e.left->range;
  std::vector<Arg> dynamic;
  for (size_t i = 0; i < e.ops.size(); ++i) {
    const ast::Expr& next = *e.rights[i];
    KILN_TRY(Value right, expr(next));
    KILN_TRY(Value holds, compare(e.ops[i], {std::move(left), at}, {right, next.range}, e.range));
    if (e.ops.size() == 1) return holds;
    if (holds.tensor()) {
      dynamic.push_back({std::move(holds), e.range});
    } else {
      KILN_TRY(bool known, constant_truth(holds, e.range));
      if (!known) return holds;
    }
    left = std::move(right), at = next.range;
  }
  return dynamic.empty() ? Value::boolean(true) : joined(dynamic, true, e.range);
}

Result<Value> Codegen::joined(std::span<const Arg> values, bool is_and, SourceRange range) {
  if (values.size() == 1) return values[0].value;
  ir::Value* out = nullptr;
  for (const Arg& a : values) {
    KILN_TRY(ir::Value * bit, truth(a.value.tensor(), a.range));
    if (bit->type.is_tile())
      warn(range,
           "Logical operators 'and' and 'or' are deprecated for non-scalar tensors; please use '&' or '|' instead");
    if (!out) {
      out = bit;
      continue;
    }
    KILN_TRY(Pair p, broadcast_pair(out, bit, range));
    out = b.binary(is_and ? OpKind::kAnd : OpKind::kOr, p.a, p.b);
  }
  return Value(out);
}

Result<Value> Codegen::unary(ast::UnaryOp op, const Arg& a, SourceRange range) {
  if (const ast::Constant* c = a.value.constant()) {
    auto folded = ast::apply(op, *c, range);
    if (!folded.ok()) return placed(range, folded.error().kind, folded.error().message);
    return Value(*std::move(folded));
  }
  ir::Value* v = a.value.tensor();
  if (op == ast::UnaryOp::kNot && !v) {
    KILN_TRY(bool holds, constant_truth(a.value, a.range));
    return Value::boolean(!holds);
  }
  auto refuse = [&](std::string_view help) {
    return fail(range, ErrorKind::kType, "unary {} does not take {}{}", ast::spelling(op), describe(a.value), help);
  };
  if (!v || (v->type.pointer && op != ast::UnaryOp::kNot)) return refuse("");
  switch (op) {
    case ast::UnaryOp::kPlus:
      return a.value;
    case ast::UnaryOp::kNegate:
      if (v->type.is_float() && is_fp8(v->type.dtype))
        return refuse("; float8 is for storage, so cast with .to(tl.float16)");
      // int1 arithmetic is modulo 2, where -x is x.
      return Value(v->type.is_bool() ? v : b.unary(OpKind::kNeg, v));
    case ast::UnaryOp::kNot: {
      KILN_TRY(ir::Value * bit, truth(v, a.range));
      ir::Value* one = b.constant_int(bit->type, 1);
      return Value(b.binary(OpKind::kXor, bit, one));
    }
    case ast::UnaryOp::kInvert: {
      if (v->type.is_float()) return refuse("; it works on integers");
      ir::Value* ones = b.splat(constant(v->type.is_bool() ? ast::Int{1} : ast::Int{-1}, v->type.dtype), v->type.shape);
      return Value(b.binary(OpKind::kXor, v, ones));
    }
  }
  KILN_UNREACHABLE("unary operator");
}

Result<Value> Codegen::binary(BinaryOp op, const Arg& a, const Arg& c, SourceRange range) {
  if (a.value.constant() && c.value.constant()) {
    const auto *text = a.value.constant_as<std::string>(), *other = c.value.constant_as<std::string>();
    const auto* count = text ? c.value.constant_as<ast::Int>() : a.value.constant_as<ast::Int>();
    if (text && other && op == BinaryOp::kAdd) KILN_CHECK_OK(spend(text->size() + other->size(), range));
    if (const auto* repeated = text ? text : other; repeated && count && op == BinaryOp::kMul)
      KILN_CHECK_OK(spend(repeated->size() * static_cast<size_t>(std::clamp<ast::Int>(*count, 0, 1 << 30)), range));
    auto folded = ast::apply(op, *a.value.constant(), *c.value.constant(), range);
    if (!folded.ok()) return placed(range, folded.error().kind, folded.error().message);
    return Value(*std::move(folded));
  }
  if (op == BinaryOp::kAdd && a.value.as_tuple() && c.value.as_tuple()) {
    std::vector<Value> items = a.value.as_tuple()->items;
    KILN_CHECK_OK(spend((items.size() + c.value.as_tuple()->items.size()) * sizeof(Value), range));
    items.insert(items.end(), c.value.as_tuple()->items.begin(), c.value.as_tuple()->items.end());
    return Value::tuple(std::move(items));
  }
  if (op == BinaryOp::kMul && a.value.as_tuple() && c.value.constant_as<ast::Int>()) {
    ast::Int times = *c.value.constant_as<ast::Int>();
    // An unbounded tuple would unroll code without limit.
    if (times > 4096) return fail(range, ErrorKind::kValue, "a tuple of more than 4096 items is too long");
    std::vector<Value> items;
    for (ast::Int i = 0; i < times; ++i)
      items.insert(items.end(), a.value.as_tuple()->items.begin(), a.value.as_tuple()->items.end());
    if (items.size() > 4096) return fail(range, ErrorKind::kValue, "a tuple of more than 4096 items is too long");
    return Value::tuple(std::move(items));
  }
  KILN_TRY(std::optional<Value> own, operate(op, a, c, range));
  return own ? *std::move(own) : binary_tensor(op, a, c, range);
}

ir::Value* Codegen::sanitized(OpKind kind, const Pair& p) {
  const ir::Type& type = p.a->type;
  // The standard library counts on the wrapping of its own ints, as do combine functions, which may not assert.
  if (options.debug && options.sanitize_overflow && sanitizes && type.is_int() && !type.is_bool() &&
      bits(type.dtype) < 64 && !is_library(*frame().function)) {
    ir::Value* wide = b.binary(kind, b.cast(p.a, DType::kI64), b.cast(p.b, DType::kI64));
    const int width = bits(type.dtype) - (is_signed(type.dtype) ? 1 : 0);
    const ast::Int most = (ast::Int{1} << width) - 1, least = is_signed(type.dtype) ? -most - 1 : 0;
    auto bound = [&](ast::Int v) { return b.splat(constant(v, DType::kI64), type.shape); };
    ir::Value* fits = b.binary(OpKind::kAnd, b.cmp(ir::Predicate::kLe, wide, bound(most)),
                               b.cmp(ir::Predicate::kGe, wide, bound(least)));
    std::string text =
        fmt::format("int{} overflow detected for operation {}", bits(type.dtype), ir::info(kind).mnemonic);
    b.create(OpKind::kAssert, std::span(&fits, 1), {}, {{ir::AttrName::kText, std::move(text)}});
  }
  return b.binary(kind, p.a, p.b);
}

Result<Value> Codegen::binary_tensor(BinaryOp op, const Arg& a, const Arg& c, SourceRange range) {
  std::string_view sign = ast::spelling(op);
  auto make = [&](OpKind kind, const Pair& p) { return Value(b.binary(kind, p.a, p.b)); };
  auto needs_ints = [&](const Pair& p) { return p.a->type.is_int() && p.b->type.is_int(); };
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      bool add = op == BinaryOp::kAdd;
      KILN_TRY(Pair p, promote_operands(a, c, sign, range, Promotion::kArithmetic, true, add));
      if (!p.a->type.pointer && !p.b->type.pointer) return Value(sanitized(add ? OpKind::kAdd : OpKind::kSub, p));
      if (p.a->type.pointer && p.b->type.pointer)
        return fail(range, ErrorKind::kType,
                    "two pointers cannot be added: {} and {}; a pointer takes an integer offset", describe(p.a->type),
                    describe(p.b->type));
      if (p.b->type.pointer) std::swap(p.a, p.b);
      // Offsets count elements and are read as signed, so a narrow unsigned one is widened first.
      if (!is_signed(p.b->type.dtype) && bits(p.b->type.dtype) < 64) p.b = b.cast(p.b, DType::kI64);
      if (!add) p.b = b.unary(OpKind::kNeg, p.b);
      return Value(b.addptr(p.a, p.b));
    }
    case BinaryOp::kMul: {
      KILN_TRY(Pair p, promote_operands(a, c, sign, range));
      return Value(sanitized(OpKind::kMul, p));
    }
    case BinaryOp::kDiv: {
      KILN_TRY(Pair p, promote_operands(a, c, sign, range, Promotion::kDivision));
      // True division of integers is float32 in Triton, also for 64-bit operands.
      if (p.a->type.is_int()) p = {b.cast(p.a, DType::kF32), b.cast(p.b, DType::kF32)};
      return make(OpKind::kDiv, p);
    }
    case BinaryOp::kFloorDiv: {
      KILN_TRY(Pair p, promote_operands(a, c, sign, range, Promotion::kDivision));
      if (!needs_ints(p))
        return fail(range, ErrorKind::kType, "// takes integers, got {} and {}; use tl.floor(a / b)", describe(a.value),
                    describe(c.value));
      return make(OpKind::kDiv, p);
    }
    case BinaryOp::kMod: {
      KILN_TRY(Pair p, promote_operands(a, c, sign, range, Promotion::kDivision));
      return make(OpKind::kRem, p);
    }
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: {
      KILN_TRY(Pair p, promote_operands(a, c, sign, range));
      if (!needs_ints(p))
        return fail(range, ErrorKind::kType, "{} takes integers, got {} and {}{}", sign, describe(a.value),
                    describe(c.value), "; use .to(tl.int32) or .to(tl.int32, bitcast=True)");
      if (op == BinaryOp::kAnd) return make(OpKind::kAnd, p);
      if (op == BinaryOp::kOr) return make(OpKind::kOr, p);
      if (op == BinaryOp::kXor) return make(OpKind::kXor, p);
      if (const auto* by = c.value.constant_as<ast::Int>(); by && *by >= bits(p.a->type.dtype))
        warn(range, "Value {} exceeds the maximum bitwidth ({}) for type '{}'. This may result in undefined behavior.",
             *by, bits(p.a->type.dtype), describe(p.a->type.scalar()));
      if (op == BinaryOp::kShl) return make(OpKind::kShl, p);
      // Whether the sign bit is copied is decided by the left operand, not by the common type.
      ir::Value* left = a.value.tensor();
      DType common = p.a->type.dtype;
      if (left && is_signed(left->type.dtype) && !is_signed(common)) {
        DType wide = common == DType::kU64   ? DType::kI64
                     : common == DType::kU32 ? DType::kI32
                     : common == DType::kU16 ? DType::kI16
                                             : DType::kI8;
        return Value(b.cast(b.binary(OpKind::kShr, b.cast(p.a, wide), b.cast(p.b, wide)), common));
      }
      return make(OpKind::kShr, p);
    }
    case BinaryOp::kPow:
      return with_note(fail(range, ErrorKind::kUnsupported, "** works on constexprs only, got {} and {}",
                            describe(a.value), describe(c.value)),
                       "help: write x * x, or use libdevice.pow(x, y) on float32");
    case BinaryOp::kMatMul:
      return with_note(
          fail(range, ErrorKind::kUnsupported, "@ is not an operator of the kernel language, got {} and {}",
               describe(a.value), describe(c.value)),
          "help: a matrix product is tl.dot(a, b)");
  }
  KILN_UNREACHABLE("binary operator");
}

/// As Python compares tuples: by the first items that differ, else by how many there are.
Result<Value> Codegen::compare_tuples(CompareOp op, const Arg& a, const Arg& c, SourceRange range) {
  const std::vector<Value>&x = a.value.as_tuple()->items, &y = c.value.as_tuple()->items;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    KILN_TRY(Value equal, compare(CompareOp::kEq, {x[i], a.range}, {y[i], c.range}, range));
    const bool* is_equal = equal.constant_as<bool>();
    if (!is_equal)
      return fail(range, ErrorKind::kUnsupported, "{} of tuples works on compile-time values only", ast::spelling(op));
    if (!*is_equal) return compare(op, {x[i], a.range}, {y[i], c.range}, range);
  }
  return compare(op, {Value::integer(static_cast<ast::Int>(x.size())), a.range},
                 {Value::integer(static_cast<ast::Int>(y.size())), c.range}, range);
}

Result<Value> Codegen::compare(CompareOp op, const Arg& a, const Arg& c, SourceRange range) {
  KILN_CHECK_OK(is_known(a.value, a.range));
  KILN_CHECK_OK(is_known(c.value, c.range));
  if (op == CompareOp::kIs || op == CompareOp::kIsNot) {
    bool equal = same(a.value, c.value);
    if (!a.value.is_none() && !c.value.is_none() && (a.value.tensor() || c.value.tensor()))
      return fail(range, ErrorKind::kType, "`{}` on a tensor tests only for None; use {} to compare values",
                  ast::spelling(op), op == CompareOp::kIs ? "==" : "!=");
    return Value::boolean(equal == (op == CompareOp::kIs));
  }
  KILN_TRY(std::optional<Value> own, operate(op, a, c, range));
  if (own) return *std::move(own);
  bool equality = op == CompareOp::kEq || op == CompareOp::kNe;
  if (a.value.constant() && c.value.constant()) {
    auto folded = ast::apply(op, *a.value.constant(), *c.value.constant(), range);
    if (!folded.ok()) return placed(range, folded.error().kind, folded.error().message);
    return Value(*std::move(folded));
  }
  if (const TupleValue* d = c.value.as_dict(); d && (op == CompareOp::kIn || op == CompareOp::kNotIn))
    return Value::boolean((d->find(a.value) != nullptr) == (op == CompareOp::kIn));
  if ((op == CompareOp::kIn || op == CompareOp::kNotIn) && c.value.as_tuple() && !a.value.tensor()) {
    bool found = false;
    for (const Value& v : c.value.as_tuple()->items) {
      if (v.tensor()) return fail(range, ErrorKind::kUnsupported, "`in` works on compile-time values only");
      found = found || same(v, a.value);
    }
    return Value::boolean(found == (op == CompareOp::kIn));
  }
  if (!a.value.tensor() && !c.value.tensor()) {
    if (equality) return Value::boolean(same(a.value, c.value) == (op == CompareOp::kEq));
    if (a.value.as_tuple() && c.value.as_tuple()) return compare_tuples(op, a, c, range);
    return fail(range, ErrorKind::kType, "{} does not compare {} and {}", ast::spelling(op), describe(a.value),
                describe(c.value));
  }
  ir::Predicate predicate{};
  switch (op) {
    case CompareOp::kEq:
      predicate = ir::Predicate::kEq;
      break;
    case CompareOp::kNe:
      predicate = ir::Predicate::kNe;
      break;
    case CompareOp::kLt:
      predicate = ir::Predicate::kLt;
      break;
    case CompareOp::kLe:
      predicate = ir::Predicate::kLe;
      break;
    case CompareOp::kGt:
      predicate = ir::Predicate::kGt;
      break;
    case CompareOp::kGe:
      predicate = ir::Predicate::kGe;
      break;
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      return fail(range, ErrorKind::kUnsupported, "`{}` works on compile-time values only, got {} and {}",
                  ast::spelling(op), describe(a.value), describe(c.value));
    case CompareOp::kIs:
    case CompareOp::kIsNot:
      KILN_UNREACHABLE("identity is decided above");
  }
  // A comparison takes Python scalars as tensors of their own type, so they promote: h < 0.1 on a half compares in
  // float32.
  auto strong = [&](const Arg& x) -> Result<Arg> {
    if (!x.value.is_number()) return x;
    KILN_TRY(ir::Value * v, tensor(x));
    return Arg{Value(v), x.range};
  };
  KILN_TRY(Arg left, strong(a));
  KILN_TRY(Arg right, strong(c));
  KILN_TRY(Pair p, promote_operands(left, right, ast::spelling(op), range));
  return Value(b.cmp(predicate, p.a, p.b));
}

Result<Value> Codegen::subscript(const ast::Subscript& e) {
  KILN_TRY(Value base, expr(*e.base));
  if (const TupleValue* d = base.as_dict()) {
    KILN_TRY(Value key, expr(*e.index));
    if (const Value* found = d->find(key)) return *found;
    return fail(e.range, ErrorKind::kValue, "{} has no key {}", describe(base), to_text(key));
  }
  if (base.as_tuple()) return index_tuple(*base.as_tuple(), *e.index, e.range);
  if (base.aggregate() && e.index->kind != ExprKind::kSlice) {
    KILN_TRY(Value index, expr(*e.index));
    KILN_TRY(std::optional<Value> item,
             call_member({base, e.base->range}, "__getitem__", {{std::move(index), e.index->range}}, e.range));
    if (item) return *std::move(item);
  }
  if (base.is_number()) {
    KILN_TRY(ir::Value * v, tensor({base, e.base->range}));
    return index_tensor(v, *e.index, e.range);
  }
  if (ir::Value* v = base.tensor()) return index_tensor(v, *e.index, e.range);
  Diagnostic d = fail(e.range, ErrorKind::kType, "{} cannot be indexed", describe(base));
  if (const auto* f = base.function())
    d = with_note(std::move(d),
                  fmt::format("help: a kernel launches no others; it calls functions as {}(…)", (*f)->def->name));
  return d;
}

Result<Value> Codegen::index_tuple(const TupleValue& tuple, const ast::Expr& index, SourceRange range) {
  ast::Int size = static_cast<ast::Int>(tuple.items.size());
  auto constant_index = [&](const ast::Expr& e) -> Result<ast::Int> {
    KILN_TRY(Value v, expr(e));
    if (auto* i = v.constant_as<ast::Int>()) return *i;
    return fail(e.range, ErrorKind::kType, "a tuple is indexed by a constexpr int, got {}{}", describe(v),
                v.tensor() ? "; a value of the running program cannot select an item" : "");
  };
  if (const auto* slice = ast::dyn_as<ast::Slice>(&index)) {
    auto bound = [&](const ast::ExprPtr& e, ast::Int otherwise) -> Result<ast::Int> {
      if (!e) return otherwise;
      KILN_TRY(ast::Int i, constant_index(*e));
      return std::clamp<ast::Int>(i < 0 ? i + size : i, 0, size);
    };
    if (slice->step)
      return fail(slice->step->range, ErrorKind::kUnsupported, "a slice of a tuple takes no step in kernels");
    KILN_TRY(ast::Int from, bound(slice->lower, 0));
    KILN_TRY(ast::Int to, bound(slice->upper, size));
    std::vector<Value> items;
    for (ast::Int i = from; i < to; ++i) items.push_back(tuple.items[static_cast<size_t>(i)]);
    return Value::tuple(std::move(items));
  }
  KILN_TRY(ast::Int i, constant_index(index));
  if (i < -size || i >= size) {
    Diagnostic d = fail(range, ErrorKind::kValue, "index {} is out of range for a tuple of {}", ast::to_string(i),
                        tuple.items.size());
    if (size == 0 && range.str().find(".shape[") != std::string_view::npos) d = with_note(std::move(d), kOnlyPointer);
    return d;
  }
  return tuple.items[static_cast<size_t>(i < 0 ? i + size : i)];
}

Result<Value> Codegen::index_tensor(ir::Value* v, const ast::Expr& index, SourceRange range) {
  std::vector<const ast::Expr*> items;
  if (const auto* t = ast::dyn_as<ast::Tuple>(&index))
    for (const ast::ExprPtr& item : t->items) items.push_back(item.get());
  else
    items.push_back(&index);
  enum class Item { kNew, kKeep, kEllipsis };
  std::vector<Item> plan;
  int keeps = 0;
  bool has_ellipsis = false;
  auto is_open = [&](const ast::ExprPtr& bound) -> Result<bool> {
    if (!bound) return true;
    KILN_TRY(Value end, expr(*bound));
    return end.is_none();
  };
  for (const ast::Expr* item : items) {
    bool is_whole = false;
    if (const auto* s = ast::dyn_as<ast::Slice>(item)) {
      KILN_TRY(const bool lower, is_open(s->lower));
      KILN_TRY(const bool upper, is_open(s->upper));
      KILN_TRY(const bool step, is_open(s->step));
      is_whole = lower && upper && step;
    }
    if (is_whole) {
      plan.push_back(Item::kKeep);
      ++keeps;
      continue;
    }
    if (item->kind == ExprKind::kEllipsis && !has_ellipsis) {
      plan.push_back(Item::kEllipsis);
      has_ellipsis = true;
      continue;
    }
    if (item->kind != ExprKind::kSlice && item->kind != ExprKind::kEllipsis) {
      KILN_TRY(Value value, expr(*item));
      if (value.is_none()) {
        plan.push_back(Item::kNew);
        continue;
      }
    }
    return with_note(fail(item->range, ErrorKind::kType, "{} is indexed only with `:` and `None`, which add dimensions",
                          describe(v->type)),
                     v->type.pointer
                         ? "help: an element's address is pointer + offset, and tl.load(pointer + offset) reads it"
                         : "help: a part of a tensor is loaded through its pointers, or selected with "
                           "tl.where");
  }
  int rank = v->type.shape.rank;
  // As in Triton a `:` past the last dimension keeps nothing. A None there would have no place, unless the value is a
  // scalar: its first one makes a tensor of one element.
  int axis = 0;
  for (Item item : plan) {
    if (item == Item::kKeep) ++axis;
    if (item == Item::kEllipsis) axis += std::max(0, rank - keeps);
    if (item != Item::kNew) continue;
    if (axis > v->type.shape.rank && !v->type.is_scalar())
      return fail(range, ErrorKind::kType, "{} has {} dimension{}, but the index has {} `:`", describe(v->type), rank,
                  rank == 1 ? "" : "s", keeps);
    if (v->type.shape.rank >= ir::kMaxRank)
      return fail(range, ErrorKind::kValue, "a tensor has at most {} dimensions", ir::kMaxRank);
    v = v->type.is_scalar() ? b.splat(v, {1}) : b.expand_dims(v, axis);
    ++axis;
  }
  return Value(v);
}

Result<Value> Codegen::joined_str(const ast::JoinedStr& e) {
  std::string out;
  for (const ast::JoinedStr::Piece& piece : e.pieces) {
    out += piece.literal;
    if (!piece.value) continue;
    KILN_TRY(Value v, expr(*piece.value));
    // As in Triton a kernel's f-strings leave formats aside.
    if (computing() && piece.spec && !as<ast::JoinedStr>(*piece.spec).pieces.empty())
      return fail(piece.value->range, ErrorKind::kUnsupported,
                  "a format after `:` is not supported in what is computed while a kernel is compiled");
    const ast::Constant* c = v.constant();
    out += piece.debug_text;
    const std::string text = c && (piece.conversion == 'r' || !piece.debug_text.empty()) ? ast::repr(*c) : to_text(v);
    KILN_CHECK_OK(spend(text.size(), e.range));
    out += text;
  }
  return Value::text(std::move(out));
}

}  // namespace kiln::frontend
