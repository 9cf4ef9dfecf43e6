// Arithmetic and math functions.
#include <algorithm>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::OpKind;

namespace {

/// The argument as a tensor of floats that math functions take: float32 or float64.
Result<ir::Value*> math_arg(Codegen& g, const BoundArgs& a, int i) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[i]));
  if (!v->type.pointer && (v->type.dtype == DType::kF32 || v->type.dtype == DType::kF64)) return v;
  Diagnostic d = g.fail(a.at(i), ErrorKind::kType, "{} takes float32 or float64, got {}", a.builtin->display_name(),
                        describe(a[i]));
  return v->type.pointer ? with_note(std::move(d), "help: load the pointer first")
                         : with_note(std::move(d), "help: cast with .to(tl.float32)");
}

/// A Python scalar as the tensor it is on its own: it then promotes like any other.
Result<Arg> strong(Codegen& g, const Arg& a, bool widen) {
  KILN_TRY(ir::Value * v, g.tensor(a));
  return Arg{Value(widen ? g.widen_bf16(v) : v), a.range};
}

Result<std::vector<std::pair<ir::AttrName, ir::Attr>>> nan_attrs(Codegen& g, const BoundArgs& a, int i) {
  KILN_TRY(std::string text, g.const_text(a, i));
  std::vector<std::pair<ir::AttrName, ir::Attr>> out;
  if (text == "all")
    out.emplace_back(ir::AttrName::kNan, ir::Nan::kPropagate);
  else if (text != "none")
    return g.fail(a.at(i), ErrorKind::kValue, "propagate_nan must be tl.PropagateNan.ALL or tl.PropagateNan.NONE");
  return out;
}

std::vector<std::pair<ir::AttrName, ir::Attr>> for_floats(const ir::Value* v,
                                                          std::vector<std::pair<ir::AttrName, ir::Attr>> attrs) {
  if (!v->type.is_float()) attrs.clear();
  return attrs;
}

}  // namespace

Result<Value> math_unary(Codegen& g, const BoundArgs& a, OpKind kind) {
  KILN_TRY(ir::Value * v, math_arg(g, a, 0));
  return Value(g.b.unary(kind, v));
}

namespace {

/// By what methods call them between their underscores; tl.add and its like have these names too.
constexpr std::pair<std::string_view, ast::BinaryOp> kOperators[] = {
    {"add", ast::BinaryOp::kAdd},           {"sub", ast::BinaryOp::kSub},
    {"mul", ast::BinaryOp::kMul},           {"truediv", ast::BinaryOp::kDiv},
    {"floordiv", ast::BinaryOp::kFloorDiv}, {"mod", ast::BinaryOp::kMod},
    {"and", ast::BinaryOp::kAnd},           {"or", ast::BinaryOp::kOr},
    {"xor", ast::BinaryOp::kXor},           {"lshift", ast::BinaryOp::kShl},
    {"rshift", ast::BinaryOp::kShr}};
constexpr std::pair<std::string_view, ast::CompareOp> kComparisons[] = {
    {"eq", ast::CompareOp::kEq}, {"ne", ast::CompareOp::kNe}, {"lt", ast::CompareOp::kLt},
    {"le", ast::CompareOp::kLe}, {"gt", ast::CompareOp::kGt}, {"ge", ast::CompareOp::kGe}};

template <class Op, size_t kCount>
Op operator_of(const std::pair<std::string_view, Op> (&table)[kCount], std::string_view name) {
  return std::ranges::find(table, name, &std::pair<std::string_view, Op>::first)->second;
}

/// "sub" of "__sub__", and of "__rsub__" with `skipped` 3.
std::string_view bare_name(const BoundArgs& a, size_t skipped = 2) {
  return a.builtin->name.substr(skipped, a.builtin->name.size() - skipped - 2);
}

}  // namespace

Result<Value> operator_method(Codegen& g, const BoundArgs& a) {
  return g.binary(operator_of(kOperators, bare_name(a)), a.args[0], a.args[1], a.range);
}

Result<Value> reflected_operator(Codegen& g, const BoundArgs& a) {
  return g.binary(operator_of(kOperators, bare_name(a, 3)), a.args[1], a.args[0], a.range);
}

Result<Value> comparison_method(Codegen& g, const BoundArgs& a) {
  return g.compare(operator_of(kComparisons, bare_name(a)), a.args[0], a.args[1], a.range);
}

Result<Value> unary_method(Codegen& g, const BoundArgs& a) {
  return g.unary(a.builtin->name == "__neg__" ? ast::UnaryOp::kNegate : ast::UnaryOp::kInvert, a.args[0], a.range);
}

Result<Value> arithmetic(Codegen& g, const BoundArgs& a) {
  KILN_TRY(const bool sanitize, g.const_bool(a, 2));
  const bool before = std::exchange(g.sanitizes, g.sanitizes && sanitize);
  Result<Value> out = g.binary(operator_of(kOperators, a.builtin->name), a.args[0], a.args[1], a.range);
  g.sanitizes = before;
  return out;
}

Result<Value> logical(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * x, g.tensor(a.args[0]));
  KILN_TRY(ir::Value * y, g.tensor(a.args[1]));
  KILN_TRY(x, g.truth(x, a.at(0)));
  KILN_TRY(y, g.truth(y, a.at(1)));
  KILN_TRY(Codegen::Pair p, g.broadcast_pair(x, y, a.range));
  return Value(g.b.binary(a.builtin->name == "logical_and" ? OpKind::kAnd : OpKind::kOr, p.a, p.b));
}

Result<Value> min_max(Codegen& g, const BoundArgs& a) {
  KILN_TRY(auto attrs, nan_attrs(g, a, 2));
  KILN_TRY(Arg x, strong(g, a.args[0], true));
  KILN_TRY(Arg y, strong(g, a.args[1], true));
  KILN_TRY(Codegen::Pair p, g.promote_operands(x, y, a.builtin->display_name(), a.range));
  OpKind kind = a.builtin->name == "maximum" ? OpKind::kMax : OpKind::kMin;
  return Value(g.b.create1(kind, {p.a, p.b}, p.a->type, for_floats(p.a, attrs)));
}

Result<Value> clamp(Codegen& g, const BoundArgs& a) {
  KILN_TRY(auto attrs, nan_attrs(g, a, 3));
  KILN_TRY(Arg x, strong(g, a.args[0], true));
  KILN_TRY(Arg low, strong(g, a.args[1], true));
  KILN_TRY(Arg high, strong(g, a.args[2], true));
  KILN_TRY(Codegen::Pair bounds, g.promote_operands(low, high, "tl.clamp", a.range));
  KILN_TRY(Codegen::Pair first, g.promote_operands(x, {Value(bounds.a), low.range}, "tl.clamp", a.range));
  KILN_TRY(Codegen::Pair second,
           g.promote_operands({Value(first.a), x.range}, {Value(bounds.b), high.range}, "tl.clamp", a.range));
  if (!second.a->type.is_float())
    return with_note(g.fail(a.range, ErrorKind::kType, "tl.clamp takes floats, got {}", describe(a[0])),
                     "help: use tl.minimum(tl.maximum(x, low), high)");
  ir::Value* raised = g.b.create1(OpKind::kMax, {second.a, first.b}, second.a->type, attrs);
  return Value(g.b.create1(OpKind::kMin, {raised, second.b}, raised->type, attrs));
}

Result<Value> where(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * c, g.tensor(a.args[0]));
  if (!c->type.is_bool())
    g.warn(a.at(0),
           "tl.where with a non-boolean condition is deprecated and will error out in a future triton release. Got {}",
           describe(c->type.scalar()));
  KILN_TRY(c, g.truth(c, a.at(0)));
  KILN_TRY(Codegen::Pair xy,
           g.promote_operands(a.args[1], a.args[2], "tl.where", a.range, Promotion::kSelection, true, true));
  if (xy.a->type.pointer != xy.b->type.pointer)
    return g.fail(a.range, ErrorKind::kType, "tl.where cannot choose between {} and {}", describe(a[1]),
                  describe(a[2]));
  if (c->type.is_tile()) {
    KILN_TRY(Codegen::Pair cx, g.broadcast_pair(c, xy.a, a.range));
    KILN_TRY(Codegen::Pair all, g.broadcast_pair(cx.b, xy.b, a.range));
    return Value(g.b.select(cx.a, all.a, all.b));
  }
  return Value(g.b.select(g.b.splat(c, xy.a->type.shape), xy.a, xy.b));
}

Result<Value> fma(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Arg x, strong(g, a.args[0], false));
  KILN_TRY(Arg y, strong(g, a.args[1], false));
  KILN_TRY(Arg z, strong(g, a.args[2], false));
  KILN_TRY(Codegen::Pair xy, g.promote_operands(x, y, "tl.fma", a.range));
  KILN_TRY(Codegen::Pair xz, g.promote_operands({Value(xy.a), x.range}, z, "tl.fma", a.range));
  KILN_TRY(Codegen::Pair yz, g.promote_operands({Value(xy.b), y.range}, {Value(xz.b), z.range}, "tl.fma", a.range));
  KILN_TRY(Codegen::Pair all, g.promote_operands({Value(xz.a), x.range}, {Value(yz.b), z.range}, "tl.fma", a.range));
  if (!all.a->type.is_float())
    return with_note(g.fail(a.range, ErrorKind::kType, "tl.fma takes floats, got {}, {} and {}", describe(a[0]),
                            describe(a[1]), describe(a[2])),
                     "help: integers multiply and add with * and +");
  return Value(g.b.create1(OpKind::kFma, {all.a, yz.a, all.b}, all.a->type));
}

namespace {

/// Two operands that are floats; with `takes_ints`, one of them may be an int constant, which the other's type holds.
Result<Codegen::Pair> float_pair(Codegen& g, const BoundArgs& a, bool takes_ints = false) {
  KILN_TRY(Arg x, strong(g, a.args[0], false));
  KILN_TRY(Arg y, strong(g, a.args[1], false));
  std::string shown = a.builtin->display_name();
  auto is_float = [&](int i) { return (i ? y : x).value.tensor()->type.is_float(); };
  for (int i : {0, 1}) {
    const bool is_constant = takes_ints && a[i].is_number() && is_float(1 - i);
    if (!is_float(i) && !is_constant)
      return with_note(g.fail(a.at(i), ErrorKind::kType, "{} takes floats, got {}", shown, describe(a[i])),
                       "help: cast with .to(tl.float32)");
  }
  return g.promote_operands(x, y, shown, a.range);
}

}  // namespace

Result<Value> fdiv(Codegen& g, const BoundArgs& a) {
  KILN_TRY(bool ieee, g.const_bool(a, 2));
  KILN_TRY(Codegen::Pair p, float_pair(g, a));
  DType t = p.a->type.dtype;
  if (bits(t) >= 32) return Value(g.b.binary(ieee ? OpKind::kDivRn : OpKind::kDiv, p.a, p.b));
  ir::Value* wide =
      g.b.binary(ieee ? OpKind::kDivRn : OpKind::kDiv, g.b.cast(p.a, DType::kF32), g.b.cast(p.b, DType::kF32));
  return Value(g.b.cast(wide, t));
}

namespace {

/// Two operands of a function that exists for float32 and float64.
Result<Codegen::Pair> wide_float_pair(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Codegen::Pair p, float_pair(g, a, /*takes_ints=*/true));
  if (bits(p.a->type.dtype) < 32)
    return with_note(g.fail(a.range, ErrorKind::kType, "{} takes float32 or float64, got {} and {}",
                            a.builtin->display_name(), describe(a[0]), describe(a[1])),
                     "help: cast with .to(tl.float32)");
  return p;
}

}  // namespace

Result<Value> div_rn(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Codegen::Pair p, wide_float_pair(g, a));
  return Value(g.b.binary(OpKind::kDivRn, p.a, p.b));
}

/// A product that is rounded on its own: no addition that uses it becomes an fma. x·y + -0 is x·y, zeros included.
Result<Value> mul_rn(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Codegen::Pair p, wide_float_pair(g, a));
  ir::Value* none = g.b.constant_float(p.a->type, -0.0);
  return Value(g.b.create1(OpKind::kFma, {p.a, p.b, none}, p.a->type));
}

Result<Value> umulhi(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Arg x, strong(g, a.args[0], false));
  KILN_TRY(Arg y, strong(g, a.args[1], false));
  KILN_TRY(Codegen::Pair p, g.promote_operands(x, y, "tl.umulhi", a.range));
  DType t = p.a->type.dtype;
  if (!p.a->type.is_int() || bits(t) < 32)
    return g.fail(a.range, ErrorKind::kType, "tl.umulhi takes 32- and 64-bit integers, got {} and {}", describe(a[0]),
                  describe(a[1]));
  DType u = bits(t) == 64 ? DType::kU64 : DType::kU32;
  return Value(g.b.cast(g.b.binary(OpKind::kMulHi, g.b.cast(p.a, u), g.b.cast(p.b, u)), t));
}

Result<Value> absolute(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  if (v->type.pointer) return g.fail(a.at(0), ErrorKind::kType, "tl.abs takes numbers, got {}", describe(v->type));
  if (a.builtin->name == "fabs") {
    KILN_TRY(v, math_arg(g, a, 0));
  }
  if (v->type.is_float() && is_fp8(v->type.dtype)) {  // no arithmetic: the sign bit goes
    ir::Value* bits = g.b.create1(OpKind::kBitcast, {v}, v->type.with_dtype(DType::kU8));
    ir::Value* rest = g.b.splat(g.constant(ast::Int{0x7f}, DType::kU8), v->type.shape);
    return Value(g.b.create1(OpKind::kBitcast, {g.b.binary(OpKind::kAnd, bits, rest)}, v->type));
  }
  return Value(v->type.is_int() && !is_signed(v->type.dtype) ? v : g.b.unary(OpKind::kAbs, v));
}

namespace {

Result<Codegen::Pair> libdevice_pair(Codegen& g, const BoundArgs& a) {
  // An integer operand (an exponent) takes the float's type; halves are refused as in every math function.
  auto lift = [&](int i) -> Result<Arg> {
    ir::Value* v = a[i].tensor();
    if (v && v->type.is_int()) return Arg{Value(g.b.cast(v, DType::kF32)), a.at(i)};
    if (a[i].constant_as<ast::Int>()) return Arg{Value(g.constant(*a[i].constant(), DType::kF32)), a.at(i)};
    KILN_TRY(ir::Value * f, math_arg(g, a, i));
    return Arg{Value(f), a.at(i)};
  };
  KILN_TRY(Arg x, lift(0));
  KILN_TRY(Arg y, lift(1));
  return g.promote_operands(x, y, a.builtin->display_name(), a.range);
}

}  // namespace

Result<Value> fmod(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Codegen::Pair p, libdevice_pair(g, a));
  return Value(g.b.binary(OpKind::kRem, p.a, p.b));
}

Result<Value> power(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Codegen::Pair p, libdevice_pair(g, a));
  return Value(g.b.binary(OpKind::kPow, p.a, p.b));
}

}  // namespace kiln::frontend::impl
