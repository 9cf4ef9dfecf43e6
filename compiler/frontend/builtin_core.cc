// Programs, constants, types, hints, checks, loop ranges, and Python's own functions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::AttrName;
using ir::OpKind;
using ir::Shape;
using ir::Type;

namespace {

Result<int> program_axis(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ast::Int axis, g.const_int(a, 0));
  if (axis < 0 || axis > 2)
    return g.fail(a.at(0), ErrorKind::kValue, "the axis of {} must be 0, 1 or 2, got {}", a.builtin->display_name(),
                  ast::to_string(axis));
  return static_cast<int>(axis);
}

}  // namespace

Result<Value> program_id(Codegen& g, const BoundArgs& a) {
  KILN_TRY(int axis, program_axis(g, a));
  return Value(g.b.program_id(axis));
}

Result<Value> num_programs(Codegen& g, const BoundArgs& a) {
  KILN_TRY(int axis, program_axis(g, a));
  return Value(g.b.num_programs(axis));
}

Result<Value> arange(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ast::Int start, g.const_int(a, 0));
  KILN_TRY(ast::Int end, g.const_int(a, 1));
  for (ast::Int v : {start, end})
    if (v < INT32_MIN || v > INT32_MAX)
      return g.fail(a.range, ErrorKind::kValue, "tl.arange makes int32 numbers, and {} does not fit",
                    ast::to_string(v));
  if (end <= start)
    return g.fail(a.range, ErrorKind::kValue, "tl.arange needs an end after its start, got {} and {}",
                  ast::to_string(start), ast::to_string(end));
  ast::Int size = end - start;
  if (size > ir::kMaxNumel)
    return g.fail(a.range, ErrorKind::kValue, "tl.arange makes {} elements, and a tensor has at most {}",
                  ast::to_string(size), ir::kMaxNumel);
  auto n = static_cast<uint32_t>(size);
  if (!std::has_single_bit(n))
    return with_note(g.fail(a.range, ErrorKind::kValue, "the size of tl.arange must be a power of two, got {}", n),
                     fmt::format("help: use tl.arange({}, {}) and mask the elements past {}", ast::to_string(start),
                                 ast::to_string(start + std::bit_ceil(n)), n));
  return Value(g.b.arange(static_cast<int>(start), static_cast<int>(end)));
}

namespace {

Result<Value> filled(Codegen& g, const BoundArgs& a, const Shape& shape, const Arg& value, const Type& type) {
  if (value.value.is_number() && !type.pointer)
    return Value(g.b.splat(g.constant(*value.value.constant(), type.dtype), shape));
  KILN_TRY(ir::Value * v, g.tensor(value));
  if (v->type.is_tile())
    return g.fail(a.at(1), ErrorKind::kType, "tl.full is filled with a scalar, got {}; use tl.broadcast_to",
                  describe(v->type));
  KILN_TRY(v, g.cast(v, type, a.range));
  return Value(g.b.splat(v, shape));
}

}  // namespace

Result<Value> full(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Shape shape, g.shape_arg(a, 0));
  KILN_TRY(Type type, g.dtype_arg(a, 2));
  return filled(g, a, shape, a.args[1], type);
}

Result<Value> zeros(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Shape shape, g.shape_arg(a, 0));
  KILN_TRY(Type type, g.dtype_arg(a, 1));
  return filled(g, a, shape, {Value::integer(0), a.range}, type);
}

// A value of the running program goes through, as it does where tl.constexpr is an annotation.
Result<Value> constexpr_value(Codegen&, const BoundArgs& a) { return a[0]; }

Result<Value> constexpr_type(Codegen& g, const BoundArgs& a) {
  KILN_CHECK_OK(g.is_known(a[0], a.at(0)));
  if (!a[0].tensor()) return Value::type_of_constexpr(a[0]);
  return g.fail(a.at(0), ErrorKind::kType, "tl.constexpr_type takes a compile-time value, got {}", describe(a[0]));
}

Result<Value> to_tensor(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  return Value(v);
}

Result<Value> cast_value(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(Type to, g.dtype_arg(a, 1));
  KILN_TRY(bool bitcast, g.const_bool(a, 3));
  KILN_TRY(const auto rounding, word_arg<ir::Rounding>(g, a, 2));
  if (!bitcast) {
    KILN_TRY(v, g.cast(v, to, a.range, rounding));
    return Value(v);
  }
  Type target = to.with_shape(v->type.shape);
  if (v->type == target) return Value(v);
  if (v->type.element_bits() != target.element_bits())
    return with_note(g.fail(a.range, ErrorKind::kType, "a bitcast keeps the width, and {} has {} bits while {} has {}",
                            describe(v->type), v->type.element_bits(), describe(to), target.element_bits()),
                     "help: without bitcast=True the values are converted");
  if (v->type.pointer && !target.pointer)
    return Value(g.b.cast(g.b.create1(OpKind::kPtrToInt, {v}, target.with_dtype(DType::kI64)), target.dtype));
  if (!v->type.pointer && target.pointer) {
    KILN_TRY(v, g.cast(v, to, a.range));
    return Value(v);
  }
  return Value(g.b.create1(OpKind::kBitcast, {v}, target));
}

Result<Value> item(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  if (v->type.is_scalar()) return Value(v);
  if (v->type.shape.numel() != 1)
    return with_note(
        g.fail(a.at(0), ErrorKind::kType, "item() takes a tensor of one number, got {}", describe(v->type)),
        "help: reduce it, with tl.sum(x) or tl.max(x)");
  return Value(g.only_element(v));
}

Result<Value> pointer_type(Codegen& g, const BoundArgs& a) {
  KILN_TRY(Type element, g.dtype_arg(a, 0));
  if (element.pointer)
    return g.fail(a.at(0), ErrorKind::kUnsupported, "pointers to pointers are not supported; use int64 and cast");
  return Value(TypeValue{ir::pointer_type(element.dtype)});
}

Result<Value> dtype_class(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::string text, g.const_text(a, 0));
  // Triton's short names ("fp32", "int1") and ours.
  if (std::optional<DType> t = parse_dtype(text)) return Value(TypeValue{ir::scalar_type(*t)});
  return g.fail(a.at(0), ErrorKind::kName, "unknown dtype '{}'", text);
}

Result<Value> not_constructible(Codegen& g, const BoundArgs& a) {
  return with_note(g.fail(a.range, ErrorKind::kUnsupported, "{} makes no values; it is for isinstance only",
                          a.builtin->display_name()),
                   "help: tensors come from tl.load, tl.arange, tl.full and tl.zeros");
}

Result<Value> make_tuple(Codegen& g, const BoundArgs& a) {
  if (a[0].as_tuple()) return a[0];
  return g.fail(a.at(0), ErrorKind::kType, "{} takes a tuple, got {}", a.builtin->name, describe(a[0]));
}

Result<Value> unwrap_if_constexpr(Codegen&, const BoundArgs& a) { return a[0]; }

Result<Value> debug_barrier(Codegen& g, const BoundArgs&) {
  g.b.create(OpKind::kBarrier, {}, {});
  return Value();
}

Result<Value> launched_warps(Codegen& g, const BoundArgs&) { return Value::integer(g.module.num_warps); }

Result<Value> is_cuda_target(Codegen& g, const BoundArgs&) { return Value::boolean(g.options.capability > 0); }

Result<Value> is_hip_target(Codegen&, const BoundArgs&) { return Value::boolean(false); }

Result<Value> cuda_capability_geq(Codegen& g, const BoundArgs& a) {
  KILN_TRY(const ast::Int major, g.const_int(a, 0));
  KILN_TRY(const ast::Int minor, g.const_int(a, 1));
  return Value::boolean(g.options.capability > 0 && g.options.capability >= 10 * major + minor);
}

Result<Value> launched_threads(Codegen& g, const BoundArgs&) { return Value::integer(g.module.num_warps * 32); }

Result<Value> gdc_wait(Codegen& g, const BoundArgs&) {
  g.b.create(OpKind::kGdcWait, {}, {});
  return Value();
}

Result<Value> gdc_launch_dependents(Codegen& g, const BoundArgs&) {
  g.b.create(OpKind::kGdcLaunchDependents, {}, {});
  return Value();
}

Result<Value> hint(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::vector<int64_t> values, g.ints_arg(a, 1));
  if (!a[0].tensor()) {
    if (a[0].is_number()) return a[0];
    return g.fail(a.at(0), ErrorKind::kType, "{} takes a tensor, got {}", a.builtin->display_name(), describe(a[0]));
  }
  ir::Value* v = a[0].tensor();
  size_t wanted = std::max<size_t>(1, v->type.shape.rank);
  if (values.size() != wanted)
    return g.fail(a.at(1), ErrorKind::kValue, "{} needs one value per dimension, {} for {}, got {}",
                  a.builtin->display_name(), wanted, describe(v->type), values.size());
  for (int64_t x : values)
    if (x < 1)
      return g.fail(a.at(1), ErrorKind::kValue, "the values of {} must be positive, got {}", a.builtin->display_name(),
                    x);
  AttrName attr = a.builtin->name == "multiple_of"      ? AttrName::kMultipleOf
                  : a.builtin->name == "max_contiguous" ? AttrName::kMaxContiguous
                                                        : AttrName::kMaxConstancy;
  ir::Value* hinted = g.b.create1(OpKind::kHint, {v}, v->type, {{attr, std::move(values)}});
  hinted->name = v->name;
  // Also a statement of its own tells about the names of the value. Where it was made outside this block, a name that
  // changed here would have to be carried out of it.
  const ir::Block* made_in = v->op ? v->op->parent : v->block;
  if (made_in == g.b.block())
    for (auto& [name, binding] : g.frame().env)
      if (binding.value.tensor() == v) binding.value = Value(hinted);
  return Value(hinted);
}

Result<Value> assume(Codegen& g, const BoundArgs& a) {
  if (const ast::Constant* c = a[0].constant()) {
    // Without debug, what is false tells nothing, as in Triton.
    if (ast::truth(*c) || !g.options.debug) return Value();
    return g.fail(a.at(0), ErrorKind::kValue, "tl.assume is given {}, which is false", describe(a[0]));
  }
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(v, g.truth(v, a.at(0)));
  if (v->type.is_tile())
    return g.fail(a.at(0), ErrorKind::kType, "tl.assume takes a scalar condition, got {}", describe(v->type));
  g.b.create(OpKind::kAssume, std::span(&v, 1), {});
  return Value();
}

/// `while tl.condition(c, disable_licm=True)`: the condition, with a hint to Triton's compiler.
Result<Value> condition(Codegen&, const BoundArgs& a) { return a[0]; }

Result<Value> static_assert_(Codegen& g, const BoundArgs& a) {
  if (a[0].tensor())
    return with_note(
        g.fail(a.at(0), ErrorKind::kType, "tl.static_assert needs a compile-time condition, got {}", describe(a[0])),
        "help: tl.device_assert checks values of the running program");
  bool holds = !a[0].constant() || ast::truth(*a[0].constant());
  if (holds) return Value();
  std::string message = a[1].constant_as<std::string>() ? *a[1].constant_as<std::string>() : to_text(a[1]);
  if (is_library(*g.frame().function)) return g.placed(a.at(0), ErrorKind::kType, std::move(message));
  return g.fail(a.at(0), ErrorKind::kMismatch, "static assertion failed{}{}", message.empty() ? "" : ": ", message);
}

Result<Value> static_print(Codegen& g, const BoundArgs& a) {
  enum { kValues, kSep, kEnd, kFile };
  auto text_arg = [&](int i, std::string usual) -> Result<std::string> {
    if (!a.has(i) || a[i].is_none()) return usual;
    if (const auto* text = a[i].constant_as<std::string>()) return *text;
    return g.fail(a.at(i), ErrorKind::kType, "{} of tl.static_print is a string, got {}", a.name(i), describe(a[i]));
  };
  KILN_TRY(const std::string sep, text_arg(kSep, " "));
  KILN_TRY(const std::string end, text_arg(kEnd, "\n"));
  if (a.has(kFile) && !a[kFile].is_none())
    return g.fail(a.at(kFile), ErrorKind::kType, "file of tl.static_print is None, got {}", describe(a[kFile]));
  std::string line;
  for (const Value& v : a[kValues].as_tuple()->items) {
    if (&v != a[kValues].as_tuple()->items.data()) line += sep;
    line += to_text(v);
  }
  line += end;
  if (line.ends_with('\n')) line.pop_back();  // a line is told without it
  if (g.options.on_static_print)
    g.options.on_static_print(line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
  return Value();
}

Result<Value> profiler_mark(Codegen& g, const BoundArgs& a) {
  if (a[0].constant_as<std::string>()) return Value();
  return g.fail(a.at(0), ErrorKind::kType, "the name of {} is a string, got {}", a.builtin->display_name(),
                describe(a[0]));
}

Result<Value> device_print(Codegen& g, const BoundArgs& a) {
  bool hex = false;
  if (a.args.size() > 2) {
    KILN_TRY(hex, g.const_bool(a, 2));
  }
  std::vector<ir::Value*> values;
  std::string prefix;
  if (a[0].constant_as<std::string>()) {
    prefix = *a[0].constant_as<std::string>();
  } else if (a.builtin->name == "print") {
    KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
    values.push_back(v);
  } else {
    return g.fail(a.at(0), ErrorKind::kType, "the first argument of tl.device_print is a string, got {}",
                  describe(a[0]));
  }
  for (const Value& item : a[1].as_tuple()->items) {
    if (const auto* s = item.constant_as<std::string>()) {
      prefix += (prefix.empty() ? "" : " ") + *s;
      continue;
    }
    KILN_TRY(ir::Value * v, g.tensor({item, a.at(1)}));
    values.push_back(v);
  }
  // As in Triton a colon stands between the text and the values.
  if (!values.empty() && !prefix.empty()) {
    prefix.erase(prefix.find_last_not_of(' ') + 1);
    prefix += prefix.ends_with(':') ? " " : ": ";
  }
  std::vector<std::pair<AttrName, ir::Attr>> attrs = {{AttrName::kText, prefix}};
  if (hex) attrs.emplace_back(AttrName::kHex, true);
  g.b.create(OpKind::kPrint, values, {}, std::move(attrs));
  return Value();
}

Result<Value> device_assert(Codegen& g, const BoundArgs& a) {
  if (!g.options.debug) return Value();
  std::string message;
  if (a.has(1)) {
    KILN_TRY(message, g.const_text(a, 1));
  }
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(v, g.truth(v, a.at(0)));
  std::vector<ir::Value*> operands = {v};
  if (a.has(2)) {
    KILN_TRY(ir::Value * mask, g.tensor(a.args[2]));
    KILN_TRY(mask, g.truth(mask, a.at(2)));
    KILN_TRY(Codegen::Pair p, g.broadcast_pair(v, mask, a.range));
    operands = {p.a, p.b};
  }
  g.b.create(OpKind::kAssert, operands, {}, {{AttrName::kText, message}});
  return Value();
}

namespace {

std::shared_ptr<RangeValue> make_range(const BoundArgs& a) {
  auto r = std::make_shared<RangeValue>();
  r->start = {Value::integer(0), a.at(0)};
  r->step = {Value::integer(1), a.at(0)};
  if (a.has(1)) {
    r->start = a.args[0];
    r->end = a.args[1];
  } else {
    r->end = a.args[0];
  }
  if (a.has(2)) r->step = a.args[2];
  return r;
}

}  // namespace

Result<Value> range(Codegen& g, const BoundArgs& a) {
  std::shared_ptr<RangeValue> r = make_range(a);
  constexpr std::pair<int, AttrName> kCounts[] = {{3, AttrName::kNumStages}, {4, AttrName::kUnroll}};
  for (auto [i, attr] : kCounts) {
    if (!a.has(i)) continue;
    KILN_TRY(ast::Int n, g.const_int(a, i));
    if (n < 0 || n > 1024)
      return g.fail(a.at(i), ErrorKind::kValue, "{} of tl.range must be between 0 and 1024, got {}", a.name(i),
                    ast::to_string(n));
    r->attrs.emplace_back(attr, static_cast<int64_t>(n));
  }
  constexpr std::pair<int, AttrName> kFlags[] = {{6, AttrName::kFlatten}, {7, AttrName::kWarpSpecialize}};
  for (auto [i, attr] : kFlags) {
    KILN_TRY(bool on, g.const_bool(a, i));
    if (on) r->attrs.emplace_back(attr, true);
  }
  return Value(std::shared_ptr<const RangeValue>(std::move(r)));
}

Result<Value> python_range(Codegen&, const BoundArgs& a) {
  // Triton accepts the keywords of tl.range here and ignores them.
  return Value(std::shared_ptr<const RangeValue>(make_range(a)));
}

Result<Value> static_range(Codegen&, const BoundArgs& a) {
  std::shared_ptr<RangeValue> r = make_range(a);
  r->is_static = true;
  return Value(std::shared_ptr<const RangeValue>(std::move(r)));
}

// --- Python's own
// -----------------------------------------------------------------------------------------------------

Result<Value> length(Codegen& g, const BoundArgs& a) {
  if (const TupleValue* d = a[0].as_dict()) return Value::integer(static_cast<ast::Int>(d->items.size()));
  if (const TupleValue* t = a[0].as_tuple()) return Value::integer(static_cast<ast::Int>(t->items.size()));
  if (const auto* s = a[0].constant_as<std::string>()) return Value::integer(static_cast<ast::Int>(s->size()));
  return g.fail(a.at(0), ErrorKind::kType, "len takes a tuple, got {}{}", describe(a[0]),
                a[0].tensor() ? "; use x.shape[0] or x.numel" : "");
}

Result<Value> python_min_max(Codegen& g, const BoundArgs& a) {
  std::vector<Value> items = a[0].as_tuple()->items;
  if (items.size() == 1 && items[0].as_tuple()) {
    std::vector<Value> inner = items[0].as_tuple()->items;
    items = std::move(inner);
  }
  if (items.size() < 2)
    return g.fail(a.range, ErrorKind::kType, "{} takes two values or more, got {}", a.builtin->name, items.size());
  bool is_max = a.builtin->name == "max";
  bool are_constants = g.frame().function->constexpr_function ||
                       std::all_of(items.begin(), items.end(), [](const Value& v) { return v.is_number(); });
  Value best = items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    if (are_constants) {
      KILN_TRY(Value better, g.compare(is_max ? ast::CompareOp::kGt : ast::CompareOp::kLt, {items[i], a.range},
                                       {best, a.range}, a.range));
      if (better.constant() && ast::truth(*better.constant())) best = items[i];
      continue;
    }
    // With a tensor among them, Python's min and max are tl.minimum and tl.maximum.
    const Builtin* function = find_builtin(is_max ? "maximum" : "minimum", kInLanguage);
    KILN_TRY(best, g.call(Value(function), {{best, a.range}, {items[i], a.range}}, {}, a.range, a.range));
  }
  return best;
}

namespace {

/// The constant argument of int(), float() or bool().
Result<ast::Constant> python_scalar(Codegen& g, const BoundArgs& a, std::string_view cast_help) {
  if (a[0].is_number() || a[0].constant_as<std::string>()) return *a[0].constant();
  return g.fail(a.at(0), ErrorKind::kType, "{} converts compile-time values, got {}{}{}", a.builtin->name,
                describe(a[0]), a[0].tensor() ? "; use " : "", a[0].tensor() ? cast_help : "");
}

std::string_view stripped(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

}  // namespace

Result<Value> python_float(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ast::Constant c, python_scalar(g, a, ".to(tl.float32)"));
  if (auto* v = std::get_if<bool>(&c)) return Value(ast::Constant(*v ? 1.0 : 0.0));
  if (auto* v = std::get_if<ast::Int>(&c)) return Value(ast::Constant(static_cast<double>(*v)));
  if (std::holds_alternative<double>(c)) return Value(c);
  std::string text(stripped(std::get<std::string>(c)));
  char* end = nullptr;
  double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || text.find_first_of("xX") != std::string::npos)
    return g.fail(a.at(0), ErrorKind::kValue, "float cannot read '{}'", text);
  return Value(ast::Constant(v));
}

Result<Value> python_int(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ast::Constant c, python_scalar(g, a, ".to(tl.int32)"));
  if (auto* v = std::get_if<bool>(&c)) return Value::integer(*v);
  if (std::holds_alternative<ast::Int>(c)) return Value(c);
  if (auto* v = std::get_if<double>(&c)) {
    if (!(*v > -1.7e38 && *v < 1.7e38))
      return g.fail(a.at(0), ErrorKind::kValue, "int cannot convert {}", ast::float_repr(*v));
    return Value::integer(static_cast<ast::Int>(*v));
  }
  std::string_view text = stripped(std::get<std::string>(c));
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size())
    return g.fail(a.at(0), ErrorKind::kValue, "int cannot read '{}'", text);
  return Value::integer(v);
}

Result<Value> python_bool(Codegen& g, const BoundArgs& a) {
  if (a[0].is_none()) return Value::boolean(false);
  KILN_TRY(ast::Constant c, python_scalar(g, a, ".to(tl.int1)"));
  return Value::boolean(ast::truth(c));
}

Result<Value> python_str(Codegen& g, const BoundArgs& a) {
  if (a[0].tensor())
    return g.fail(a.at(0), ErrorKind::kType, "str converts compile-time values, got {}", describe(a[0]));
  return Value::text(to_text(a[0]));
}

Result<Value> is_instance(Codegen& g, const BoundArgs& a) {
  std::vector<Value> types = a[1].as_tuple() ? a[1].as_tuple()->items : std::vector<Value>{a[1]};
  const Value& v = a[0];
  bool found = false;
  for (const Value& t : types) {
    const Builtin* b = t.builtin();
    std::string_view n = b ? b->name : std::string_view();
    const std::shared_ptr<const AggregateClass> of = t.function() ? (*t.function())->aggregate : nullptr;
    if (of)
      found = found || (v.aggregate() && v.aggregate()->of == of);
    else if (n == "tensor")
      found = found || v.tensor();
    else if (n == "constexpr")
      found = found || v.constant();
    else if (n == "dtype")
      found = found || v.type();
    else if (n == "pointer_type")
      found = found || (v.type() && v.type()->type.pointer && !v.type()->type.is_tile());
    else if (n == "block_type")
      found = found || (v.type() && v.type()->type.is_tile());
    else if (n == "constexpr_type")
      found = found || v.constexpr_type();
    else if (n == "tensor_descriptor" || n == "tensor_descriptor_base")
      found = found || v.descriptor();
    else if (n == "int")
      found = found || v.constant_as<ast::Int>() || v.constant_as<bool>();
    else if (n == "float")
      found = found || v.constant_as<double>();
    else if (n == "bool")
      found = found || v.constant_as<bool>();
    else if (n == "str")
      found = found || v.constant_as<std::string>();
    else if (n == "tuple" || n == "list")
      found = found || v.as_tuple();
    else
      return g.fail(
          a.at(1), ErrorKind::kType,
          "isinstance in a kernel knows tl.tensor, tl.tensor_descriptor, tl.constexpr, tl.constexpr_type, tl.dtype, "
          "tl.pointer_type, tl.block_type, tl.tuple, int, float, bool and str, not {}",
          describe(t));
  }
  return Value::boolean(found);
}

namespace {

Result<std::string> attribute_name(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::string name, g.const_text(a, 1));
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c >= 0x80;
  });
  if (word) return name;
  return g.fail(a.at(1), ErrorKind::kValue, "{} takes the name of an attribute, got {}", a.builtin->name,
                ast::repr(ast::Constant(name)));
}

}  // namespace

Result<Value> get_attribute(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::string name, attribute_name(g, a));
  const std::vector<Value>& otherwise = a[2].as_tuple()->items;
  if (!otherwise.empty()) KILN_CHECK_OK(g.is_known(a[0], a.at(0)));
  Result<Value> found = g.attribute(a.args[0], name, a.range, a.at(1));
  return found.ok() || otherwise.empty() ? found : otherwise[0];
}

Result<Value> has_attribute(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::string name, attribute_name(g, a));
  KILN_CHECK_OK(g.is_known(a[0], a.at(0)));
  return Value::boolean(g.attribute(a.args[0], name, a.range, a.at(1)).ok());
}

Result<Value> host_cdiv(Codegen& g, const BoundArgs& a) {
  if (a[0].tensor() || a[1].tensor())
    return g.fail(a.range, ErrorKind::kType, "triton.cdiv works on constexprs, got {} and {}; use tl.cdiv",
                  describe(a[0]), describe(a[1]));
  KILN_TRY(ast::Int x, g.const_int(a, 0));
  KILN_TRY(ast::Int y, g.const_int(a, 1));
  KILN_TRY(ast::Constant n, ast::apply(ast::BinaryOp::kFloorDiv, ast::Int{-x}, y, a.range));
  return Value::integer(-std::get<ast::Int>(n));
}

Result<Value> next_power_of_2(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ast::Int n, g.const_int(a, 0));
  if (n > (ast::Int{1} << 62))
    return g.fail(a.at(0), ErrorKind::kValue, "{} is too large for triton.next_power_of_2", ast::to_string(n));
  return Value::integer(n <= 1 ? ast::Int{1} : static_cast<ast::Int>(std::bit_ceil(static_cast<uint64_t>(n))));
}

}  // namespace kiln::frontend::impl
