// Operators, comparisons, attributes and elements of values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "repl/script/interp/interp.h"
#include "repl/script/interp/missing_name.h"
#include "repl/script/value/classes.h"
#include "repl/script/value/complex.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

namespace {

constexpr size_t kMaxItems = size_t{1} << 26;  // of what one operation makes

// The interpreter's hot path: loop counters and index arithmetic. Whatever overflows 64 bits, divides by zero or has a
// negative divisor returns nullopt and is done by ast::apply, which has 128-bit integers and all errors.
std::optional<Value> fast_int(BinaryOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(Value::integer(r));
    case BinaryOp::kSub:
      return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(Value::integer(r));
    case BinaryOp::kMul:
      return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(Value::integer(r));
    case BinaryOp::kFloorDiv:
      if (b <= 0) return std::nullopt;
      // C++ rounds toward zero and Python down; with b > 0 they differ only where the remainder is negative.
      r = a / b;
      return Value::integer(a % b < 0 ? r - 1 : r);
    case BinaryOp::kMod:
      if (b <= 0) return std::nullopt;
      r = a % b;
      return Value::integer(r < 0 ? r + b : r);
    case BinaryOp::kAnd:
      return Value::integer(a & b);
    case BinaryOp::kOr:
      return Value::integer(a | b);
    case BinaryOp::kXor:
      return Value::integer(a ^ b);
    case BinaryOp::kDiv:
    case BinaryOp::kPow:
    case BinaryOp::kMatMul:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      break;
  }
  return std::nullopt;
}

std::optional<Value> fast_float(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return Value::real(a + b);
    case BinaryOp::kSub:
      return Value::real(a - b);
    case BinaryOp::kMul:
      return Value::real(a * b);
    case BinaryOp::kDiv:
      // Python raises ZeroDivisionError for floats too, where C++ would give inf.
      return b == 0 ? std::nullopt : std::optional(Value::real(a / b));
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
    case BinaryOp::kPow:
    case BinaryOp::kMatMul:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      break;
  }
  return std::nullopt;
}

std::vector<Value> repeated(Interp& in, const std::vector<Value>& items, int64_t n) {
  const size_t count = n > 0 && !items.empty() ? static_cast<size_t>(n) : 0;
  if (count > 0 && items.size() > kMaxItems / count)
    in.fail(ErrorKind::kMemory, "the repeated sequence would have more than {} elements", kMaxItems);
  std::vector<Value> out;
  out.reserve(items.size() * count);
  for (size_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
  return out;
}

/// Sequences under '+' and '*', sets and dicts under '|', '&', '-', '^'.
std::optional<Value> container_op(Interp& in, BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::kAdd) {
    auto *s = a.get<Str>(), *t = b.get<Str>();
    if (s && t) return Value::str(s->text + t->text);
    auto *x = a.get<List>(), *y = b.get<List>();
    auto *u = a.get<Tuple>(), *v = b.get<Tuple>();
    if ((x && y) || (u && v)) {
      std::vector<Value> items = x ? x->items : u->items;
      const std::vector<Value>& more = x ? y->items : v->items;
      items.insert(items.end(), more.begin(), more.end());
      if (x) return Value(make<List>(std::move(items)));
      return Value(make<Tuple>(std::move(items), u->class_name.empty() ? v->class_name : u->class_name));
    }
  }
  if (op == BinaryOp::kMul) {
    // `3 * [x]` is as good as `[x] * 3`. A tensor or a string is neither list nor tuple and falls through.
    const bool a_is_many = a.get<List>() || a.get<Tuple>() || a.get<Str>();
    const Value& many = a_is_many ? a : b;
    Value count = a_is_many ? b : a;
    auto* index = count.get<Instance>();
    if (index && index->type->find("__index__")) count = Value::integer(in.to_int(count, "how often to repeat"));
    const auto* wide = count.get<WideInt>();
    if (wide && !wide->fits() && (many.get<Str>() || many.get<List>() || many.get<Tuple>()))
      in.fail_as("OverflowError", "how often to repeat does not fit into 64 bits: {}", in.repr(count));
    if (auto* s = many.get<Str>(); s && index && count.is_small_int()) return in.binary(op, Value::str(s->text), count);
    if (count.small_int_or_bool()) {
      if (auto* l = many.get<List>()) return Value(make<List>(repeated(in, l->items, count.integer())));
      if (auto* t = many.get<Tuple>())
        return Value(make<Tuple>(repeated(in, t->items, count.integer()), t->class_name));
    }
  }
  // Any right operand formats, so this comes before the operand's own `__rmod__`.
  if (auto* s = a.get<Str>(); s && op == BinaryOp::kMod) return Value::str(in.percent_format(s->text, b));
  if (auto* x = a.get<Dict>(), *y = b.get<Dict>(); x && y && op == BinaryOp::kOr) {
    auto out = make<Dict>();
    for (auto* d : {x, y})
      for (const auto& e : d->table.live()) out->table.set(in, e.key, e.value);
    return Value(out);
  }
  if (auto* x = any_set(a), *y = any_set(b); x && y) {
    const Ref<Set> out = a.get<FrozenSet>() ? Ref<Set>(make<FrozenSet>()) : make<Set>();
    auto add = [&](Set& from, Set& other, bool wanted) {
      for (const auto& e : from.table.live())
        if ((other.table.find(in, e.key) != nullptr) == wanted) out->table.set(in, e.key, Value::none());
    };
    switch (op) {
      case BinaryOp::kOr:
        // x's own elements come first in two passes: those that y has too, then the rest. Python leaves a set's order
        // open.
        add(*x, *y, true), add(*x, *y, false), add(*y, *x, false);
        return Value(out);
      case BinaryOp::kAnd:
        // Equal elements need not be the same (0 and False): as in CPython they are the smaller set's, or the right
        // one's.
        x->table.size() < y->table.size() ? add(*x, *y, true) : add(*y, *x, true);
        return Value(out);
      case BinaryOp::kSub:
        add(*x, *y, false);
        return Value(out);
      case BinaryOp::kXor:
        add(*x, *y, false), add(*y, *x, false);
        return Value(out);
      case BinaryOp::kAdd:
      case BinaryOp::kMul:
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kMod:
      case BinaryOp::kPow:
      case BinaryOp::kMatMul:
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        break;
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {
/// Of a class that the script defined, perhaps from a type of the language: its own methods come before the type's.
bool has_own_class(const Value& v) { return v.object() && v.object()->own_type(); }
}  // namespace

Value Interp::binary(BinaryOp op, const Value& a, const Value& b) {
  if (a.is_small_int() && b.is_small_int())
    if (auto v = fast_int(op, a.integer(), b.integer())) return *std::move(v);
  if (a.is_float() && b.is_float())
    if (auto v = fast_float(op, a.real(), b.real())) return *std::move(v);
  // Containers first, because they know exactly which operands they take. Then, as in Python, the left operand's
  // method, and the right one's reflected method only when the left one declines.
  const bool own = has_own_class(a) || has_own_class(b);
  if (!own)
    if (auto v = container_op(*this, op, a, b)) return *std::move(v);
  if (auto* o = a.object())
    if (auto v = o->binary(*this, op, b, false)) return *std::move(v);
  if (auto* o = b.object())
    if (auto v = o->binary(*this, op, a, true)) return *std::move(v);
  if (own)
    if (auto v = container_op(*this, op, a, b)) return *std::move(v);
  auto x = a.constant(), y = b.constant();
  if (x && y) {
    // A power of a negative number that no real number is.
    if (op == BinaryOp::kPow && b.is_float() && std::isfinite(b.real()) && b.real() != std::floor(b.real()))
      if (const auto base = complex_of(a); base && base->real() < 0 && std::isfinite(base->real()))
        return *make<ComplexNumber>(*base)->binary(*this, op, b, false);
    return Value::of(take(ast::apply(op, *x, *y, where_)));
  }
  fail(ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", ast::spelling(op), type_name(a), type_name(b));
}

// Python's `list += iterable` takes any iterable, while `list + iterable` takes lists only. The list is changed, so
// that other names for it see the new elements.
std::optional<Value> List::in_place(Interp& in, BinaryOp op, const Value& other) {
  // What a class has for operators of numbers comes before what a list has for sequences, as in Python.
  if (auto* o = other.object(); o && o->own_type() && (op == BinaryOp::kAdd || op == BinaryOp::kMul))
    if (auto v = o->binary(in, op, Value(this), true)) return v;
  if (op == BinaryOp::kAdd) {
    std::vector<Value> more = in.to_vector(other);
    items.insert(items.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    return Value(this);
  }
  if (op != BinaryOp::kMul || !other.small_int_or_bool()) return std::nullopt;
  items = repeated(in, items, other.integer());
  return Value(this);
}

namespace {
/// What a set or dict becomes under an operator, put into it.
std::optional<Value> replaced(Interp& in, BinaryOp op, const Value& self, Table& table, const Value& other) {
  auto result = container_op(in, op, self, other);
  if (auto* s = result ? result->get<Set>() : nullptr) table = std::move(s->table);
  if (auto* d = result ? result->get<Dict>() : nullptr) table = std::move(d->table);
  return result ? std::optional(self) : std::nullopt;
}
}  // namespace

std::optional<Value> Dict::in_place(Interp& in, BinaryOp op, const Value& other) {
  if (op == BinaryOp::kOr && !other.get<Dict>() && other.object()) {  // as update() takes it: pairs, another mapping
    Value self(this);
    CallArgs args;
    args.args.push_back(other);
    in.method(Kind::kDict, "update")->call_on(in, &self, args);
    return self;
  }
  return replaced(in, op, Value(this), table, other);
}
std::optional<Value> Set::in_place(Interp& in, BinaryOp op, const Value& other) {
  return replaced(in, op, Value(this), table, other);
}

Value Interp::unary(UnaryOp op, const Value& a) {
  if (op == UnaryOp::kNot) return Value::boolean(!truth(a));
  if (auto* o = a.object())
    if (auto v = o->unary(*this, op)) return *std::move(v);
  if (auto c = a.constant()) return Value::of(take(ast::apply(op, *c, where_)));
  fail(ErrorKind::kType, "'{}' does not apply to '{}'", ast::spelling(op), type_name(a));
}

bool Interp::truth(const Value& v) {
  if (v.is_bool() || v.is_small_int()) return v.integer() != 0;
  if (v.is_none()) return false;
  if (v.is_float()) return v.real() != 0;
  if (v.is_dtype()) return true;
  return v.object()->truth(*this);
}

bool Interp::equal(const Value& a, const Value& b) {
  if (a.is_small_int() && b.is_small_int()) return a.integer() == b.integer();
  if (a.is_dtype() || b.is_dtype()) return a.same(b);
  return truth(compare(CompareOp::kEq, a, b));
}

bool Interp::less(const Value& a, const Value& b) {
  if (a.is_small_int() && b.is_small_int()) return a.integer() < b.integer();
  return truth(compare(CompareOp::kLt, a, b));
}

namespace {

Value compare_sequences(Interp& in, CompareOp op, const std::vector<Value>& a, const std::vector<Value>& b) {
  bool equality = op == CompareOp::kEq || op == CompareOp::kNe;
  if (equality && a.size() != b.size()) return Value::boolean(op == CompareOp::kNe);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): a script's __eq__ may change the lists
    const Value x = a[i], y = b[i];
    // Identity first, as CPython: a NaN in a list equals itself there. The first pair that differs decides the order.
    if (!x.same(y) && !in.equal(x, y)) return equality ? Value::boolean(op == CompareOp::kNe) : in.compare(op, x, y);
  }
  return in.compare(op, Value::integer(static_cast<int64_t>(a.size())), Value::integer(static_cast<int64_t>(b.size())));
}

std::optional<Value> compare_containers(Interp& in, CompareOp op, const Value& a, const Value& b) {
  if (auto* x = a.get<Tuple>(), *y = b.get<Tuple>(); x && y) return compare_sequences(in, op, x->items, y->items);
  if (auto* x = a.get<List>(), *y = b.get<List>(); x && y) return compare_sequences(in, op, x->items, y->items);
  bool equality = op == CompareOp::kEq || op == CompareOp::kNe;
  if (auto* x = a.get<Dict>(), *y = b.get<Dict>(); x && y && equality) {
    bool same = x->table.size() == y->table.size();
    for (const auto& e : x->table.live()) {
      if (!same) break;
      // Copied before the comparison, which may run a script's `__eq__` and change the table that `found` points into.
      Value* found = y->table.find(in, e.key);
      const Value other = found ? *found : Value();
      same = found && (e.value.same(other) || in.equal(e.value, other));
    }
    return Value::boolean(same == (op == CompareOp::kEq));
  }
  if (auto* x = any_set(a), *y = any_set(b); x && y) {
    auto subset = [&](Set& s, Set& t) {
      for (const auto& e : s.table.live())
        if (!t.table.find(in, e.key)) return false;
      return true;
    };
    // Between sets `<` means subset, not order, so that neither of a < b and b < a may hold.
    size_t m = x->table.size(), n = y->table.size();
    switch (op) {
      case CompareOp::kEq:
        return Value::boolean(m == n && subset(*x, *y));
      case CompareOp::kNe:
        return Value::boolean(m != n || !subset(*x, *y));
      case CompareOp::kLe:
        return Value::boolean(subset(*x, *y));
      case CompareOp::kLt:
        return Value::boolean(m < n && subset(*x, *y));
      case CompareOp::kGe:
        return Value::boolean(subset(*y, *x));
      case CompareOp::kGt:
        return Value::boolean(n < m && subset(*y, *x));
      case CompareOp::kIs:
      case CompareOp::kIsNot:
      case CompareOp::kIn:
      case CompareOp::kNotIn:
        break;
    }
  }
  if (auto* x = a.get<SliceObject>(), *y = b.get<SliceObject>(); x && y) {
    auto parts = [](const SliceObject& s) { return std::vector<Value>{s.lower, s.upper, s.step}; };
    return compare_sequences(in, op, parts(*x), parts(*y));
  }
  if (auto* x = a.get<Range>(), *y = b.get<Range>(); x && y && equality) {
    // Ranges are equal when they give the same numbers: range(0) == range(2, 1), and a single element hides the step.
    int64_t n = x->count();
    bool same = n == y->count() && (n == 0 || x->start == y->start) && (n <= 1 || x->step == y->step);
    return Value::boolean(same == (op == CompareOp::kEq));
  }
  return std::nullopt;
}

constexpr CompareOp mirrored(CompareOp op) {
  switch (op) {
    case CompareOp::kLt:
      return CompareOp::kGt;
    case CompareOp::kLe:
      return CompareOp::kGe;
    case CompareOp::kGt:
      return CompareOp::kLt;
    case CompareOp::kGe:
      return CompareOp::kLe;
    case CompareOp::kEq:
    case CompareOp::kNe:
    case CompareOp::kIs:
    case CompareOp::kIsNot:
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      break;
  }
  return op;
}

}  // namespace

Value Interp::compare(CompareOp op, const Value& a, const Value& b) {
  if (a.is_small_int() && b.is_small_int()) {
    int64_t x = a.integer(), y = b.integer();
    switch (op) {
      case CompareOp::kEq:
      case CompareOp::kIs:
        return Value::boolean(x == y);
      case CompareOp::kNe:
      case CompareOp::kIsNot:
        return Value::boolean(x != y);
      case CompareOp::kLt:
        return Value::boolean(x < y);
      case CompareOp::kLe:
        return Value::boolean(x <= y);
      case CompareOp::kGt:
        return Value::boolean(x > y);
      case CompareOp::kGe:
        return Value::boolean(x >= y);
      case CompareOp::kIn:
      case CompareOp::kNotIn:
        break;
    }
  }
  if (op == CompareOp::kIs || op == CompareOp::kIsNot) {
    bool same = a.same(b);
    if (!same && a.constant() && b.constant() && a.kind() != Kind::kStr)
      same = ast::truth(take(ast::apply(CompareOp::kIs, *a.constant(), *b.constant(), where_)));
    // CPython interns most short strings, so scripts get away with `mode is "max"`. Here it always holds for equal
    // texts.
    if (auto* s = a.get<Str>(), *t = b.get<Str>(); !same && s && t) same = s->text == t->text;
    return Value::boolean(same == (op == CompareOp::kIs));
  }
  if (op == CompareOp::kIn || op == CompareOp::kNotIn) {
    if (auto* o = b.object()) {
      std::optional<bool> found = o->contains(*this, a);
      if (!found) {
        found = false;
        if (o->iterate(*this).missing()) fail(ErrorKind::kType, "'in' does not apply to '{}'", type_name(b));
        for_each(b, [&](const Value& v) { return !*(found = v.same(a) || equal(v, a)); });
      }
      return Value::boolean(*found == (op == CompareOp::kIn));
    }
    fail(ErrorKind::kType, "'in' does not apply to '{}'", type_name(b));
  }
  check_stack();
  const bool own = has_own_class(a) || has_own_class(b);
  if (!own)
    if (auto v = compare_containers(*this, op, a, b)) return *std::move(v);
  if (auto* o = a.object())
    if (auto v = o->compare(*this, op, b)) return *std::move(v);
  if (auto* o = b.object())
    if (auto v = o->compare(*this, mirrored(op), a)) return *std::move(v);
  if (own)
    if (auto v = compare_containers(*this, op, a, b)) return *std::move(v);
  auto x = a.constant(), y = b.constant();
  if (x && y) return Value::of(take(ast::apply(op, *x, *y, where_)));
  if (op == CompareOp::kEq) return Value::boolean(a.same(b));
  if (op == CompareOp::kNe) return Value::boolean(!a.same(b));
  fail(ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", ast::spelling(op), type_name(a), type_name(b));
}

uint64_t Interp::hash(const Value& v) {
  // Keys such as 64, 128 and 192 share the low bits that the table takes: the multiplication spreads a key over the
  // high bits, and the shift brings those down.
  auto mix = [](uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ (x >> 29);
  };
  if (v.small_int_or_bool()) return mix(static_cast<uint64_t>(v.integer()));
  if (has_own_class(v))
    if (auto h = v.object()->hash(*this)) return *h;
  if (v.is_none()) return 0x517CC1B7u;
  if (v.is_dtype()) return mix(static_cast<uint64_t>(v.dtype()) + 0x1000);
  if (v.is_float()) {
    double d = v.real();
    // 1 == 1.0 == True, so they must be one key. 9e18 is just below 2^63, above which the cast would be undefined.
    if (d == std::floor(d) && std::fabs(d) < 9e18) return mix(static_cast<uint64_t>(static_cast<int64_t>(d)));
    return std::hash<double>{}(d);
  }
  if (auto* s = v.get<Str>()) return std::hash<std::string_view>{}(s->text);
  if (auto* w = v.get<WideInt>()) return mix(static_cast<uint64_t>(w->value) ^ static_cast<uint64_t>(w->value >> 64));
  if (auto* t = v.get<Tuple>()) {
    check_stack();
    uint64_t h = 0x345678;
    for (const Value& i : t->items) h = mix(h ^ hash(i));
    return h;
  }
  if (auto* s = v.get<FrozenSet>()) return *s->FrozenSet::hash(*this);
  Kind k = v.kind();
  if (k == Kind::kList || k == Kind::kDict || k == Kind::kSet || k == Kind::kSlice)
    fail(ErrorKind::kType, "a '{}' cannot be a key, because it can change", type_name(v));
  if (auto h = v.object()->hash(*this)) return *h;
  return mix(reinterpret_cast<uintptr_t>(v.object()));
}

std::optional<Value> Interp::find_attribute(const Value& base, std::string_view name) {
  Kind kind = base.kind();
  if (auto* o = base.object()) {
    // A property or a __getattr__ says by an AttributeError that there is no such attribute, a module's too.
    const size_t depth = calls_.size();
    try {
      if (auto v = o->attribute(*this, name)) return v;
    } catch (const ScriptError& e) {
      if (!o->own_type() && !base.get<ModuleObject>()) throw;
      auto* raised = e.exception.get<Instance>();
      if (!raised || !raised->type->derives_from(exception_type("AttributeError").get())) throw;
      calls_.resize(depth);
      if (o->own_type()) return std::nullopt;
    }
  }
  if (Native* m = method(kind, name)) return Value(make<BoundMethod>(base, Value(m)));
  if (auto v = special_of_value(*this, base, name)) return v;
  if (kind == Kind::kDType) {
    const DTypeInfo& t = info(base.dtype());
    if (name == "itemsize") return Value::integer(size_of(base.dtype()));
    if (name == "is_floating_point") return Value::boolean(is_float(base.dtype()));
    if (name == "is_signed") return Value::boolean(is_signed(base.dtype()) || is_float(base.dtype()));
    if (name == "name") return Value::str(std::string(t.triton));
    if (name == "primitive_bitwidth") return Value::integer(t.bits);
  }
  if (name == "__class__") return Value(type_of(base));
  if (kind == Kind::kInt || kind == Kind::kBool || kind == Kind::kFloat) {
    if (name == "real" || (name == "numerator" && kind != Kind::kFloat))
      return base.is_bool() ? Value::integer(base.boolean()) : base;
    if (name == "imag") return kind == Kind::kFloat ? Value::real(0) : Value::integer(0);
    if (name == "denominator" && kind != Kind::kFloat) return Value::integer(1);
  }
  // A module of the library that is loaded when it is first used.
  if (auto* module = base.get<ModuleObject>(); module && is_library_module(module->path))
    if (Ref<ModuleObject> sub = import_module(module->path + "." + std::string(name))) return Value(sub);
  return std::nullopt;
}

Value Interp::attribute(const Value& base, std::string_view name) {
  if (auto* o = base.object(); o && o->own_type())  // an AttributeError of its class's own says more
    if (auto v = o->attribute(*this, name)) return *std::move(v);
  if (auto v = find_attribute(base, name)) return *std::move(v);
  std::vector<std::string> names;
  method_names(base.kind(), names);
  if (auto* o = base.object()) o->attribute_names(names);
  auto* module = base.get<ModuleObject>();
  if (module) {
    // A submodule that nothing has imported yet.
    std::string path = module->path + "." + std::string(name);
    if (auto sub = import_module(path)) return sub;
    // What a __getattr__ of the script's own module says.
    if (!is_library_module(module->path))
      if (auto v = module->attribute(*this, name)) return *std::move(v);
  }
  auto* type = base.get<TypeObject>();
  const std::string what = module ? fmt::format("the module '{}'", module->path)
                           : type ? fmt::format("the class '{}'", type->name)
                                  : fmt::format("'{}'", type_name(base));
  fail_as_type("AttributeError", fmt::format("{} has no attribute '{}'", what, name),
               help_of_missing(module ? module_help_ : nullptr, module ? module->path : "", name, names));
}

void Interp::set_attribute(const Value& base, std::string_view name, Value value) {
  if (auto* o = base.object()) return o->set_attribute(*this, name, std::move(value));
  fail_as("AttributeError", "the attribute '{}' of '{}' cannot be set", name, type_name(base));
}

namespace {
/// An index by __index__, of a script's object or a tensor, before the sequence is looked at: the method may change it.
std::optional<Value> own_index(Interp& in, const Value& base, const Value& index) {
  const Kind k = base.kind(), of = index.kind();
  if (!index.object() || (k != Kind::kList && k != Kind::kTuple && k != Kind::kStr && k != Kind::kRange))
    return std::nullopt;
  // Slices are many, and have none.
  if (of == Kind::kSlice || of == Kind::kType || index.get<WideInt>()) return std::nullopt;
  const auto* own = index.get<Instance>();
  if (own ? !own->type->find("__index__") : !in.find_attribute(index, "__index__")) return std::nullopt;
  return Value::integer(in.to_int(index, "an index"));
}
}  // namespace

Value Interp::item(const Value& base, const Value& index) {
  if (const auto i = own_index(*this, base, index)) return base.object()->item(*this, *i);
  if (auto* o = base.object()) return o->item(*this, index);
  fail(ErrorKind::kType, "'{}' has no elements to index", type_name(base));
}

void Interp::set_item(const Value& base, const Value& index, Value value) {
  if (const auto i = own_index(*this, base, index)) return base.object()->set_item(*this, *i, std::move(value));
  if (auto* o = base.object()) return o->set_item(*this, index, std::move(value));
  fail(ErrorKind::kType, "the elements of '{}' cannot be assigned", type_name(base));
}

int64_t Interp::length(const Value& v) {
  if (auto* o = v.object())
    if (auto n = o->length(*this)) return *n;
  fail(ErrorKind::kType, "'{}' has no len()", type_name(v));
}

Ref<IteratorObject> Interp::iterator(const Value& v) {
  if (auto* o = v.object()) {
    Value it = o->iterate(*this);
    if (auto* iterator = it.missing() ? nullptr : it.get<IteratorObject>()) return Ref<IteratorObject>(iterator);
  }
  fail(ErrorKind::kType, "'{}' cannot be iterated", type_name(v));
}

bool Interp::has_own_iterator(const Value& v) {
  const auto* o = v.object();
  return o && o->own_type() && (*o->own_type())->find("__iter__");
}

std::vector<Value> Interp::to_vector(const Value& v) {
  const bool own = has_own_iterator(v);
  if (auto* l = own ? nullptr : v.get<List>()) return copied(l->items);
  if (auto* t = own ? nullptr : v.get<Tuple>()) return copied(t->items);
  std::vector<Value> out;
  const auto* range = v.get<Range>();
  const size_t known = range ? static_cast<size_t>(range->count()) : 0;
  for_each(v, [&](Value item) {
    check_items(std::max(known, out.size()));
    out.push_back(std::move(item));
    return true;
  });
  return out;
}

std::vector<Value> Interp::copied(const std::vector<Value>& items) {
  std::vector<Value> out;
  out.reserve(items.size());
  in_pieces(items.size(), [&](size_t first, size_t last) {
    out.insert(out.end(), items.begin() + static_cast<ptrdiff_t>(first), items.begin() + static_cast<ptrdiff_t>(last));
  });
  return out;
}

void Interp::check_items(size_t count) {
  if (count > kMaxItems)
    fail(ErrorKind::kMemory, "there are more than {} elements, the most that one operation makes", kMaxItems);
}

int64_t Interp::to_int(const Value& v, std::string_view what) {
  if (v.small_int_or_bool()) return v.integer();
  if (auto* o = v.object(); o && !v.get<WideInt>())
    if (auto n = find_attribute(v, "__index__"); n && o->kind() != Kind::kType) return to_int(call(*n, {}), what);
  if (auto* w = v.get<WideInt>(); w && w->fits())
    return static_cast<int64_t>(w->value);  // an int of a class of its own
  if (v.get<WideInt>()) fail(ErrorKind::kValue, "{} does not fit into 64 bits: {}", what, repr(v));
  fail(ErrorKind::kType, "{} must be an int, got '{}'", what, type_name(v));
}

double Interp::to_double(const Value& v, std::string_view what) {
  if (v.is_float()) return v.real();
  if (v.small_int_or_bool()) return static_cast<double>(v.integer());
  if (auto* w = v.get<WideInt>()) return static_cast<double>(w->value);
  if (auto* o = v.object())
    for (const char* name : {"__float__", "__index__"})
      if (auto n = find_attribute(v, name); n && o->kind() != Kind::kType) return to_double(call(*n, {}), what);
  fail(ErrorKind::kType, "{} must be a number, got '{}'", what, type_name(v));
}

const std::string& Interp::to_text(const Value& v, std::string_view what) {
  auto* s = v.get<Str>();
  if (!s) fail(ErrorKind::kType, "{} must be a str, got '{}'", what, type_name(v));
  return s->text;
}

}  // namespace kiln::script
