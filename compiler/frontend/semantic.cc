// Implicit conversions between values: constants to tensors, casts, promotion and broadcasting.
#include <fmt/format.h>

#include <bit>

#include "compiler/frontend/codegen.h"
#include "compiler/interp/eval.h"

namespace kiln::frontend {

using ast::Constant;
using ir::OpKind;
using ir::Shape;
using ir::Type;

namespace {

double as_double(const Constant& c) {
  if (auto* v = std::get_if<bool>(&c)) return *v;
  if (auto* v = std::get_if<ast::Int>(&c)) return static_cast<double>(*v);
  return std::get<double>(c);
}

Shape common_shape(const Shape& a, const Shape& b) {
  Shape out = a;
  for (int i = 0; i < a.rank; ++i) out[i] = std::max(a[i], b[i]);
  return out;
}

}  // namespace

ir::Value* Codegen::constant(const Constant& c, DType dtype) {
  Type type = ir::scalar_type(dtype);
  if (is_float(dtype)) {
    double v = as_double(c);
    return b.constant_float(type, dtype == DType::kF32 ? static_cast<double>(static_cast<float>(v)) : v);
  }
  if (dtype == DType::kI1) return b.constant_int(type, as_double(c) != 0.0);
  if (auto* f = std::get_if<double>(&c)) return b.cast(b.constant_float(ir::scalar_type(DType::kF64), *f), dtype);
  ast::Int v = std::holds_alternative<bool>(c) ? ast::Int{std::get<bool>(c)} : std::get<ast::Int>(c);
  // Wraps to the width, then to the signed or unsigned reading of it.
  auto low = static_cast<uint64_t>(static_cast<unsigned __int128>(v));
  int unused = 64 - bits(dtype);
  low <<= unused;
  return b.constant_int(type,
                        is_signed(dtype) ? static_cast<int64_t>(low) >> unused : static_cast<int64_t>(low >> unused));
}

Result<ir::Value*> Codegen::tensor(const Arg& a) {
  if (ir::Value* v = a.value.tensor()) return v;
  const Constant* c = a.value.constant();
  if (!c || !a.value.is_number()) {
    Diagnostic d = fail(a.range, ErrorKind::kType, "expected a tensor or a number, got {}", describe(a.value));
    if (c && std::holds_alternative<ast::None>(*c) && a.range.str().ends_with(')'))
      d = with_note(std::move(d), "help: a function that ends without `return VALUE` gives None");
    return d;
  }
  std::optional<DType> t = natural_dtype(*c);
  if (!t) return fail(a.range, ErrorKind::kValue, "{} does not fit in 64 bits", ast::repr(*c));
  return constant(*c, *t);
}

Result<ir::Value*> Codegen::truth(ir::Value* v, SourceRange range) {
  if (v->type.is_bool()) return v;
  if (v->type.pointer) return cast(v, ir::scalar_type(DType::kI1), range);
  return b.cast(v, DType::kI1);
}

Result<ir::Value*> Codegen::cast(ir::Value* v, Type to, SourceRange range, std::optional<ir::Rounding> rounding) {
  Type target = to.with_shape(v->type.shape);
  if (v->type == target) return v;  // with a rounding mode too: code that is generic in the type writes one always
  if (v->type.pointer && to.pointer) return b.create1(OpKind::kBitcast, {v}, target);
  if (v->type.pointer) {
    ir::Value* address = b.create1(OpKind::kPtrToInt, {v}, target.with_dtype(DType::kI64));
    if (to.dtype == DType::kI64 || to.dtype == DType::kU64 || to.dtype == DType::kI1) return b.cast(address, to.dtype);
    return fail(range, ErrorKind::kType, "cannot cast {} to {}; a pointer converts to tl.int64, tl.uint64 or tl.int1",
                describe(v->type), describe(target));
  }
  if (to.pointer) {
    if (!v->type.is_int())
      return fail(range, ErrorKind::kType, "cannot cast {} to {}; only an integer converts to a pointer",
                  describe(v->type), describe(target));
    return b.create1(OpKind::kIntToPtr, {b.cast(v, DType::kI64)}, target);
  }
  bool narrows = v->type.is_float() && to.is_float() && bits(to.dtype) < bits(v->type.dtype);
  if (rounding && !narrows)
    return fail(range, ErrorKind::kValue, "a rounding mode is only for conversions to a narrower float, not {} to {}",
                describe(v->type), describe(target));
  if (to.is_float() && to.dtype == DType::kF8E4B15) rounding = std::nullopt;  // Triton has one way
  // A constant is converted here and now.
  if (!rounding && v->op && v->op->kind == OpKind::kConstant && v->type.is_scalar()) {
    uint64_t folded = interp::convert(v->type.dtype, to.dtype, interp::constant_bits(*v->op));
    return is_float(to.dtype) ? b.constant_float(target, interp::number_value(to.dtype, folded))
                              : b.constant_int(target, interp::int_value(to.dtype, folded));
  }
  if (rounding == ir::Rounding::kTowardZero)
    return b.create1(OpKind::kCast, {v}, target, {{ir::AttrName::kRounding, *rounding}});
  return b.cast(v, to.dtype);
}

ir::Value* Codegen::only_element(ir::Value* v) {
  if (v->type.is_scalar()) return v;
  if (v->type.shape.rank > 1) v = b.reshape(v, {1});
  if (v->type.pointer) {  // addresses are added as numbers
    ir::Value* address = b.create1(ir::OpKind::kPtrToInt, {v}, ir::tile_type(DType::kI64, v->type.shape));
    return b.create1(ir::OpKind::kIntToPtr, {only_element(address)}, v->type.scalar());
  }
  ir::Op* one = b.reduce(std::span(&v, 1), 0);
  ir::Block* after = b.block();
  b.set_to_end(one->region());
  b.yield(std::span(&one->region()->args[0], 1));
  b.set_to_end(after);
  return one->result();
}

ir::Value* Codegen::widen_bf16(ir::Value* v) {
  return !v->type.pointer && v->type.dtype == DType::kBF16 ? b.cast(v, DType::kF32) : v;
}

Status Codegen::check_shape(const Shape& shape, SourceRange range) {
  for (int32_t d : shape.span())
    if (d < 1 || !std::has_single_bit(static_cast<uint32_t>(d)))
      return fail(range, ErrorKind::kValue,
                  "the shape {} has a dimension of {}, and every dimension of a tensor must be a "
                  "power of two{}",
                  ir::to_string(shape), d,
                  d > 1 && d <= ir::kMaxNumel
                      ? fmt::format("; use {} and a mask", std::bit_ceil(static_cast<uint32_t>(d)))
                  : d == 0 ? "; where nothing reads it, leave the name unbound"
                           : "");
  int64_t numel = 1;
  for (int32_t d : shape.span()) {
    numel *= d;
    if (numel > ir::kMaxNumel)
      return fail(range, ErrorKind::kValue, "the shape {} has more than {} elements, the most that a tensor may have",
                  ir::to_string(shape), ir::kMaxNumel);
  }
  return {};
}

Result<Codegen::Pair> Codegen::broadcast_pair(ir::Value* x, ir::Value* y, SourceRange range) {
  const Type tx = x->type, ty = y->type;
  if (tx.is_scalar()) return Pair{b.splat(x, ty.shape), y};
  if (ty.is_scalar()) return Pair{x, b.splat(y, tx.shape)};
  while (x->type.shape.rank < y->type.shape.rank) x = b.expand_dims(x, 0);
  while (y->type.shape.rank < x->type.shape.rank) y = b.expand_dims(y, 0);
  for (int i = 0; i < x->type.shape.rank; ++i) {
    int32_t dx = x->type.shape[i], dy = y->type.shape[i];
    if (dx == dy || dx == 1 || dy == 1) continue;
    return with_note(fail(range, ErrorKind::kType,
                          "shapes do not match: {} and {}; dimension {} is {} on the left and {} on the right",
                          describe(tx), describe(ty), i, dx, dy),
                     tx.shape.rank == 1 && ty.shape.rank == 1
                         ? "help: use x[:, None] and y[None, :] for every pair of elements"
                         : "help: a dimension of size 1 (x[:, None]) grows to the other's size");
  }
  Shape shape = common_shape(x->type.shape, y->type.shape);
  KILN_CHECK_OK(check_shape(shape, range));
  return Pair{b.broadcast(x, shape), b.broadcast(y, shape)};
}

Result<ir::Value*> Codegen::broadcast_to(ir::Value* v, const Shape& shape, std::string_view what, SourceRange range) {
  const Shape& from = v->type.shape;
  if (from == shape) return v;
  if (v->type.is_scalar()) return b.splat(v, shape);
  if (from.rank != shape.rank)
    return fail(range, ErrorKind::kType, "{} is {} and cannot be broadcast to the shape {}: the ranks differ", what,
                describe(v->type), ir::to_string(shape));
  for (int i = 0; i < shape.rank; ++i)
    if (from[i] != shape[i] && from[i] != 1)
      return fail(range, ErrorKind::kType,
                  "{} is {} and cannot be broadcast to the shape {}: dimension {} is {}, not {}", what,
                  describe(v->type), ir::to_string(shape), i, from[i], shape[i]);
  return b.broadcast(v, shape);
}

Result<Codegen::Pair> Codegen::promote_operands(const Arg& a, const Arg& c, std::string_view what, SourceRange range,
                                                Promotion how, bool allow_left_pointer, bool allow_right_pointer) {
  bool a_weak = a.value.is_number(), c_weak = c.value.is_number();
  auto mismatch = [&](std::string_view why) {
    return fail(range, ErrorKind::kType, "{} does not take {} and {}{}", what, describe(a.value), describe(c.value),
                why);
  };
  for (const Arg* side : {&a, &c})
    if (side->value.range())
      return with_note(mismatch(""), "help: a range is for loops; the numbers of a tile are tl.arange(start, end)");
  for (const Arg* side : {&a, &c})
    if (!side->value.tensor() && !side->value.is_number())
      return mismatch(side->value.is_none() ? "; test it with `is None` first" : "");
  // The pointer rules come first: they need no values.
  auto pointer = [](const Arg& x) { return x.value.tensor() && x.value.tensor()->type.pointer; };
  if (pointer(a) || pointer(c)) {
    if ((pointer(a) && !allow_left_pointer) || (pointer(c) && !allow_right_pointer))
      return mismatch("; a pointer takes + and - with an integer, and converts with .to(tl.int64)");
    const Arg& other = pointer(a) ? c : a;
    bool float_other =
        other.value.constant_as<double>() || (other.value.tensor() && other.value.tensor()->type.is_float());
    if (float_other)
      return with_note(mismatch("; the offset of a pointer is an integer"),
                       "help: // divides integers to an integer, where / gives a float; .to(tl.int32) converts");
    if (pointer(a) && pointer(c) && a.value.tensor()->type.dtype != c.value.tensor()->type.dtype)
      return mismatch("; they point to different types");
    KILN_TRY(ir::Value * x, tensor(a));
    KILN_TRY(ir::Value * y, tensor(c));
    return broadcast_pair(x, y, range);
  }
  auto dtype_of = [&](const Arg& x) -> Result<DType> {
    if (ir::Value* v = x.value.tensor()) return v->type.dtype;
    std::optional<DType> t = natural_dtype(*x.value.constant());
    if (!t) return fail(x.range, ErrorKind::kValue, "{} does not fit in 64 bits", ast::repr(*x.value.constant()));
    return *t;
  };
  KILN_TRY(DType ta, dtype_of(a));
  KILN_TRY(DType tc, dtype_of(c));
  std::optional<DType> common = promote(ta, a_weak, tc, c_weak, how);
  if (!common)
    return mismatch(is_int(ta) && is_int(tc) ? "; their signedness differs, so cast one with .to(...)"
                                             : "; cast one with .to(...)");
  if (is_float(*common) && is_fp8(*common) && how != Promotion::kSelection)
    return with_note(mismatch("; float8 is for storage, and has no arithmetic"),
                     "help: cast with .to(tl.float16) or .to(tl.float32)");
  for (const Arg* side : {&a, &c}) {
    const ast::Int* i = side->value.constant_as<ast::Int>();
    if (!i || !is_int(*common) || fits(*i, *common)) continue;
    return fail(range, ErrorKind::kValue,
                "{} is out of the range of {}, the type in which {} computes here; cast the tensor first",
                ast::to_string(*i), info(*common).triton, what);
  }
  auto convert = [&](const Arg& x) {
    return x.value.tensor() ? b.cast(x.value.tensor(), *common) : constant(*x.value.constant(), *common);
  };
  ir::Value* x = convert(a);
  ir::Value* y = convert(c);
  return broadcast_pair(x, y, range);
}

// --- compile-time arguments
// -------------------------------------------------------------------------------------------

Diagnostic Codegen::not_constexpr(const BoundArgs& a, int i, const Value& got, std::string_view wanted) {
  Diagnostic d = fail(a.at(i), ErrorKind::kType, "{} of {} must be {}, got {}", a.name(i), a.builtin->display_name(),
                      wanted, describe(got));
  if (!got.tensor()) return d;
  // tl.max(x, y)
  size_t user_frame = frames_.size();
  while (user_frame > 1 && is_library(*frames_[user_frame - 1].function)) --user_frame;
  const std::string_view reduces =
      user_frame < frames_.size() && a.name(i) == "axis" ? frames_[user_frame].function->def->name : std::string_view();
  if (reduces == "max" || reduces == "min")
    return with_note(std::move(d), fmt::format("help: tl.{0} reduces along an axis; the {1} of two is tl.{0}imum(x, y)",
                                               reduces, reduces == "max" ? "larger" : "smaller"));
  // A name that a plain assignment has turned from a number into a tensor.
  for (const auto& [id, binding] : frames_[user_frame - 1].env)
    if (binding.value.tensor() == got.tensor() && got.tensor()->op && got.tensor()->op->kind == OpKind::kConstant)
      return with_note(with_note(std::move(d), "a plain assignment makes a tensor of the number", binding.at),
                       fmt::format("help: write `{}: tl.constexpr = …`", id));
  return with_note(std::move(d), "help: pass it as a tl.constexpr parameter");
}

Result<ast::Int> Codegen::const_int(const BoundArgs& a, int i) {
  if (auto* v = a[i].constant_as<ast::Int>()) return *v;
  if (auto* v = a[i].constant_as<bool>()) return ast::Int{*v};
  return not_constexpr(a, i, a[i], "a constexpr int");
}

Result<bool> Codegen::const_bool(const BoundArgs& a, int i) {
  if (const Constant* c = a[i].constant()) return ast::truth(*c);
  return not_constexpr(a, i, a[i], "a constexpr bool");
}

Result<std::string> Codegen::const_text(const BoundArgs& a, int i) {
  if (auto* v = a[i].constant_as<std::string>()) return *v;
  return not_constexpr(a, i, a[i], "a string");
}

Result<Type> Codegen::dtype_arg(const BoundArgs& a, int i) {
  if (const TypeValue* t = a[i].type()) return t->type.scalar();
  return not_constexpr(a, i, a[i], "a dtype such as tl.float32");
}

Result<std::vector<int64_t>> Codegen::ints_arg(const BoundArgs& a, int i) {
  std::vector<Value> items;
  if (const TupleValue* t = a[i].as_tuple()) {
    items = t->items;
    // `f(x, (2, 1))` and `f(x, 2, 1)` both reach a variadic parameter.
    if (items.size() == 1 && items[0].as_tuple()) {
      std::vector<Value> inner = items[0].as_tuple()->items;
      items = std::move(inner);
    }
  } else {
    items = {a[i]};
  }
  std::vector<int64_t> out;
  for (const Value& v : items) {
    const ast::Int* n = v.constant_as<ast::Int>();
    if (!n) return not_constexpr(a, i, v, "constexpr ints");
    if (*n > INT32_MAX || *n < INT32_MIN)
      return fail(a.at(i), ErrorKind::kValue, "{} is out of range for {} of {}", ast::to_string(*n), a.name(i),
                  a.builtin->display_name());
    out.push_back(static_cast<int64_t>(*n));
  }
  return out;
}

Result<Shape> Codegen::shape_arg(const BoundArgs& a, int i) {
  KILN_TRY(std::vector<int64_t> dims, ints_arg(a, i));
  if (dims.size() > ir::kMaxRank)
    return fail(a.at(i), ErrorKind::kValue, "a tensor has at most {} dimensions, got {}", ir::kMaxRank, dims.size());
  Shape shape;
  for (int64_t d : dims) shape.dims[shape.rank++] = static_cast<int32_t>(d);
  KILN_CHECK_OK(check_shape(shape, a.at(i)));
  return shape;
}

Result<int> Codegen::axis_arg(const BoundArgs& a, int i, int rank) {
  KILN_TRY(ast::Int axis, const_int(a, i));
  if (axis < -rank || axis >= rank)
    return fail(a.at(i), ErrorKind::kValue, "axis {} is out of range for a tensor of {} dimension{}",
                ast::to_string(axis), rank, rank == 1 ? "" : "s");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace kiln::frontend
