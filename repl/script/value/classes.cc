#include "repl/script/value/classes.h"

#include <fmt/format.h>

#include <cerrno>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

namespace {

Value* find_special(Object* self, std::string_view name) { return (*self->own_type())->find(name); }

}  // namespace

bool is_stop_iteration(Interp& in, const ScriptError& e) {
  auto* raised = e.exception.get<Instance>();
  return raised && raised->type->derives_from(in.exception_type("StopIteration").get());
}

bool is_exception(Interp& in, TypeObject* type) { return type->derives_from(in.exception_type("BaseException").get()); }

std::optional<Value> special(Interp& in, Object* self, std::string_view name, std::initializer_list<Value> args) {
  Value* found = find_special(self, name);
  // None stands for a method that a class takes away, as `__hash__ = None`.
  if (!found || found->is_none()) return std::nullopt;
  Value function = *found;
  const Value me(self);
  CallArgs call;
  if (function.get<Function>())
    call.args.push_back(me);
  else
    function = bound(in, function, &me, *self->own_type());
  for (const Value& v : args) call.args.push_back(v);
  Value result = in.call(function, call);
  // As Python: NotImplemented says that the other operand is to be asked.
  if (result.same(in.not_implemented())) return std::nullopt;
  return result;
}

// --- attributes of a class as its instances have them
// -----------------------------------------------------------------

std::optional<Value> ClassMethod::attribute(Interp& in, std::string_view name) {
  if (name == "__func__" || name == "__wrapped__") return function;
  return in.find_attribute(function, name);
}

std::optional<Value> StaticMethod::attribute(Interp& in, std::string_view name) {
  if (name == "__func__" || name == "__wrapped__") return function;
  return in.find_attribute(function, name);
}
Value StaticMethod::call(Interp& in, CallArgs& args) { return in.call(function, args); }

std::optional<Value> Property::attribute(Interp& in, std::string_view name) {
  if (name == "fget") return getter;
  if (name == "fset") return setter;
  if (name == "fdel") return deleter;
  if (name == "__doc__") return in.find_attribute(getter, name);
  const int which = name == "getter" ? 0 : name == "setter" ? 1 : name == "deleter" ? 2 : -1;
  if (which < 0) return std::nullopt;
  // A decorator that gives the property with one function more.
  auto o = make<Opaque>("property." + std::string(name));
  o->on_call = [self = Ref<Property>(this), which](Interp& interp, CallArgs& args) -> Value {
    if (args.args.size() != 1 || !args.keywords.empty())
      interp.fail(ErrorKind::kType, "a property's decorator takes one function");
    const Value& f = args.args[0];
    return make<Property>(which == 0 ? f : self->getter, which == 1 ? f : self->setter, which == 2 ? f : self->deleter);
  };
  return Value(o);
}

Value bound(Interp& in, const Value& found, const Value* self, const Ref<TypeObject>& type) {
  if (found.get<Function>()) return self ? Value(make<BoundMethod>(*self, found)) : found;
  if (auto* m = found.get<ClassMethod>()) return make<BoundMethod>(Value(type), m->function);
  if (auto* m = found.get<StaticMethod>()) return m->function;
  if (auto* p = found.get<Property>()) {
    if (!self) return found;
    if (p->getter.is_none()) in.fail_as("AttributeError", "a property of '{}' cannot be read", type->name);
    return in.call(Value(p->getter), {*self});
  }
  // Of the functions of Kiln only methods are bound: those of a type, and object's, whose first parameter is `self`.
  if (auto* n = found.get<Native>(); n && self && (n->receiver || n->def.signature.starts_with(n->name + "(self")))
    return make<BoundMethod>(*self, found);
  if (auto* i = found.get<Instance>(); i && i->type->find("__get__"))
    return *special(in, i, "__get__", {self ? *self : Value::none(), Value(type)});
  return found;
}

std::string exception_text(Interp& in, Instance& e, bool as_repr) {
  Value* args = e.fields.find("args");
  auto* tuple = args ? args->get<Tuple>() : nullptr;
  if (as_repr) {
    std::string out = e.type->name + "(";
    for (size_t i = 0; tuple && i < tuple->items.size(); ++i) out += (i ? ", " : "") + in.repr(tuple->items[i]);
    return out + ")";
  }
  if (!tuple || tuple->items.empty()) return "";
  const bool of_key = e.type->derives_from(in.exception_type("KeyError").get());
  // As Python writes an OSError of two or three arguments; any other number is shown as a tuple.
  if (tuple->items.size() > 1 && tuple->items.size() < 4 && e.type->derives_from(in.exception_type("OSError").get()))
    return fmt::format("[Errno {}] {}{}", in.str(tuple->items[0]), in.str(tuple->items[1]),
                       tuple->items.size() == 3 ? ": " + in.repr(tuple->items[2]) : "");
  // A missing key is shown with its quotes, since '' or ' ' would not be seen.
  if (tuple->items.size() == 1) return of_key ? in.repr(tuple->items[0]) : in.str(tuple->items[0]);
  return in.repr(*args);
}

namespace {

/// Which of an OSError's arguments an attribute is; -1: none.
int os_error_part(std::string_view name) {
  return name == "errno" ? 0 : name == "strerror" ? 1 : name == "filename" ? 2 : -1;
}

std::optional<Value> instance_attribute(Interp& in, Object* self, Dict& dict, std::string_view name) {
  // Fields come before the class. A property is not hidden by one: set_field() never makes a field of its name.
  if (Value* v = dict.table.find(name)) return *v;
  const Ref<TypeObject>& type = *self->own_type();
  const Value me(self);
  if (Value* v = type->find(name)) return bound(in, Value(*v), &me, type);
  if (name == "__class__") return Value(type);
  if (name == "__dict__") return Value(&dict);
  if (is_exception(in, type.get())) {
    Value* args = dict.table.find("args");
    auto* given = args ? args->get<Tuple>() : nullptr;
    const char* of = name == "code" ? "SystemExit" : name == "value" ? "StopIteration" : nullptr;
    if (of && type->derives_from(in.exception_type(of).get())) {
      if (!given || given->items.empty()) return Value::none();
      return given->items.size() == 1 ? given->items[0] : *args;
    }
    if (const int at = os_error_part(name); at >= 0 && type->derives_from(in.exception_type("OSError").get()))
      return given && given->items.size() > std::max<size_t>(1, static_cast<size_t>(at))
                 ? given->items[static_cast<size_t>(at)]
                 : Value::none();
    if ((name == "name" || name == "path") && type->derives_from(in.exception_type("ImportError").get()))
      return Value::none();
    if (name == "__suppress_context__") return Value::boolean(dict.table.find("__cause__"));
    if (name == "__cause__" || name == "__context__" || name == "__traceback__") return Value::none();
    if (name == "add_note") {
      auto o = make<Opaque>("add_note");
      o->on_call = [me](Interp& interp, CallArgs& given_args) -> Value {
        if (given_args.args.size() != 1 || !given_args.keywords.empty() || !given_args.args[0].get<Str>())
          interp.fail(ErrorKind::kType, "add_note() takes one text");
        Table& fields = me.get<Instance>()->fields;
        if (!fields.find("__notes__")) fields.set("__notes__", make<List>());
        fields.find("__notes__")->get<List>()->items.push_back(given_args.args[0]);
        return Value::none();
      };
      return Value(o);
    }
  }
  if (name.starts_with("__") && name.ends_with("__")) {
    if (name == "__doc__" || name == "__module__") return type->attribute(in, name);
    if (is_exception(in, type.get()))
      if (auto method = exception_method(in, name)) return bound(in, *method, &me, type);
    // What every object has, as `self.__repr__`.
    if (Value* v = in.type_of(Kind::kInstance)->members.find(name)) return bound(in, Value(*v), &me, type);
    return std::nullopt;
  }
  // The last of all, and never for __names__: Python looks those up in the class alone.
  return special(in, self, "__getattr__", {Value::str(std::string(name))});
}

void set_instance_attribute(Interp& in, Object* self, std::string_view name, Value value) {
  if (special(in, self, "__setattr__", {Value::str(std::string(name)), value})) return;
  set_field(in, self, name, std::move(value));
}

void instance_names(const Object& self, const Dict& dict, std::vector<std::string>& out) {
  for (const auto& e : dict.table.live())
    if (auto* s = e.key.get<Str>()) out.push_back(s->text);
  (*self.own_type())->attribute_names(out);
}

Value call_instance(Interp& in, Object* self, CallArgs& args) {
  const Ref<TypeObject>& type = *self->own_type();
  Value* found = type->find("__call__");
  if (!found) in.fail(ErrorKind::kType, "'{}' cannot be called: its class has no __call__", type->name);
  const Value me(self);
  return in.call(bound(in, Value(*found), &me, type), args);
}

/// Runs a script's own __next__ until it raises StopIteration.
class InstanceIterator : public IteratorObject {
 public:
  explicit InstanceIterator(Object* i) : instance_(i) {}
  bool next(Interp& in, Value& out) override {
    try {
      auto v = special(in, instance_.object(), "__next__", {});
      if (!v)
        in.fail(ErrorKind::kType, "'{}' is no iterator: its class has no __next__",
                (*instance_.object()->own_type())->name);
      out = std::move(*v);
      return true;
    } catch (ScriptError& e) {
      if (is_stop_iteration(in, e)) return false;
      throw;
    }
  }

 private:
  Value instance_;
};

std::optional<Value> special_iterator(Interp& in, Object* self) {
  auto v = special(in, self, "__iter__", {});
  if (!v) return std::nullopt;
  if (auto* i = v->object(); i && i->own_type() && i->kind() == Kind::kInstance) return make<InstanceIterator>(i);
  return in.iterator(*v);
}

/// By position until an IndexError, as Python iterates what has a __getitem__ alone.
class ItemIterator : public IteratorObject {
 public:
  explicit ItemIterator(Object* i) : instance_(i) {}
  bool next(Interp& in, Value& out) override {
    try {
      auto v = special(in, instance_.object(), "__getitem__", {Value::integer(at_++)});
      if (!v) return false;
      out = std::move(*v);
      return true;
    } catch (ScriptError& e) {
      auto* raised = e.exception.get<Instance>();
      if (raised && raised->type->derives_from(in.exception_type("IndexError").get())) return false;
      throw;
    }
  }

 private:
  Value instance_;
  int64_t at_ = 0;
};

std::optional<std::string> special_text(Interp& in, Object* self, std::string_view name) {
  auto v = special(in, self, name, {});
  if (!v) return std::nullopt;
  return in.to_text(*v, fmt::format("the result of {}()", name));
}

std::optional<std::string> format_instance(Interp& in, Object* self, std::string_view spec) {
  auto v = special(in, self, "__format__", {Value::str(std::string(spec))});
  if (!v) return std::nullopt;
  return in.to_text(*v, "the result of __format__()");
}

std::optional<uint64_t> hash_instance(Interp& in, Object* self) {
  Value* found = find_special(self, "__hash__");
  if (!found) return std::nullopt;
  // A class with __eq__ has None here, as Python gives it.
  if (found->is_none())
    in.fail(ErrorKind::kType, "a '{}' cannot be a key: its class has an __eq__ and no __hash__",
            (*self->own_type())->name);
  const std::optional<Value> h = special(in, self, "__hash__", {});
  return h ? in.hash(Value::integer(in.to_int(*h, "the result of __hash__()"))) : std::optional<uint64_t>();
}

std::optional<Value> binary_instance(Interp& in, Object* self, BinaryOp op, const Value& other, bool reflected) {
  return special(in, self, fmt::format("__{}{}__", reflected ? "r" : "", kBinaryMethods[static_cast<size_t>(op)]),
                 {other});
}

std::optional<Value> unary_instance(Interp& in, Object* self, UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate:
      return special(in, self, "__neg__", {});
    case UnaryOp::kPlus:
      return special(in, self, "__pos__", {});
    case UnaryOp::kInvert:
      return special(in, self, "__invert__", {});
    case UnaryOp::kNot:
      break;
  }
  return std::nullopt;
}

std::optional<Value> compare_instance(Interp& in, Object* self, CompareOp op, const Value& other) {
  if (op > CompareOp::kGe) return std::nullopt;
  if (auto v = special(in, self, kCompareMethods[static_cast<size_t>(op)], {other})) return v;
  // Python derives != from __eq__ where a class has no __ne__.
  if (op == CompareOp::kNe)
    if (auto v = special(in, self, "__eq__", {other})) return Value::boolean(!in.truth(*v));
  return std::nullopt;
}

/// What a __len__ gave, as a length.
int64_t checked_length(Interp& in, const Value& v) {
  const int64_t n = in.to_int(v, "the result of __len__()");
  if (n < 0) in.fail(ErrorKind::kValue, "__len__() should return >= 0, got {}", n);
  return n;
}

/// An instance of a class that derives from a type of the language: that value, with a class and fields.
template <class Base>
class Derived final : public Base {
 public:
  template <class... Args>
  explicit Derived(Ref<TypeObject> t, Args&&... args) : Base(std::forward<Args>(args)...), type(std::move(t)) {}
  const Ref<TypeObject>* own_type() const override { return &type; }
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    // The methods of the type come before a __getattr__ of the class.
    if (!dict->table.find(name) && !type->find(name)) {
      if (Native* m = in.method(Base::kKind, name)) return Value(make<BoundMethod>(Value(this), Value(m)));
      if (auto v = special_of_value(in, Value(this), name)) return v;
    }
    return instance_attribute(in, this, *dict, name);
  }
  void set_attribute(Interp& in, std::string_view name, Value v) override {
    set_instance_attribute(in, this, name, std::move(v));
  }
  void attribute_names(std::vector<std::string>& out) const override { instance_names(*this, *dict, out); }
  Value call(Interp& in, CallArgs& args) override { return call_instance(in, this, args); }
  Value item(Interp& in, const Value& index) override {
    if (auto v = special(in, this, "__getitem__", {index})) return *v;
    if constexpr (std::is_same_v<Base, Dict>)
      if (type->find("__missing__") && !this->table.find(in, index)) return *special(in, this, "__missing__", {index});
    return Base::item(in, index);
  }
  void set_item(Interp& in, const Value& index, Value v) override {
    if (!special(in, this, "__setitem__", {index, v})) Base::set_item(in, index, std::move(v));
  }
  void delete_item(Interp& in, const Value& index) override {
    if (!special(in, this, "__delitem__", {index})) Base::delete_item(in, index);
  }
  std::optional<int64_t> length(Interp& in) override {
    if (auto v = special(in, this, "__len__", {})) return checked_length(in, *v);
    return Base::length(in);
  }
  Value iterate(Interp& in) override {
    if (auto v = special_iterator(in, this)) return *v;
    Value found = Base::iterate(in);
    return found.missing() && type->find("__getitem__") ? Value(make<ItemIterator>(this)) : found;
  }
  std::string repr(Interp& in) override {
    if (auto shown = special_text(in, this, "__repr__")) return *shown;
    return Base::repr(in);
  }
  std::string str(Interp& in) override {
    if (auto shown = special_text(in, this, "__str__")) return *shown;
    if (auto shown = special_text(in, this, "__repr__"); shown && Base::kKind != Kind::kStr) return *shown;
    return Base::str(in);
  }
  std::optional<std::string> format(Interp& in, std::string_view spec) override {
    return format_instance(in, this, spec);
  }
  bool truth(Interp& in) override {
    if (auto v = special(in, this, "__bool__", {})) return in.truth(*v);
    // An int is true by its value, what has elements by their number.
    if (Base::kKind != Kind::kInt && type->find("__len__")) return length(in) != 0;
    return Base::truth(in);
  }
  std::optional<Value> binary(Interp& in, BinaryOp op, const Value& other, bool reflected) override {
    return binary_instance(in, this, op, other, reflected);
  }
  std::optional<Value> in_place(Interp& in, BinaryOp op, const Value& other) override {
    if (auto v = special(in, this, fmt::format("__i{}__", kBinaryMethods[static_cast<size_t>(op)]), {other})) return v;
    return Base::in_place(in, op, other);
  }
  std::optional<Value> unary(Interp& in, UnaryOp op) override { return unary_instance(in, this, op); }
  std::optional<Value> compare(Interp& in, CompareOp op, const Value& other) override {
    // The type has a != of its own, which an __eq__ does not change.
    if (op == CompareOp::kNe && !type->find("__ne__")) return std::nullopt;
    return compare_instance(in, this, op, other);
  }
  std::optional<bool> contains(Interp& in, const Value& item) override {
    if (auto v = special(in, this, "__contains__", {item})) return in.truth(*v);
    return Base::contains(in, item);
  }
  std::optional<uint64_t> hash(Interp& in) override { return hash_instance(in, this); }

  const Ref<TypeObject> type;
  const Ref<Dict> dict = make<Dict>();
};

template <class Visit>
auto with_fields(Object* self, Visit&& visit) -> decltype(visit(std::declval<Dict&>())) {
  if (self->kind() == FrozenSet::kKind) return visit(*static_cast<Derived<FrozenSet>*>(self)->dict);
  switch (self->kind()) {
    case Kind::kInstance:
      return visit(*static_cast<Instance*>(self)->dict);
    case Kind::kDict:
      return visit(*static_cast<Derived<Dict>*>(self)->dict);
    case Kind::kList:
      return visit(*static_cast<Derived<List>*>(self)->dict);
    case Kind::kTuple:
      return visit(*static_cast<Derived<Tuple>*>(self)->dict);
    case Kind::kStr:
      return visit(*static_cast<Derived<Str>*>(self)->dict);
    case Kind::kInt:
      return visit(*static_cast<Derived<WideInt>*>(self)->dict);
    case Kind::kSet:
      return visit(*static_cast<Derived<Set>*>(self)->dict);
    default:
      KILN_UNREACHABLE("an instance of a class that nothing derives from");
  }
}

Value derived_instance(Interp& in, const Ref<TypeObject>& type, CallArgs& args) {
  const Kind kind = *type->base_kind;
  // What can change is filled by __init__, when the class has one.
  const bool empty = type->find("__init__") && (kind == Kind::kDict || kind == Kind::kList || kind == Kind::kSet);
  CallArgs none;
  const Value v = in.call(in.type_of(kind)->constructor, empty ? none : args);
  if (kind == FrozenSet::kKind) {
    auto s = make<Derived<FrozenSet>>(type);
    for (const auto& e : any_set(v)->table.live()) s->table.set(in, e.key, e.value);
    return s;
  }
  switch (kind) {
    case Kind::kDict: {
      auto d = make<Derived<Dict>>(type);
      for (const auto& e : v.get<Dict>()->table.live()) d->table.set(in, e.key, e.value);
      return d;
    }
    case Kind::kSet: {
      auto s = make<Derived<Set>>(type);
      for (const auto& e : v.get<Set>()->table.live()) s->table.set(in, e.key, e.value);
      return s;
    }
    case Kind::kList:
      return make<Derived<List>>(type, v.get<List>()->items);
    case Kind::kTuple:
      return make<Derived<Tuple>>(type, v.get<Tuple>()->items);
    case Kind::kStr:
      return make<Derived<Str>>(type, v.get<Str>()->text);
    case Kind::kInt:
      return make<Derived<WideInt>>(type, v.is_small_int() ? ast::Int{v.integer()} : v.get<WideInt>()->value);
    default:
      KILN_UNREACHABLE("a base type that has no instances");
  }
}

}  // namespace

Dict* fields_of(const Value& v) {
  Object* o = v.missing() ? nullptr : v.object();
  if (!o || !o->own_type()) return nullptr;
  return with_fields(o, [](Dict& d) { return &d; });
}

namespace {

/// The class of an object becomes another, for objects that have nothing but fields.
void set_class(Interp& in, Object* self, const Value& value) {
  auto* to = value.get<TypeObject>();
  if (!to) in.fail(ErrorKind::kType, "__class__ must be set to a class, not '{}' object", in.type_name(value));
  auto* instance = Value(self).get<Instance>();
  auto is_plain = [&](TypeObject* t) {
    return t->def && !t->base_kind && !t->of_kind && !t->slots && !is_exception(in, t);
  };
  if (!instance || !is_plain(instance->type.get()) || !is_plain(to))
    in.fail(ErrorKind::kType, "__class__ assignment: '{}' object layout differs from '{}'", to->name,
            (*self->own_type())->name);
  instance->type = Ref<TypeObject>(to);
}

}  // namespace

void set_field(Interp& in, Object* self, std::string_view name, Value value) {
  if (name == "__class__") return set_class(in, self, value);
  // A data descriptor comes before the fields, as in Python.
  const Ref<TypeObject>& type = *self->own_type();
  if (Value* found = type->find(name)) {
    if (auto* p = found->get<Property>()) {
      if (p->setter.is_none())
        in.fail_as("AttributeError", "the property '{}' of '{}' has no setter", name, type->name);
      in.call(Value(p->setter), {Value(self), value});
      return;
    }
    if (auto* i = found->get<Instance>(); i && i->type->find("__set__")) {
      special(in, i, "__set__", {Value(self), value});
      return;
    }
  }
  if (name == "__dict__" && value.get<Dict>()) {
    with_fields(self, [&](Dict& d) { d.table = value.get<Dict>()->table; });
    return;
  }
  if (type->slots && std::find(type->slots->begin(), type->slots->end(), name) == type->slots->end())
    in.fail_as("AttributeError", "'{}' has no attribute '{}' that can be set: its __slots__ are {}", type->name, name,
               fmt::join(*type->slots, ", "));
  with_fields(self, [&](Dict& d) { d.table.set(name, std::move(value)); });
}

void delete_attribute(Interp& in, const Value& self, std::string_view name) {
  if (auto* type = self.get<TypeObject>(); type && !type->of_kind && type->members.erase(name)) return;
  Object* o = self.object();
  if (o && o->own_type()) {
    Value* found = find_special(o, name);
    if (auto* p = found ? found->get<Property>() : nullptr; p && !p->deleter.is_none()) {
      in.call(Value(p->deleter), {self});
      return;
    }
    if (Value* hook = find_special(o, "__delattr__"); hook && !hook->is_none()) {
      special(in, o, "__delattr__", {Value::str(std::string(name))});
      return;
    }
    if (fields_of(self)->table.erase(name)) return;
  }
  in.fail_as("AttributeError", "'{}' has no attribute '{}' to delete", in.type_name(self), name);
}

namespace {
/// OSError(errno, text) is of the subclass that stands for that number.
const char* os_error_name(int64_t number) {
  switch (number) {
    case ENOENT:
      return "FileNotFoundError";
    case EEXIST:
      return "FileExistsError";
    case EISDIR:
      return "IsADirectoryError";
    case ENOTDIR:
      return "NotADirectoryError";
    case EACCES:
    case EPERM:
      return "PermissionError";
    case ETIMEDOUT:
      return "TimeoutError";
    case EAGAIN:
    case EALREADY:
    case EINPROGRESS:
      return "BlockingIOError";
    case ECHILD:
      return "ChildProcessError";
    case EINTR:
      return "InterruptedError";
    case ESRCH:
      return "ProcessLookupError";
    case EPIPE:
    case ESHUTDOWN:
      return "BrokenPipeError";
    case ECONNABORTED:
      return "ConnectionAbortedError";
    case ECONNREFUSED:
      return "ConnectionRefusedError";
    case ECONNRESET:
      return "ConnectionResetError";
    default:
      return nullptr;
  }
}

Ref<TypeObject> class_of_instance(Interp& in, const Ref<TypeObject>& type, const CallArgs& args) {
  if (type.get() != in.exception_type("OSError").get() || args.args.size() < 2 || !args.args[0].is_small_int())
    return type;
  const char* name = os_error_name(args.args[0].integer());
  return name ? in.exception_type(name) : type;
}
}  // namespace

Value new_instance(Interp& in, const Ref<TypeObject>& type, CallArgs& args) {
  if (type->base_kind) return derived_instance(in, type, args);
  auto instance = make<Instance>(class_of_instance(in, type, args));
  if (is_exception(in, type.get())) {
    if (!args.keywords.empty() && !type->find("__init__"))
      in.fail(ErrorKind::kType, "{}() takes no keyword arguments", type->name);
    // As Python's BaseException.__new__, whatever an __init__ of the class's does.
    instance->fields.set("args", make<Tuple>(std::vector<Value>(args.args.begin(), args.args.end())));
  }
  return instance;
}

// --- instances
// --------------------------------------------------------------------------------------------------------

std::optional<Value> Instance::attribute(Interp& in, std::string_view name) {
  return instance_attribute(in, this, *dict, name);
}
void Instance::set_attribute(Interp& in, std::string_view name, Value value) {
  set_instance_attribute(in, this, name, std::move(value));
}
void Instance::attribute_names(std::vector<std::string>& out) const { instance_names(*this, *dict, out); }

Value Instance::call(Interp& in, CallArgs& args) { return call_instance(in, this, args); }

Value Instance::item(Interp& in, const Value& index) {
  if (auto v = special(in, this, "__getitem__", {index})) return *v;
  return Object::item(in, index);
}

void Instance::set_item(Interp& in, const Value& index, Value value) {
  if (!special(in, this, "__setitem__", {index, value})) Object::set_item(in, index, value);
}

void Instance::delete_item(Interp& in, const Value& index) {
  if (!special(in, this, "__delitem__", {index})) Object::delete_item(in, index);
}

std::optional<int64_t> Instance::length(Interp& in) {
  auto v = special(in, this, "__len__", {});
  if (!v) return std::nullopt;
  return checked_length(in, *v);
}

Value Instance::iterate(Interp& in) {
  if (auto v = special_iterator(in, this)) return *v;
  if (type->find("__getitem__")) return make<ItemIterator>(this);
  return {};
}

std::string Instance::repr(Interp& in) {
  if (auto text = special_text(in, this, "__repr__")) return *text;
  if (is_exception(in, type.get())) return exception_text(in, *this, true);
  return fmt::format("<{} object>", type->name);
}

std::string Instance::str(Interp& in) {
  if (auto text = special_text(in, this, "__str__")) return *text;
  if (is_exception(in, type.get())) return exception_text(in, *this, false);
  return repr(in);
}

std::optional<std::string> Instance::format(Interp& in, std::string_view spec) {
  return format_instance(in, this, spec);
}

std::optional<uint64_t> Instance::hash(Interp& in) { return hash_instance(in, this); }

bool Instance::truth(Interp& in) {
  if (auto v = special(in, this, "__bool__", {})) return in.truth(*v);
  auto n = length(in);
  return !n || *n != 0;
}

std::optional<Value> Instance::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  return binary_instance(in, this, op, other, reflected);
}

std::optional<Value> Instance::in_place(Interp& in, BinaryOp op, const Value& other) {
  return special(in, this, fmt::format("__i{}__", kBinaryMethods[static_cast<size_t>(op)]), {other});
}

std::optional<Value> Instance::unary(Interp& in, UnaryOp op) { return unary_instance(in, this, op); }

std::optional<Value> Instance::compare(Interp& in, CompareOp op, const Value& other) {
  return compare_instance(in, this, op, other);
}

std::optional<bool> Instance::contains(Interp& in, const Value& item) {
  auto v = special(in, this, "__contains__", {item});
  if (!v) return std::nullopt;
  return in.truth(*v);
}

}  // namespace kiln::script
