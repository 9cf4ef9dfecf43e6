// Methods of list, tuple, dict, set, int and float.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

// --- list and tuple
// -----------------------------------------------------------------------------------------------------

std::vector<Value>& list(NativeArgs& a) { return a.self->get<List>()->items; }
const std::vector<Value>& sequence(NativeArgs& a) {
  return a.self->get<List>() ? a.self->get<List>()->items : a.self->get<Tuple>()->items;
}

Value append(Interp&, NativeArgs& a) {
  list(a).push_back(a[0]);
  return Value::none();
}
Value extend(Interp& in, NativeArgs& a) {
  std::vector<Value> more = in.to_vector(a[0]);
  list(a).insert(list(a).end(), more.begin(), more.end());
  return Value::none();
}
Value insert(Interp& in, NativeArgs& a) {
  int64_t i = in.to_int(a[0], "insert()'s index"), n = static_cast<int64_t>(list(a).size());
  list(a).insert(list(a).begin() + std::clamp<int64_t>(i < 0 ? i + n : i, 0, n), a[1]);
  return Value::none();
}
Value list_pop(Interp& in, NativeArgs& a) {
  if (list(a).empty()) in.fail_as("IndexError", "pop() of an empty list");
  auto at = list(a).begin() +
            in.index_in(a[0].missing() ? Value::integer(-1) : a[0], static_cast<int64_t>(list(a).size()), "list");
  Value v = std::move(*at);
  list(a).erase(at);
  return v;
}
/// Of the first such value among those from `begin` to `end`; the sequence's length: there is none.
size_t find_in(Interp& in, NativeArgs& a, size_t begin = 0, size_t end = SIZE_MAX) {
  const std::vector<Value>& items = sequence(a);
  for (size_t i = begin; i < std::min(end, items.size()); ++i) {
    in.check_interrupt();
    if (const Value v = items[i]; v.same(a[0]) || in.equal(v, a[0])) return i;
  }
  return items.size();
}
Value remove(Interp& in, NativeArgs& a) {
  size_t i = find_in(in, a);
  if (i >= list(a).size()) in.fail(ErrorKind::kValue, "the list does not hold {}", in.repr(a[0]));
  list(a).erase(list(a).begin() + static_cast<ptrdiff_t>(i));
  return Value::none();
}
Value index(Interp& in, NativeArgs& a) {
  const auto n = static_cast<int64_t>(sequence(a).size());
  const int64_t begin = place_within(in, a[1], n, 0, "index()'s start"),
                end = place_within(in, a[2], n, INT64_MAX, "index()'s end");
  const size_t i = find_in(in, a, static_cast<size_t>(begin), static_cast<size_t>(end));
  if (i == sequence(a).size())
    in.fail(ErrorKind::kValue, "the {} does not hold {}", in.type_name(*a.self), in.repr(a[0]));
  return Value::integer(static_cast<int64_t>(i));
}
Value count(Interp& in, NativeArgs& a) {
  const std::vector<Value>& items = sequence(a);
  int64_t n = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    in.check_interrupt();
    const Value v = items[i];  // a script's __eq__ may change the list
    n += v.same(a[0]) || in.equal(v, a[0]);
  }
  return Value::integer(n);
}
Value sort(Interp& in, NativeArgs& a) {
  std::vector<Value> items = in.copied(list(a));
  sort_values(in, items, a[0], !a[1].missing() && in.truth(a[1]));
  list(a) = std::move(items);
  return Value::none();
}
Value reverse(Interp&, NativeArgs& a) {
  std::reverse(list(a).begin(), list(a).end());
  return Value::none();
}
Value list_clear(Interp&, NativeArgs& a) {
  list(a).clear();
  return Value::none();
}
Value list_copy(Interp& in, NativeArgs& a) { return make<List>(in.copied(list(a))); }

constexpr NativeDef kListMethods[] = {
    {"append(value)", append, "adds a value at the end"},
    {"clear()", list_clear, "removes everything"},
    {"copy()", list_copy, "a copy of the list"},
    {"count(value)", count, "how often it holds a value"},
    {"extend(iterable)", extend, "adds all elements at the end"},
    {"index(value, start=0, end=)", index, "the position of a value"},
    {"insert(index, value)", insert, "adds a value before a position"},
    {"pop(index=-1)", list_pop, "removes and returns an element"},
    {"remove(value)", remove, "removes the first such value"},
    {"reverse()", reverse, "turns it around"},
    {"sort(*, key=None, reverse=False)", sort, "sorts it"},
};

constexpr NativeDef kTupleMethods[] = {
    {"count(value)", count, "how often it holds a value"},
    {"index(value, start=0, end=)", index, "the position of a value"},
};

// --- dict
// ---------------------------------------------------------------------------------------------------------------

Table& dict(NativeArgs& a) { return a.self->get<Dict>()->table; }

enum class Part { kKeys, kValues, kItems };
constexpr std::string_view kPartNames[] = {"dict_keys", "dict_values", "dict_items"};

template <Part part>
Value part_of(const Table::Entry& e) {
  if constexpr (part == Part::kKeys) return e.key;
  if constexpr (part == Part::kValues) return e.value;
  if constexpr (part == Part::kItems) return make<Tuple>(std::vector<Value>{e.key, e.value});
}

template <Part part>
class PartIterator : public IteratorObject {
 public:
  explicit PartIterator(Ref<Dict> d) : dict_(std::move(d)), size_(dict_->table.size()) {}
  bool next(Interp& in, Value& out) override {
    Table& table = dict_->table;
    if (table.size() != size_) in.fail_as("RuntimeError", "the dict changed its size while it was iterated");
    while (at_ < table.entries().size() && table.entries()[at_].key.missing()) ++at_;
    if (at_ >= table.entries().size()) return false;
    out = part_of<part>(table.entries()[at_++]);
    return true;
  }

 private:
  Ref<Dict> dict_;
  size_t size_, at_ = 0;
};

/// d.keys(), d.values() and d.items(): what the dict holds whenever they are asked. Keys and items are sets too.
template <Part part>
class DictView : public Object {
 public:
  static inline const KindOf<DictView> kKind{kPartNames[static_cast<size_t>(part)]};
  explicit DictView(Dict* d) : Object(kKind), dict_(d) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(dict_->table.size()); }
  Value iterate(Interp&) override { return make<PartIterator<part>>(dict_); }
  bool truth(Interp&) override { return dict_->table.size() != 0; }
  std::string repr(Interp& in) override {
    return fmt::format("{}({})", kPartNames[static_cast<size_t>(part)], in.repr(make<List>(in.to_vector(Value(this)))));
  }
  std::optional<bool> contains(Interp& in, const Value& item) override {
    if (part == Part::kKeys) return dict_->table.find(in, item) != nullptr;
    for (const Value& v : in.to_vector(Value(this)))
      if (v.same(item) || in.equal(v, item)) return true;
    return false;
  }
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override {
    const bool of_sets =
        op == ast::BinaryOp::kAnd || op == ast::BinaryOp::kOr || op == ast::BinaryOp::kSub || op == ast::BinaryOp::kXor;
    if (part == Part::kValues || !of_sets) return std::nullopt;
    const Value mine = as_set(in, Value(this)), theirs = as_set(in, other);
    return reflected ? in.binary(op, theirs, mine) : in.binary(op, mine, theirs);
  }
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override {
    const bool is_set = other.get<Set>() || other.get<DictView<Part::kKeys>>() || other.get<DictView<Part::kItems>>();
    if (part == Part::kValues || !is_set) return std::nullopt;
    return in.compare(op, as_set(in, Value(this)), as_set(in, other));
  }

 private:
  static Value as_set(Interp& in, const Value& v) {
    if (v.get<Set>()) return v;
    auto out = make<Set>();
    for (const Value& one : in.to_vector(v)) out->table.set(in, one, Value::none());
    return out;
  }
  const Ref<Dict> dict_;
};

Value keys(Interp&, NativeArgs& a) { return make<DictView<Part::kKeys>>(a.self->get<Dict>()); }
Value values(Interp&, NativeArgs& a) { return make<DictView<Part::kValues>>(a.self->get<Dict>()); }
Value items(Interp&, NativeArgs& a) { return make<DictView<Part::kItems>>(a.self->get<Dict>()); }
Value get(Interp& in, NativeArgs& a) {
  if (Value* v = dict(a).find(in, a[0])) return *v;
  return a[1].missing() ? Value::none() : a[1];
}
Value setdefault(Interp& in, NativeArgs& a) {
  if (Value* v = dict(a).find(in, a[0])) return *v;
  Value v = a[1].missing() ? Value::none() : a[1];
  a.self->get<Dict>()->set_item(in, a[0], v);
  return v;
}
Value dict_pop(Interp& in, NativeArgs& a) {
  if (Value* v = dict(a).find(in, a[0])) {
    Value out = *v;
    a.self->get<Dict>()->delete_item(in, a[0]);
    return out;
  }
  if (a[1].missing()) in.fail_key(a[0], "the dict has no key {}");
  return a[1];
}
Value update(Interp& in, NativeArgs& a) {
  Dict& into = *a.self->get<Dict>();
  auto merge = [&](const Value& v) {
    if (visit_mapping(in, v, [&](const Value& k, Value value) { into.set_item(in, k, std::move(value)); })) return;
    in.for_each(v, [&](const Value& pair) {
      std::vector<Value> two = in.to_vector(pair);
      if (two.size() != 2)
        in.fail(ErrorKind::kValue, "update() needs pairs of key and value, got {} elements", two.size());
      into.set_item(in, two[0], two[1]);
      return true;
    });
  };
  if (!a[0].missing()) merge(a[0]);
  merge(a[1]);
  return Value::none();
}
Value dict_copy(Interp& in, NativeArgs& a) {
  auto out = make<Dict>();
  for (const auto& e : dict(a).live()) out->table.set(in, e.key, e.value);
  return out;
}
Value popitem(Interp& in, NativeArgs& a) {
  const std::vector<Table::Entry> entries = dict(a).live();
  if (entries.empty()) in.fail_as("KeyError", "popitem(): dictionary is empty");
  dict(a).erase(in, entries.back().key);
  return make<Tuple>(std::vector<Value>{entries.back().key, entries.back().value});
}
Value fromkeys(Interp& in, NativeArgs& a) {
  auto out = make<Dict>();
  in.for_each(a[0], [&](Value key) {
    out->table.set(in, std::move(key), a[1].missing() ? Value::none() : a[1]);
    return true;
  });
  return out;
}
Value dict_clear(Interp&, NativeArgs& a) {
  dict(a).clear();
  return Value::none();
}

constexpr NativeDef kDictMethods[] = {
    {"clear()", dict_clear, "removes everything"},
    {"copy()", dict_copy, "a copy of the dict"},
    {"get(key, default=None)", get, "the value of a key, or the default"},
    {"items()", items, "its (key, value), as they are when it is asked"},
    {"keys()", keys, "its keys, as they are when it is asked"},
    {"pop(key, default=)", dict_pop, "removes a key and returns its value"},
    {"popitem()", popitem, "removes the last key and returns it with its value"},
    {"setdefault(key, default=None)", setdefault, "the value of a key, which is set if it was not there"},
    {"update(items=(), **named)", update, "sets all keys of another dict"},
    {"values()", values, "its values, as they are when it is asked"},
};

// --- set
// ----------------------------------------------------------------------------------------------------------------

Table& set(NativeArgs& a) { return any_set(*a.self)->table; }

Value set_add(Interp& in, NativeArgs& a) {
  set(a).set(in, a[0], Value::none());
  return Value::none();
}
Value discard(Interp& in, NativeArgs& a) {
  set(a).erase(in, a[0]);
  return Value::none();
}
Value set_remove(Interp& in, NativeArgs& a) {
  if (!set(a).erase(in, a[0])) in.fail_key(a[0], "the set does not hold {}");
  return Value::none();
}
Value as_set(Interp& in, const Value& v) {
  auto s = make<Set>();
  in.for_each(v, [&](Value item) {
    s->table.set(in, std::move(item), Value::none());
    return true;
  });
  return s;
}
/// A copy of the method's set, of its own kind.
Value copy_of(Interp& in, NativeArgs& a) { return a.self->get<FrozenSet>() ? *a.self : as_set(in, *a.self); }
Value with_each(Interp& in, NativeArgs& a, ast::BinaryOp op) {
  Value out = copy_of(in, a);
  for (const Value& other : a[0].get<Tuple>()->items) out = in.binary(op, out, as_set(in, other));
  return out;
}
Value symmetric_difference_update(Interp& in, NativeArgs& a) {
  const Value result = in.binary(ast::BinaryOp::kXor, as_set(in, *a.self), as_set(in, a[0]));
  set(a) = std::move(result.get<Set>()->table);
  return Value::none();
}
Value set_union(Interp& in, NativeArgs& a) { return with_each(in, a, ast::BinaryOp::kOr); }
Value set_intersection(Interp& in, NativeArgs& a) {
  Value out = copy_of(in, a);
  for (const Value& other : a[0].get<Tuple>()->items) {
    if (any_set(other)) {
      out = in.binary(ast::BinaryOp::kAnd, out, as_set(in, other));
      continue;
    }
    // Of what is no set its elements are taken, as in CPython: {0}.intersection([False]) is {False}.
    const Ref<Set> common = out.get<FrozenSet>() ? Ref<Set>(make<FrozenSet>()) : make<Set>();
    in.for_each(other, [&](Value v) {
      if (in.truth(in.compare(ast::CompareOp::kIn, v, out))) common->table.set(in, std::move(v), Value::none());
      return true;
    });
    out = Value(common);
  }
  return out;
}
Value set_difference(Interp& in, NativeArgs& a) { return with_each(in, a, ast::BinaryOp::kSub); }
Value symmetric_difference(Interp& in, NativeArgs& a) {
  return in.binary(ast::BinaryOp::kXor, copy_of(in, a), as_set(in, a[0]));
}
/// Of a method that changes the set: it becomes the other.
Value becomes(NativeArgs& a, const Value& other) {
  set(a) = std::move(other.get<Set>()->table);
  return Value::none();
}
Value intersection_update(Interp& in, NativeArgs& a) { return becomes(a, set_intersection(in, a)); }
Value difference_update(Interp& in, NativeArgs& a) { return becomes(a, set_difference(in, a)); }
Value issubset(Interp& in, NativeArgs& a) {
  return in.compare(ast::CompareOp::kLe, as_set(in, *a.self), as_set(in, a[0]));
}
Value issuperset(Interp& in, NativeArgs& a) {
  bool all = true;  // up to the first that is not there, of an iterator without end too
  in.for_each(a[0], [&](const Value& v) { return all = in.truth(in.compare(ast::CompareOp::kIn, v, *a.self)); });
  return Value::boolean(all);
}
Value isdisjoint(Interp& in, NativeArgs& a) {
  bool none = true;  // up to the first in common
  in.for_each(a[0], [&](const Value& v) { return none = !in.truth(in.compare(ast::CompareOp::kIn, v, *a.self)); });
  return Value::boolean(none);
}
Value set_pop(Interp& in, NativeArgs& a) {
  const std::vector<Table::Entry> entries = set(a).live();
  if (entries.empty()) in.fail_as("KeyError", "pop from an empty set");
  set(a).erase(in, entries.front().key);
  return entries.front().key;
}
Value set_update(Interp& in, NativeArgs& a) {
  for (const Value& other : a[0].get<Tuple>()->items)
    in.for_each(other, [&](Value v) {
      set(a).set(in, std::move(v), Value::none());
      return true;
    });
  return Value::none();
}
Value set_copy(Interp& in, NativeArgs& a) { return copy_of(in, a); }
Value set_clear(Interp&, NativeArgs& a) {
  set(a).clear();
  return Value::none();
}

constexpr NativeDef kFrozenSetMethods[] = {
    {"copy()", set_copy, "a copy of the set"},
    {"difference(*others)", set_difference, "what no other holds"},
    {"intersection(*others)", set_intersection, "what all hold"},
    {"isdisjoint(other)", isdisjoint, "do they hold nothing in common?"},
    {"issubset(other)", issubset, "does the other hold all of it?"},
    {"issuperset(other)", issuperset, "does it hold all of the other?"},
    {"symmetric_difference(other)", symmetric_difference, "what one of them holds, and not both"},
    {"union(*others)", set_union, "what one of them holds"},
};
/// Those of a set that can change besides.
constexpr NativeDef kSetMethods[] = {
    {"add(value)", set_add, "adds a value"},
    {"clear()", set_clear, "removes everything"},
    {"difference_update(*others)", difference_update, "removes what another holds"},
    {"discard(value)", discard, "removes a value if it is there"},
    {"intersection_update(*others)", intersection_update, "removes what not all hold"},
    {"pop()", set_pop, "removes and returns an element"},
    {"remove(value)", set_remove, "removes a value"},
    {"symmetric_difference_update(other)", symmetric_difference_update, "adds what it lacks, removes what both hold"},
    {"update(*others)", set_update, "adds all elements"},
};

// --- int and float
// ------------------------------------------------------------------------------------------------------

Value bit_length(Interp&, NativeArgs& a) {
  auto c = a.self->constant();
  ast::Int v = c->index() == 1 ? ast::Int{std::get<bool>(*c)} : std::get<ast::Int>(*c);
  auto u = v < 0 ? -static_cast<unsigned __int128>(v) : static_cast<unsigned __int128>(v);
  auto high = static_cast<uint64_t>(u >> 64), low = static_cast<uint64_t>(u);
  return Value::integer(high ? 64 + std::bit_width(high) : std::bit_width(low));
}
Value bit_count(Interp&, NativeArgs& a) {
  auto c = a.self->constant();
  ast::Int v = c->index() == 1 ? ast::Int{std::get<bool>(*c)} : std::get<ast::Int>(*c);
  auto u = v < 0 ? -static_cast<unsigned __int128>(v) : static_cast<unsigned __int128>(v);
  return Value::integer(std::popcount(static_cast<uint64_t>(u >> 64)) + std::popcount(static_cast<uint64_t>(u)));
}
Value is_integer(Interp&, NativeArgs& a) {
  return Value::boolean(std::isfinite(a.self->real()) && a.self->real() == std::floor(a.self->real()));
}

Value as_integer_ratio(Interp& in, NativeArgs& a) {
  const double v = a.self->real();
  if (std::isinf(v)) in.fail_as("OverflowError", "{} is no ratio of ints", ast::float_repr(v));
  if (std::isnan(v)) in.fail(ErrorKind::kValue, "nan is no ratio of ints");
  int exponent = 0;
  double mantissa = std::frexp(v, &exponent);
  const bool is_large = exponent > 127;
  for (; mantissa != std::floor(mantissa); --exponent) mantissa *= 2;
  if (is_large || exponent < -126)
    in.fail(ErrorKind::kValue, "the ratio of {} does not fit into Kiln's ints of 128 bits", ast::float_repr(v));
  const auto up = static_cast<ast::Int>(mantissa);
  return make<Tuple>(std::vector<Value>{Value::wide(exponent > 0 ? up * (ast::Int{1} << exponent) : up),
                                        Value::wide(ast::Int{1} << std::max(0, -exponent))});
}

Value int_ratio(Interp& in, NativeArgs& a) {
  return make<Tuple>(std::vector<Value>{in.unary(ast::UnaryOp::kPlus, *a.self), Value::integer(1)});
}
Value conjugate(Interp& in, NativeArgs& a) { return in.unary(ast::UnaryOp::kPlus, *a.self); }

constexpr NativeDef kIntMethods[] = {
    {"as_integer_ratio()", int_ratio, "(the int, 1)"},
    {"conjugate()", conjugate, "the int itself"},
    {"bit_length()", bit_length, "bits needed without the sign"},
    {"bit_count()", bit_count, "bits that are 1"},
};
constexpr NativeDef kFloatMethods[] = {
    {"as_integer_ratio()", as_integer_ratio, "(numerator, denominator)"},
    {"conjugate()", conjugate, "the float itself"},
    {"is_integer()", is_integer, "is it a whole number?"},
};

}  // namespace

bool visit_mapping(Interp& in, const Value& v, const std::function<void(const Value&, Value)>& visit) {
  auto* o = v.object();
  auto* d = v.get<Dict>();
  if (d && !(o->own_type() && (*o->own_type())->find("__iter__"))) {
    for (const auto& e : d->table.live()) visit(e.key, e.value);
    return true;
  }
  // Whatever has keys() is a mapping to Python.
  if (!o || v.get<TypeObject>() || v.get<ModuleObject>()) return false;
  const auto names = in.find_attribute(v, "keys");
  if (!names) return false;
  in.for_each(in.call(*names, {}), [&](const Value& key) {
    visit(key, in.item(v, key));
    return true;
  });
  return true;
}

void install_container_methods(Interp& in) {
  static constexpr NativeDef kFromKeys = {"fromkeys(iterable, value=None)", fromkeys,
                                          "a dict with that value for each key"};
  in.type_of(Kind::kDict)->members.set("fromkeys", make<Native>(kFromKeys));
  in.add_methods({Kind::kList, kListMethods});
  in.add_methods({Kind::kTuple, kTupleMethods});
  in.add_methods({Kind::kDict, kDictMethods});
  in.add_methods({Kind::kSet, kFrozenSetMethods});
  in.add_methods({Kind::kSet, kSetMethods});
  in.add_methods({FrozenSet::kKind, kFrozenSetMethods});
  in.add_methods({Kind::kInt, kIntMethods});
  in.add_methods({Kind::kBool, kIntMethods});
  in.add_methods({Kind::kFloat, kFloatMethods});
}

}  // namespace kiln::script
