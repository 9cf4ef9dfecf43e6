// The builtin functions.
#include "repl/script/builtins/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "repl/script/interp/function_generator.h"
#include "repl/script/value/bytes.h"
#include "repl/script/value/classes.h"
#include "repl/script/value/complex.h"
#include "repl/script/value/text.h"

namespace kiln::script {

void sort_values(Interp& in, std::vector<Value>& items, const Value& key, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  keyed.reserve(items.size());
  bool by_key = !key.missing() && !key.is_none();
  for (Value& v : items) {
    // A key is asked for once per element, as Python does.
    in.check_interrupt();
    keyed.emplace_back(by_key ? in.call(key, {v}) : v, v);
  }
  // Merging never looks outside of the range when the script's comparison is inconsistent, as std::sort might.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    in.check_interrupt();
    // Reversed by comparing the other way: equal elements keep their order.
    return reverse ? in.less(b.first, a.first) : in.less(a.first, b.first);
  });
  for (size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
}

namespace {

Value len(Interp& in, NativeArgs& a) { return Value::integer(in.length(a[0])); }

/// What a script has put in the place of sys.stdout; missing: nothing.
Value replaced_stdout(Interp& in) {
  const Ref<ModuleObject> sys = in.import_module("sys");
  const Value* now = sys ? sys->members.find("stdout") : nullptr;
  const Value* own = sys ? sys->members.find("__stdout__") : nullptr;
  // sys.__stdout__ is what Kiln put there.
  return now && own && !now->is_none() && !now->same(*own) ? *now : Value();
}

Value print(Interp& in, NativeArgs& a) {
  auto option = [&](size_t i, const std::string& otherwise) {
    return a[i].missing() || a[i].is_none() ? otherwise : in.to_text(a[i], "print()'s sep or end");
  };
  std::string separator = option(1, " "), out;
  const std::vector<Value>& values = a[0].get<Tuple>()->items;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += separator;
    const auto* text = values[i].get<Str>();
    // A subclass of str may have its own __str__.
    if (!text || values[i].object()->own_type()) {
      out += in.str(values[i]);
      continue;
    }
    out.reserve(out.size() + text->text.size());
    // In pieces, since a text may be of any size and Ctrl-C has to come in between.
    in.in_pieces(text->text.size(), [&](size_t first, size_t last) { out.append(text->text, first, last - first); });
  }
  out += option(2, "\n");
  const bool flush = !a[4].missing() && in.truth(a[4]);
  const Value file = a[3].missing() || a[3].is_none() ? replaced_stdout(in) : a[3];
  if (file.missing()) {
    in.print(out);
    if (flush) std::fflush(stdout);
    return Value::none();
  }
  in.call(in.attribute(file, "write"), {Value::str(out)});
  if (flush) in.call(in.attribute(file, "flush"), {});
  return Value::none();
}

Value range(Interp& in, NativeArgs& a) {
  const std::vector<Value>& v = a[0].get<Tuple>()->items;
  if (v.empty() || v.size() > 3) in.fail(ErrorKind::kType, "range() takes 1 to 3 arguments, got {}", v.size());
  int64_t start = v.size() > 1 ? in.to_int(v[0], "range()'s start") : 0;
  int64_t stop = in.to_int(v[v.size() > 1 ? 1 : 0], "range()'s stop");
  int64_t step = v.size() > 2 ? in.to_int(v[2], "range()'s step") : 1;
  if (step == 0) in.fail(ErrorKind::kValue, "range()'s step cannot be 0");
  return make<Range>(start, stop, step);
}

Value extreme(Interp& in, NativeArgs& a, bool largest) {
  const char* name = largest ? "max" : "min";
  const std::vector<Value>& values = a[0].get<Tuple>()->items;
  if (values.empty()) in.fail(ErrorKind::kType, "{}() needs at least one argument", name);
  std::vector<Value> items = values.size() == 1 ? in.to_vector(values[0]) : values;
  if (items.empty()) {
    if (a[2].missing()) in.fail(ErrorKind::kValue, "{}() of nothing: give default=…", name);
    return a[2];
  }
  bool by_key = !a[1].missing() && !a[1].is_none();
  Value best = items[0], best_key = by_key ? in.call(a[1], {best}) : best;
  for (size_t i = 1; i < items.size(); ++i) {
    Value key = by_key ? in.call(a[1], {items[i]}) : items[i];
    // The first of equal ones stays.
    if (largest ? in.less(best_key, key) : in.less(key, best_key)) best = items[i], best_key = std::move(key);
  }
  return best;
}
Value min(Interp& in, NativeArgs& a) { return extreme(in, a, false); }
Value max(Interp& in, NativeArgs& a) { return extreme(in, a, true); }

Value sum(Interp& in, NativeArgs& a) {
  Value total = a[1].missing() ? Value::integer(0) : a[1];
  // Python's rule: each addition would copy all that is there.
  if (total.get<Str>() || byte_data(total))
    in.fail(with_note(error(ErrorKind::kType, "sum() does not add values of '{}'", in.type_name(total)),
                      "help: use ''.join(parts), or b''.join(parts)"));
  in.for_each(a[0], [&](const Value& v) {
    total = in.binary(ast::BinaryOp::kAdd, total, v);
    return true;
  });
  return total;
}

Value abs(Interp& in, NativeArgs& a) {
  if (a[0].is_float()) return Value::real(std::fabs(a[0].real()));
  if (a[0].constant() && !a[0].get<Str>() && !a[0].is_none())
    return in.less(a[0], Value::integer(0)) ? in.unary(ast::UnaryOp::kNegate, a[0])
                                            : in.unary(ast::UnaryOp::kPlus, a[0]);
  if (auto* z = a[0].get<ComplexNumber>()) return Value::real(std::hypot(z->value.real(), z->value.imag()));
  if (auto f = in.find_attribute(a[0], a[0].get<Instance>() ? "__abs__" : "abs")) return in.call(*f, {});
  in.fail(ErrorKind::kType, "abs() does not apply to '{}'", in.type_name(a[0]));
}

/// To a multiple of 10^digits, ties to even.
Value rounded_int(ast::Int v, int64_t digits) {
  constexpr int64_t kMostDigits = 38;  // of 128 bits
  // 10^39 is beyond 2^127: all digits are rounded away.
  if (digits > kMostDigits) return Value::integer(0);
  ast::Int unit = 1;
  for (int64_t i = 0; i < digits; ++i) unit *= 10;
  const ast::Int rest = (v % unit + unit) % unit, low = v - rest;
  const bool up = rest > unit - rest || (rest == unit - rest && (low / unit) % 2 != 0);
  return Value::wide(up ? low + unit : low);
}

Value round(Interp& in, NativeArgs& a) {
  bool to_int = a[1].missing() || a[1].is_none();
  // An int has no digits behind the point.
  if (a[0].small_int_or_bool() && (to_int || in.to_int(a[1], "round()'s digits") >= 0))
    return Value::integer(a[0].integer());
  if (auto* w = a[0].get<WideInt>(); w && to_int) return Value::wide(w->value);
  if (a[0].get<Instance>())
    if (auto f = in.find_attribute(a[0], "__round__")) return to_int ? in.call(*f, {}) : in.call(*f, {a[1]});
  if (a[0].get<Instance>())
    in.fail(ErrorKind::kType, "round() does not apply to '{}': its class has no __round__", in.type_name(a[0]));
  double v = in.to_double(a[0], "round()'s argument");
  if (to_int) {
    if (std::isinf(v)) in.fail_as("OverflowError", "{} cannot be rounded to an int", ast::float_repr(v));
    if (std::isnan(v)) in.fail(ErrorKind::kValue, "nan cannot be rounded to an int");
    double r = std::nearbyint(v);
    // As far as casts to 128 bits are defined.
    if (std::fabs(r) >= 0x1p126) in.fail(ErrorKind::kValue, "{} does not fit into an int", ast::float_repr(v));
    return Value::wide(static_cast<ast::Int>(r));
  }
  constexpr int64_t kFewestDigits = -400;  // of those before the point, more than any float or int has
  const int64_t digits = std::max(in.to_int(a[1], "round()'s digits"), kFewestDigits);
  if (digits < 0 && a[0].small_int_or_bool()) return rounded_int(a[0].integer(), -digits);
  if (auto* w = a[0].get<WideInt>()) return digits < 0 ? rounded_int(w->value, -digits) : a[0];
  if (digits < 0) {
    double scale = std::pow(10.0, static_cast<double>(-digits));
    // The unit is beyond every float, so zero is nearest.
    if (std::isinf(scale) || !std::isfinite(v)) return Value::real(std::isfinite(v) ? std::copysign(0.0, v) : v);
    double r = std::nearbyint(v / scale) * scale;
    return Value::real(r);
  }
  if (digits > 300 || !std::isfinite(v)) return Value::real(v);
  // The shortest decimal text rounds as Python does: correctly from the exact binary value, ties to even.
  return Value::real(std::strtod(fmt::format("{:.{}f}", v, digits).c_str(), nullptr));
}

Value repr(Interp& in, NativeArgs& a) { return Value::str(in.repr(a[0])); }
Value ascii(Interp& in, NativeArgs& a) { return Value::str(ascii_of(in.repr(a[0]))); }
Value format(Interp& in, NativeArgs& a) {
  return Value::str(in.format(a[0], a[1].missing() ? "" : in.to_text(a[1], "format()'s spec")));
}
Value is_instance(Interp& in, NativeArgs& a) { return Value::boolean(in.is_instance(a[0], a[1])); }

Value is_subclass(Interp& in, NativeArgs& a) {
  auto* t = a[0].get<TypeObject>();
  if (auto* many = a[1].get<Tuple>(); many && t)
    return Value::boolean(std::any_of(many->items.begin(), many->items.end(), [&](const Value& b) {
      Value slots[] = {a[0], b};
      NativeArgs one{slots};
      return is_subclass(in, one).boolean();
    }));
  auto* base = a[1].get<TypeObject>();
  if (!t || !base) in.fail(ErrorKind::kType, "issubclass() needs two types");
  // Classes of the language that need a test of their own (abstract base classes) bring it along.
  if (Value* test = base->of_kind ? nullptr : base->find("__class_subclasscheck__"))
    return Value::boolean(in.truth(in.call(bound(in, Value(*test), nullptr, Ref<TypeObject>(base)), {a[0]})));
  return Value::boolean(t->derives_from(base) || base->of_kind == Kind::kInstance);
}

Value get_attr(Interp& in, NativeArgs& a) {
  const std::string& name = in.to_text(a[1], "getattr()'s name");
  if (a[2].missing()) return in.attribute(a[0], name);
  auto v = in.find_attribute(a[0], name);
  return v ? *v : a[2];
}
Value has_attr(Interp& in, NativeArgs& a) {
  return Value::boolean(in.find_attribute(a[0], in.to_text(a[1], "hasattr()'s name")).has_value());
}
Value set_attr(Interp& in, NativeArgs& a) {
  in.set_attribute(a[0], in.to_text(a[1], "setattr()'s name"), a[2]);
  return Value::none();
}

class Enumerate : public IteratorObject {
 public:
  Enumerate(Ref<IteratorObject> it, int64_t start) : it_(std::move(it)), at_(start) {}
  bool next(Interp& in, Value& out) override {
    in.check_stack();  // of iterators over iterators
    Value v;
    if (!it_->next(in, v)) return false;
    out = make<Tuple>(std::vector<Value>{Value::integer(at_++), std::move(v)});
    return true;
  }

 private:
  Ref<IteratorObject> it_;
  int64_t at_;
};

class Zip : public IteratorObject {
 public:
  explicit Zip(std::vector<Ref<IteratorObject>> its, bool strict) : its_(std::move(its)), strict_(strict) {}
  bool next(Interp& in, Value& out) override {
    in.check_stack();
    std::vector<Value> items(its_.size());
    if (its_.empty()) return false;
    for (size_t i = 0; i < its_.size(); ++i) {
      if (its_[i]->next(in, items[i])) continue;
      Value more;
      // Those in front of this one gave a further element; of those behind it, each is asked for one.
      for (size_t j = 0; strict_ && j < its_.size(); ++j)
        if (j < i || (j > i && its_[j]->next(in, more)))
          in.fail(ErrorKind::kValue, "zip(strict=True) got sequences of different lengths");
      return false;
    }
    out = make<Tuple>(std::move(items));
    return true;
  }

 private:
  std::vector<Ref<IteratorObject>> its_;
  bool strict_;
};

class MapIterator : public IteratorObject {
 public:
  MapIterator(Value fn, std::vector<Ref<IteratorObject>> its) : fn_(std::move(fn)), its_(std::move(its)) {}
  bool next(Interp& in, Value& out) override {
    in.check_stack();
    CallArgs args;
    for (auto& it : its_) {
      Value v;
      if (!it->next(in, v)) return false;
      args.args.push_back(std::move(v));
    }
    out = in.call(fn_, args);
    return true;
  }

 private:
  Value fn_;
  std::vector<Ref<IteratorObject>> its_;
};

class FilterIterator : public IteratorObject {
 public:
  FilterIterator(Value fn, Ref<IteratorObject> it) : fn_(std::move(fn)), it_(std::move(it)) {}
  bool next(Interp& in, Value& out) override {
    // Chains of iterators are as deep as the script made them.
    in.check_stack();
    while (it_->next(in, out))
      if (in.truth(fn_.is_none() ? out : in.call(fn_, {out}))) return true;
    return false;
  }

 private:
  Value fn_;
  Ref<IteratorObject> it_;
};

Value enumerate(Interp& in, NativeArgs& a) {
  return make<Enumerate>(in.iterator(a[0]), a[1].missing() ? 0 : in.to_int(a[1], "enumerate()'s start"));
}

std::vector<Ref<IteratorObject>> iterators(Interp& in, const Value& rest) {
  std::vector<Ref<IteratorObject>> out;
  for (const Value& v : rest.get<Tuple>()->items) out.push_back(in.iterator(v));
  return out;
}

Value zip(Interp& in, NativeArgs& a) { return make<Zip>(iterators(in, a[0]), !a[1].missing() && in.truth(a[1])); }

Value map(Interp& in, NativeArgs& a) {
  auto its = iterators(in, a[1]);
  if (its.empty()) in.fail(ErrorKind::kType, "map() needs a function and at least one sequence");
  return make<MapIterator>(a[0], std::move(its));
}

Value filter(Interp& in, NativeArgs& a) { return make<FilterIterator>(a[0], in.iterator(a[1])); }

Value sorted(Interp& in, NativeArgs& a) {
  std::vector<Value> items = in.to_vector(a[0]);
  sort_values(in, items, a[1], !a[2].missing() && in.truth(a[2]));
  return make<List>(std::move(items));
}

/// From the last element to the first of what has __len__ and __getitem__.
class ReversedItems : public IteratorObject {
 public:
  ReversedItems(Value of, int64_t count) : of_(std::move(of)), left_(count) {}
  bool next(Interp& in, Value& out) override {
    in.check_stack();
    if (left_ <= 0) return false;
    out = in.item(of_, Value::integer(--left_));
    return true;
  }

 private:
  const Value of_;
  int64_t left_;
};

Value reversed(Interp& in, NativeArgs& a) {
  auto* o = a[0].object();
  if (o && o->own_type()) {
    TypeObject& type = **o->own_type();
    // A class's own method first; else what has a length and items is read from its end.
    if (auto v = special(in, o, "__reversed__", {})) return *v;
    if (type.find("__getitem__") && type.find("__len__")) return make<ReversedItems>(a[0], in.length(a[0]));
  }
  if (a[0].get<Instance>() || a[0].get<IteratorObject>() || a[0].get<WideInt>() || any_set(a[0]))
    in.fail(ErrorKind::kType, "'{}' cannot be reversed: it has no order from its end", in.type_name(a[0]));
  std::vector<Value> items = in.to_vector(a[0]);
  std::reverse(items.begin(), items.end());
  return make<List>(std::move(items))->iterate(in);
}

Value any(Interp& in, NativeArgs& a) {
  bool found = false;
  // Stops at the first, and leaves the rest of an iterator to others.
  in.for_each(a[0], [&](const Value& v) { return !(found = in.truth(v)); });
  return Value::boolean(found);
}

Value all(Interp& in, NativeArgs& a) {
  bool good = true;
  in.for_each(a[0], [&](const Value& v) { return good = in.truth(v); });
  return Value::boolean(good);
}

/// What an operand of a script's class makes of an operation that no operator stands for.
std::optional<Value> own_operation(Interp& in, const Value& self, std::string_view name,
                                   std::initializer_list<Value> args) {
  auto* o = self.object();
  return o && o->own_type() ? special(in, o, name, args) : std::nullopt;
}

Value divmod(Interp& in, NativeArgs& a) {
  // No operator stands for divmod(), so classes are asked here.
  if (auto v = own_operation(in, a[0], "__divmod__", {a[1]})) return *v;
  if (auto v = own_operation(in, a[1], "__rdivmod__", {a[0]})) return *v;
  return make<Tuple>(
      std::vector<Value>{in.binary(ast::BinaryOp::kFloorDiv, a[0], a[1]), in.binary(ast::BinaryOp::kMod, a[0], a[1])});
}

Value pow(Interp& in, NativeArgs& a) {
  if (a[2].missing() || a[2].is_none()) return in.binary(ast::BinaryOp::kPow, a[0], a[1]);
  if (auto v = own_operation(in, a[0], "__pow__", {a[1], a[2]})) return *v;
  // By squaring modulo the third argument: the power itself would not fit.
  return power_modulo(in, a[0], a[1], a[2]);
}

Value in_base(Interp& in, const Value& v, std::string_view spec) {
  if (v.kind() != Kind::kInt && v.kind() != Kind::kBool)
    return in_base(in, Value::integer(in.to_int(v, "the argument")), spec);
  return Value::str(in.format(in.unary(ast::UnaryOp::kPlus, v), spec));
}
Value hex(Interp& in, NativeArgs& a) { return in_base(in, a[0], "#x"); }
Value oct(Interp& in, NativeArgs& a) { return in_base(in, a[0], "#o"); }
Value bin(Interp& in, NativeArgs& a) { return in_base(in, a[0], "#b"); }

Value id(Interp& in, NativeArgs& a) {
  return Value::integer(a[0].object() ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(a[0].object()))
                                      // Plain values have no address; equal ones may share a number, as small ints do
                                      // in Python.
                                      : static_cast<int64_t>(in.hash(a[0]) >> 1));
}
Value hash(Interp& in, NativeArgs& a) { return Value::integer(value_hash(in, a[0])); }

Value callable(Interp& in, NativeArgs& a) {
  switch (a[0].kind()) {
    case Kind::kFunction:
    case Kind::kNative:
    case Kind::kBoundMethod:
    case Kind::kType:
      return Value::boolean(true);
    case Kind::kInstance:
      return Value::boolean(a[0].get<Instance>()->type->find("__call__") != nullptr);
    case Kind::kOpaque:
      return Value::boolean(static_cast<bool>(a[0].get<Opaque>()->on_call));
    default:  // functions of modules have kinds of their own
      return Value::boolean(a[0].get<StaticMethod>() || in.type_name(a[0]) == "builtin_function_or_method");
  }
}

/// What a function gives, call after call, up to a value that ends it.
class CallIterator : public IteratorObject {
 public:
  CallIterator(Value fn, Value last) : fn_(std::move(fn)), last_(std::move(last)) {}
  bool next(Interp& in, Value& out) override {
    in.check_stack();
    in.check_interrupt();
    if (fn_.missing()) return false;
    // Held by value: the function may ask for the next element itself, and end this iterator.
    const Value fn = fn_;
    try {
      out = in.call(fn, {});
    } catch (ScriptError& e) {
      // As Python: one that raises StopIteration has ended too.
      if (!is_stop_iteration(in, e)) throw;
      fn_ = Value();
      return false;
    }
    if (in.equal(out, last_)) fn_ = Value();
    return !fn_.missing();
  }

 private:
  Value fn_;
  const Value last_;
};

Value iter(Interp& in, NativeArgs& a) {
  if (a[1].missing()) return in.iterator(a[0]);
  if (!in.truth(callable(in, a)))
    in.fail(ErrorKind::kType, "iter() with a sentinel needs a function, got '{}'", in.type_name(a[0]));
  return make<CallIterator>(a[0], a[1]);
}

Value next(Interp& in, NativeArgs& a) {
  Value v;
  if (auto* it = a[0].get<IteratorObject>()) {
    if (it->next(in, v)) return v;
    // The value of a generator's return travels in the exception.
    if (auto* g = dynamic_cast<FunctionGenerator*>(it); g && a[1].missing()) stop_iteration(in, g->result());
  } else if (auto f = in.find_attribute(a[0], "__next__")) {
    try {
      return in.call(*f, {});
    } catch (ScriptError& e) {
      if (a[1].missing() || !is_stop_iteration(in, e)) throw;
    }
  } else {
    in.fail(ErrorKind::kType, "next() needs an iterator, got '{}'", in.type_name(a[0]));
  }
  if (a[1].missing()) in.fail_as_type("StopIteration", "the iterator has no further value", "", "");
  return a[1];
}

Value chr(Interp& in, NativeArgs& a) {
  int64_t c = in.to_int(a[0], "chr()'s argument");
  // Surrogates are no characters in UTF-8.
  if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) in.fail(ErrorKind::kValue, "{} is no character", c);
  std::string out;
  auto push = [&](int64_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80)
    push(c);
  else if (c < 0x800)
    push(0xC0 | c >> 6), push(0x80 | (c & 0x3F));
  else if (c < 0x10000)
    push(0xE0 | c >> 12), push(0x80 | (c >> 6 & 0x3F)), push(0x80 | (c & 0x3F));
  else
    push(0xF0 | c >> 18), push(0x80 | (c >> 12 & 0x3F)), push(0x80 | (c >> 6 & 0x3F)), push(0x80 | (c & 0x3F));
  return Value::str(std::move(out));
}

Value ord(Interp& in, NativeArgs& a) {
  const std::string& s = in.to_text(a[0], "ord()'s argument");
  if (in.length(a[0]) != 1) in.fail(ErrorKind::kType, "ord() needs one character, got {}", in.length(a[0]));
  auto lead = static_cast<uint8_t>(s[0]);
  // The first byte has as many marks in front as the character has bytes.
  int64_t c = s.size() == 1 ? lead : lead & (0x7F >> s.size());
  for (size_t i = 1; i < s.size(); ++i) c = c << 6 | (static_cast<uint8_t>(s[i]) & 0x3F);
  return Value::integer(c);
}

Value del_attr(Interp& in, NativeArgs& a) {
  delete_attribute(in, a[0], in.to_text(a[1], "delattr()'s name"));
  return Value::none();
}

/// The variables as they are at the call. What is set or removed in it is so in the variables too.
class GlobalsDict : public Dict {
 public:
  explicit GlobalsDict(Globals& globals) : globals_(globals) {
    for (const auto& slot : globals.slots())
      if (!slot.value.missing()) table.set(slot.name, slot.value);
  }
  void set_item(Interp& in, const Value& index, Value value) override {
    const std::string name = in.to_text(index, "the name of a variable");
    // Both: the variable, and the dict, which shows what it was at the call.
    globals_[globals_.index(name)].value = value;
    table.set(name, std::move(value));
  }
  void delete_item(Interp& in, const Value& index) override {
    Dict::delete_item(in, index);
    if (Globals::Slot* slot = globals_.find(in.to_text(index, "the name of a variable"))) slot->value = Value();
  }

 private:
  Globals& globals_;
};

Value vars(Interp& in, NativeArgs& a) {
  if (a[0].missing()) return make<GlobalsDict>(in.current_globals());
  if (auto v = in.find_attribute(a[0], "__dict__")) return *v;
  if (!a[0].get<ModuleObject>()) in.fail(ErrorKind::kType, "'{}' has no __dict__", in.type_name(a[0]));
  std::vector<std::string> names;
  a[0].object()->attribute_names(names);
  auto dict = make<Dict>();
  for (const std::string& name : names) dict->table.set(name, in.attribute(a[0], name));
  return dict;
}

Value dir(Interp& in, NativeArgs& a) {
  std::vector<std::string> names;
  if (a[0].missing()) {
    for (const auto& slot : in.current_globals().slots())
      if (!slot.value.missing()) names.push_back(slot.name);
  } else if (auto* self = a[0].object(); self && self->own_type() && (*self->own_type())->find("__dir__")) {
    std::vector<Value> own = in.to_vector(*special(in, self, "__dir__", {}));
    sort_values(in, own, Value(), false);
    return make<List>(std::move(own));
  } else {
    in.method_names(a[0].kind(), names);
    if (auto* o = a[0].object()) o->attribute_names(names);
  }
  // Methods of the kind and attributes of the object may have one name.
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Value> out;
  for (std::string& n : names) out.push_back(Value::str(std::move(n)));
  return make<List>(std::move(out));
}

Value globals(Interp& in, NativeArgs&) { return make<GlobalsDict>(in.current_globals()); }

Value super(Interp& in, NativeArgs& a) {
  const std::vector<Value>& v = a[0].get<Tuple>()->items;
  auto* owner = v.size() == 2 ? v[0].get<TypeObject>() : nullptr;
  if (!owner) in.fail(ErrorKind::kType, "super() takes a class and an instance of it, or nothing inside a method");
  auto* given = v[1].get<TypeObject>();
  if (!in.type_of(v[1])->derives_from(owner) && !(given && given->derives_from(owner)))
    in.fail(ErrorKind::kType, "super() needs an instance of '{}', got '{}'", owner->name, in.type_name(v[1]));
  return make_super(Ref<TypeObject>(owner), v[1]);
}

Value range_index(Interp& in, NativeArgs& a) {
  const auto& r = *a.self->get<Range>();
  // By `in` first, which knows of steps and of floats.
  if (!in.truth(in.compare(ast::CompareOp::kIn, a[0], *a.self)))
    in.fail(ErrorKind::kValue, "the range does not hold {}", in.repr(a[0]));
  const ast::Int at = a[0].is_float() ? static_cast<ast::Int>(a[0].real()) : in.to_int(a[0], "index()'s number");
  return Value::wide((at - r.start) / r.step);
}
Value range_count(Interp& in, NativeArgs& a) {
  return Value::integer(in.truth(in.compare(ast::CompareOp::kIn, a[0], *a.self)));
}

constexpr NativeDef kRangeMethods[] = {
    {"count(number)", range_count, "1 when it holds the number, else 0"},
    {"index(number)", range_index, "where the number stands"},
};

constexpr NativeDef kBuiltins[] = {
    {"abs(x)", abs, "the absolute value"},
    {"all(iterable)", all, "True when every element is true"},
    {"any(iterable)", any, "True when some element is true"},
    {"ascii(obj)", ascii, "as repr(), with escapes for characters beyond ASCII"},
    {"bin(x)", bin, "an int in binary: '0b101'"},
    {"callable(obj)", callable, "can it be called?"},
    {"chr(code)", chr, "the character of a code point"},
    {"delattr(obj, name)", del_attr, "deletes an attribute by its name"},
    {"dir(obj=)", dir, "the names of an object's attributes, or of the global variables"},
    {"divmod(a, b)", divmod, "(a // b, a % b)"},
    {"enumerate(iterable, start=0)", enumerate, "pairs (index, element)"},
    {"filter(function, iterable)", filter, "the elements for which the function is true"},
    {"format(value, spec='')", format, "the value formatted as in an f-string"},
    {"getattr(obj, name, default=)", get_attr, "an attribute by its name"},
    {"globals()", globals, "the global variables; what is set in it is set"},
    {"hasattr(obj, name)", has_attr, "does it have that attribute?"},
    {"hash(obj)", hash, "the hash of a key"},
    {"hex(x)", hex, "an int in hexadecimal: '0xff'"},
    {"id(obj)", id, "a number that tells objects apart"},
    {"isinstance(obj, type)", is_instance, "is it of that type, or of one of a tuple of types?"},
    {"issubclass(type, base)", is_subclass, "does a class derive from another?"},
    {"iter(iterable, sentinel=)", iter, "an iterator over it; or over what a function gives up to the sentinel"},
    {"len(obj)", len, "the number of elements"},
    {"locals()", globals, "the variables of the function around the call, as they are"},  // see Interp::eval_call
    {"map(function, *iterables)", map, "the function applied to each element"},
    {"max(*values, key=None, default=)", max, "the largest"},
    {"min(*values, key=None, default=)", min, "the smallest"},
    {"next(iterator, default=)", next, "the next value of an iterator"},
    {"oct(x)", oct, "an int in octal: '0o17'"},
    {"ord(character)", ord, "the code point of a character"},
    {"pow(base, exp, mod=)", pow, "base ** exp, optionally modulo mod"},
    {"print(*values, sep=' ', end='\\n', file=None, flush=False)", print, "writes the values"},
    {"repr(obj)", repr, "the text that shows a value"},
    {"reversed(sequence)", reversed, "the elements from the last to the first"},
    {"round(x, ndigits=None)", round, "rounds to the nearest, ties to even"},
    {"setattr(obj, name, value)", set_attr, "sets an attribute by its name"},
    {"sorted(iterable, *, key=None, reverse=False)", sorted, "a sorted list"},
    {"sum(iterable, start=0)", sum, "the sum"},
    {"super(*args)", super, "the base classes' methods, inside a method"},
    {"vars(obj=)", vars, "an object's fields as a dict"},
    {"zip(*iterables, strict=False)", zip, "tuples of elements that belong together"},
};

}  // namespace

int64_t place_within(Interp& in, const Value& v, int64_t n, int64_t otherwise, std::string_view what) {
  const int64_t at = v.missing() ? otherwise : in.to_int(v, what);
  return std::max<int64_t>(0, at < 0 ? at + n : at);
}

void add_functions(ModuleObject& module, std::span<const NativeDef> defs) {
  for (const NativeDef& d : defs) {
    auto native = make<Native>(d);
    module.members.set(native->name, native);
  }
}

namespace {

Value make_method(Interp& in, NativeArgs& a) {
  if (!a[0].get<Function>() && !a[0].get<Native>() && !in.find_attribute(a[0], "__call__"))
    in.fail(ErrorKind::kType, "first argument must be callable");
  if (a[1].is_none()) in.fail(ErrorKind::kType, "instance must not be None");
  return make<BoundMethod>(a[1], a[0]);
}

Value make_module(Interp& in, NativeArgs& a) {
  auto module = make<ModuleObject>(in.to_text(a[0], "a module's name"));
  module->members.set("__doc__", a[1].missing() ? Value::none() : a[1]);
  return module;
}

}  // namespace

void install_builtins(Interp& in) {
  in.add_builtins(kBuiltins);
  in.add_methods({Kind::kRange, kRangeMethods});
  static constexpr NativeDef kRange = {"range(*bounds)", range,
                                       "range(stop), range(start, stop) or range(start, stop, step)"};
  in.type_of(Kind::kRange)->constructor = make<Native>(kRange);
  in.add_builtin("range", in.type_of(Kind::kRange));
  // types.MethodType
  static constexpr NativeDef kMethod = {"method(function, instance)", make_method,
                                        "the function, called with instance"};
  in.type_of(Kind::kBoundMethod)->constructor = make<Native>(kMethod);
  // types.ModuleType
  static constexpr NativeDef kModule = {"module(name, doc=None)", make_module,
                                        "a module of that name, without contents"};
  in.type_of(Kind::kModule)->constructor = make<Native>(kModule);
  install_types(in);
  install_complex(in);
  install_number_methods(in);
  install_classes(in);
  install_str_methods(in);
  install_bytes(in);
  install_container_methods(in);
  install_slice_methods(in);
  install_iterator_methods(in);
  in.add_builtin("__name__", Value::str("__main__"));
  in.add_builtin("__doc__", Value::none());
}

}  // namespace kiln::script
