// Special methods of the language's own types: what `[].__len__()`, `dict.__setitem__(d, k, v)` and
// hasattr(x, "__iter__") find. Operators and functions do not come through here.
#include <algorithm>
#include <cmath>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

namespace {
namespace specials {

/// Which values a row is for.
enum Of : unsigned {
  kNumbers = 1 << 0,  // int and bool
  kFloats = 1 << 1,
  kTexts = 1 << 2,
  kTuples = 1 << 3,
  kLists = 1 << 4,
  kDicts = 1 << 5,
  kSets = 1 << 6,
  kFrozenSets = 1 << 7,
  kRanges = 1 << 8,
  kIterators = 1 << 9,
  kFunctions = 1 << 10,
  kNones = 1 << 11,
  kArithmetic = kNumbers | kFloats,
  kSequences = kTexts | kTuples | kLists | kRanges,
  kSized = kSequences | kDicts | kSets | kFrozenSets,
  kAll = (1 << 12) - 1,
};

unsigned group_of(Kind k) {
  if (k == FrozenSet::kKind) return kFrozenSets;
  switch (k) {
    case Kind::kNone:
      return kNones;
    case Kind::kBool:
    case Kind::kInt:
      return kNumbers;
    case Kind::kFloat:
      return kFloats;
    case Kind::kStr:
      return kTexts;
    case Kind::kTuple:
      return kTuples;
    case Kind::kList:
      return kLists;
    case Kind::kDict:
      return kDicts;
    case Kind::kSet:
      return kSets;
    case Kind::kRange:
      return kRanges;
    case Kind::kIterator:
      return kIterators;
    case Kind::kFunction:
    case Kind::kNative:
    case Kind::kBoundMethod:
      return kFunctions;
    default:
      return 0;
  }
}

struct Call {
  Interp& in;
  const Value& self;
  CallArgs& args;
  std::string_view name;
  const Value& operator[](size_t i) const { return args.args[i]; }
};

/// As its type has it, without what a class of a script adds.
Value plain(Interp& in, const Value& v) {
  // Without a class there is nothing to take away.
  if (!v.object() || !v.object()->own_type()) return v;
  if (auto* i = v.get<WideInt>()) return Value::wide(i->value);
  if (auto* s = v.get<Str>()) return Value::str(s->text);
  if (auto* t = v.get<Tuple>()) return make<Tuple>(t->items);
  if (auto* l = v.get<List>()) return make<List>(l->items);
  const Kind k = v.kind();
  if (k == Kind::kInstance) return v;
  // By the constructor, which copies what there is.
  return in.call(in.type_of(k)->constructor, {v});
}

/// Of the type itself, although a class of a script may have its own. Missing: the type has none.
template <class Visit>
Value as_type(const Value& v, Visit&& visit) {
  if (auto* o = v.get<Str>()) return visit(o);
  if (auto* o = v.get<Tuple>()) return visit(o);
  if (auto* o = v.get<List>()) return visit(o);
  if (auto* o = v.get<Dict>()) return visit(o);
  if (auto* o = v.get<Set>()) return visit(o);
  if (auto* o = v.get<FrozenSet>()) return visit(o);
  if (auto* o = v.get<Range>()) return visit(o);
  return {};
}

Value init(Call& c) {
  const Value made = c.in.call(c.in.type_of(c.self.kind())->constructor, c.args);
  if (auto* l = c.self.get<List>()) l->items = made.get<List>()->items;
  if (auto* d = c.self.get<Dict>())
    // dict.__init__ adds, list.__init__ replaces, as in Python.
    for (const auto& e : made.get<Dict>()->table.live()) d->table.set(c.in, e.key, e.value);
  if (auto* s = c.self.get<Set>()) s->table = made.get<Set>()->table;
  return Value::none();
}
Value len(Call& c) {
  return as_type(c.self, [&]<class T>(T* o) { return Value::integer(o->T::length(c.in).value_or(0)); });
}
Value getitem(Call& c) {
  auto* d = c.self.get<Dict>();
  // A subclass's __missing__ counts also when dict.__getitem__ is called by its name.
  if (d && d->own_type() && (*d->own_type())->find("__missing__") && !d->table.find(c.in, c[0]))
    return *special(c.in, d, "__missing__", {c[0]});
  return as_type(c.self, [&]<class T>(T* o) { return o->T::item(c.in, c[0]); });
}
Value setitem(Call& c) {
  return as_type(c.self, [&]<class T>(T* o) {
    o->T::set_item(c.in, c[0], c[1]);
    return Value::none();
  });
}
Value delitem(Call& c) {
  return as_type(c.self, [&]<class T>(T* o) {
    o->T::delete_item(c.in, c[0]);
    return Value::none();
  });
}
Value iter(Call& c) {
  if (c.self.get<IteratorObject>()) return c.self;
  return as_type(c.self, [&]<class T>(T* o) { return o->T::iterate(c.in); });
}
Value contains(Call& c) { return c.in.compare(ast::CompareOp::kIn, c[0], plain(c.in, c.self)); }
Value reversed(Call& c) {
  std::vector<Value> items = c.in.to_vector(iter(c));
  std::reverse(items.begin(), items.end());
  return make<List>(std::move(items))->iterate(c.in);
}
Value repr(Call& c) {
  const Value shown = as_type(c.self, [&]<class T>(T* o) { return Value::str(o->T::repr(c.in)); });
  return shown.missing() ? Value::str(c.in.repr(plain(c.in, c.self))) : shown;
}
Value str(Call& c) {
  if (auto* s = c.self.get<Str>()) return Value::str(s->text);
  return repr(c);
}
Value format(Call& c) { return Value::str(c.in.format(plain(c.in, c.self), c.in.to_text(c[0], "the format"))); }
Value hash(Call& c) { return Value::integer(value_hash(c.in, plain(c.in, c.self))); }
Value call(Call& c) { return c.in.call(c.self, c.args); }

/// The operator of a method's name, perhaps with `r` or `i` before it.
std::optional<ast::BinaryOp> binary_op(std::string_view name) {
  const auto* at = std::ranges::find(kBinaryMethods, name);
  if (at == std::end(kBinaryMethods)) return std::nullopt;
  return static_cast<ast::BinaryOp>(at - std::begin(kBinaryMethods));
}
Value binary(Call& c) {
  std::string_view name = c.name.substr(2, c.name.size() - 4);
  // "__radd__" is no operator's name, without the r it is.
  bool reflected = false;
  auto op = binary_op(name);
  if (!op) {
    reflected = name[0] == 'r';
    op = binary_op(name.substr(1));
  }
  const Value self = plain(c.in, c.self), other = plain(c.in, c[0]);
  // An int leaves it to the float, and any number to what it does not know.
  const unsigned group = group_of(self.kind()), theirs = group_of(other.kind());
  const bool known = group == theirs || (group == kFloats && theirs == kNumbers);
  if ((group & kArithmetic) && !known) return c.in.not_implemented();
  return reflected ? c.in.binary(*op, other, self) : c.in.binary(*op, self, other);
}
Value in_place(Call& c) {
  const auto op = binary_op(c.name.substr(3, c.name.size() - 5));
  const Value changed = as_type(c.self, [&]<class T>(T* o) {
    auto v = o->T::in_place(c.in, *op, c[0]);
    return v ? *v : Value();
  });
  return changed.missing() ? c.in.not_implemented() : changed;
}
Value compare(Call& c) {
  const auto* at = std::ranges::find(kCompareMethods, c.name);
  const Value self = plain(c.in, c.self), other = plain(c.in, c[0]);
  const unsigned group = group_of(self.kind());
  const unsigned theirs = group_of(other.kind());
  const bool both_sets = (group & (kSets | kFrozenSets)) && (theirs & (kSets | kFrozenSets));
  const auto op = static_cast<ast::CompareOp>(at - std::begin(kCompareMethods));
  const bool equality = op == ast::CompareOp::kEq || op == ast::CompareOp::kNe;
  const bool ordered = group & (kArithmetic | kTexts | kTuples | kLists | kSets | kFrozenSets);
  const bool known = group == theirs || (group == kFloats && theirs == kNumbers) || both_sets;
  if (!known || (!equality && !ordered)) return c.in.not_implemented();
  return c.in.compare(op, self, other);
}
Value unary(Call& c) {
  const Value self = plain(c.in, c.self);
  if (c.name == "__neg__") return c.in.unary(ast::UnaryOp::kNegate, self);
  if (c.name == "__invert__") return c.in.unary(ast::UnaryOp::kInvert, self);
  const bool negative = c.name == "__abs__" && c.in.less(self, Value::integer(0));
  return c.in.unary(negative ? ast::UnaryOp::kNegate : ast::UnaryOp::kPlus, self);
}
Value truth(Call& c) { return Value::boolean(c.in.truth(plain(c.in, c.self))); }
Value to_int(Call& c) { return c.in.call(c.in.type_of(Kind::kInt)->constructor, {plain(c.in, c.self)}); }
Value to_float(Call& c) { return c.in.call(c.in.type_of(Kind::kFloat)->constructor, {plain(c.in, c.self)}); }
Value rounded(Call& c) {
  const Value self = plain(c.in, c.self);
  if (!self.is_float()) return c.in.unary(ast::UnaryOp::kPlus, self);
  const double v = self.real(), whole = c.name == "__floor__" ? std::floor(v) : std::ceil(v);
  return c.in.call(c.in.type_of(Kind::kInt)->constructor, {Value::real(whole)});
}

constexpr size_t kAny = ~size_t{0};  // of arguments

struct Row {
  std::string_view name;
  unsigned of;
  size_t arguments;
  Value (*run)(Call& c);
};
constexpr Row kRows[] = {
    {"__abs__", kArithmetic, 0, unary},
    {"__add__", kArithmetic | kTexts | kTuples | kLists, 1, binary},
    {"__and__", kNumbers | kSets | kFrozenSets, 1, binary},
    {"__bool__", kArithmetic | kNones, 0, truth},
    {"__call__", kFunctions, kAny, call},
    {"__ceil__", kArithmetic, 0, rounded},
    {"__contains__", kSized, 1, contains},
    {"__delitem__", kLists | kDicts, 1, delitem},
    {"__eq__", kAll, 1, compare},
    {"__float__", kArithmetic, 0, to_float},
    {"__floor__", kArithmetic, 0, rounded},
    {"__floordiv__", kArithmetic, 1, binary},
    {"__format__", kAll, 1, format},
    {"__ge__", kAll, 1, compare},
    {"__getitem__", kSequences | kDicts, 1, getitem},
    {"__gt__", kAll, 1, compare},
    {"__hash__", kAll, 0, hash},
    {"__iadd__", kLists, 1, in_place},
    {"__iand__", kSets, 1, in_place},
    {"__imul__", kLists, 1, in_place},
    {"__index__", kNumbers, 0, to_int},
    {"__init__", kLists | kDicts | kSets, kAny, init},
    {"__int__", kArithmetic, 0, to_int},
    {"__invert__", kNumbers, 0, unary},
    {"__ior__", kDicts | kSets, 1, in_place},
    {"__isub__", kSets, 1, in_place},
    {"__iter__", kSized | kIterators, 0, iter},
    {"__ixor__", kSets, 1, in_place},
    {"__le__", kAll, 1, compare},
    {"__len__", kSized, 0, len},
    {"__lshift__", kNumbers, 1, binary},
    {"__lt__", kAll, 1, compare},
    {"__mod__", kArithmetic | kTexts, 1, binary},
    {"__mul__", kArithmetic | kTexts | kTuples | kLists, 1, binary},
    {"__ne__", kAll, 1, compare},
    {"__neg__", kArithmetic, 0, unary},
    {"__or__", kNumbers | kDicts | kSets | kFrozenSets, 1, binary},
    {"__pos__", kArithmetic, 0, unary},
    {"__pow__", kArithmetic, 1, binary},
    {"__radd__", kArithmetic, 1, binary},
    {"__repr__", kAll, 0, repr},
    {"__reversed__", kLists | kDicts | kRanges, 0, reversed},
    {"__rfloordiv__", kArithmetic, 1, binary},
    {"__rmod__", kArithmetic, 1, binary},
    {"__rmul__", kArithmetic | kTexts | kTuples | kLists, 1, binary},
    {"__rpow__", kArithmetic, 1, binary},
    {"__rshift__", kNumbers, 1, binary},
    {"__rsub__", kArithmetic, 1, binary},
    {"__rtruediv__", kArithmetic, 1, binary},
    {"__setitem__", kLists | kDicts, 2, setitem},
    {"__str__", kAll, 0, str},
    {"__sub__", kArithmetic | kSets | kFrozenSets, 1, binary},
    {"__truediv__", kArithmetic, 1, binary},
    {"__trunc__", kArithmetic, 0, to_int},
    {"__xor__", kNumbers | kSets | kFrozenSets, 1, binary},
};

class SpecialMethod : public Opaque {
 public:
  static inline const KindOf<SpecialMethod> kKind{"builtin_function_or_method"};
  explicit SpecialMethod(std::string_view method) : Opaque("method " + std::string(method), kKind) {
    members.set("__name__", Value::str(std::string(method)));
  }
};

const Row* row_of(Kind kind, std::string_view name) {
  if (!name.starts_with("__")) return nullptr;
  // The rows are sorted by name.
  const auto* row = std::ranges::lower_bound(kRows, name, {}, &Row::name);
  return row != std::end(kRows) && row->name == name && (row->of & group_of(kind)) ? row : nullptr;
}

bool is_unhashable(Kind kind, const Row& row) {
  return row.run == hash && (group_of(kind) & (kLists | kDicts | kSets));
}

Value run(Interp& in, const Row& row, const Value& self, CallArgs& args) {
  if (row.arguments != kAny && (args.args.size() != row.arguments || !args.keywords.empty()))
    in.fail(ErrorKind::kType, "{}() takes {} argument{}, got {}", row.name, row.arguments,
            row.arguments == 1 ? "" : "s", args.args.size() + args.keywords.size());
  Call c{in, self, args, row.name};
  return row.run(c);
}

}  // namespace specials
}  // namespace

std::optional<Value> special_of_value(Interp&, const Value& self, std::string_view name) {
  const specials::Row* row = specials::row_of(self.kind(), name);
  if (!row) return std::nullopt;
  // list.__hash__ is None in Python: hasattr() finds it, and a call fails.
  if (specials::is_unhashable(self.kind(), *row)) return Value::none();
  auto o = make<specials::SpecialMethod>(name);
  o->on_call = [row, self](Interp& in, CallArgs& args) { return specials::run(in, *row, self, args); };
  return Value(o);
}

std::optional<Value> special_of_type(Interp&, Kind kind, std::string_view name) {
  const specials::Row* row = specials::row_of(kind, name);
  if (!row) return std::nullopt;
  if (specials::is_unhashable(kind, *row)) return Value::none();
  auto o = make<specials::SpecialMethod>(name);
  o->on_call = [row, kind](Interp& in, CallArgs& args) {
    if (args.args.empty())
      in.fail(ErrorKind::kType, "unbound method {}.{}() needs an argument", kind_name(kind), row->name);
    const Value self = args.args.take_front();
    // bool is an int.
    if (self.kind() != kind && !(self.is_bool() && kind == Kind::kInt))
      in.fail(ErrorKind::kType, "descriptor '{}' requires a '{}' object but received a '{}'", row->name,
              kind_name(kind), in.type_name(self));
    return specials::run(in, *row, self, args);
  };
  return Value(o);
}

}  // namespace kiln::script
