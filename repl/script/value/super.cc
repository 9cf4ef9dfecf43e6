// super(), what `object` has, and the types property, staticmethod and classmethod.
#include <fmt/format.h>

#include <algorithm>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"

namespace kiln::script {
// -----------------------------------------------------------------------------------------------

namespace {

class Super : public Object {
 public:
  static inline const KindOf<Super> kKind{"super"};
  Super(Ref<TypeObject> owner, Value self) : Object(kKind), owner_(std::move(owner)), self_(std::move(self)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;

 private:
  Ref<TypeObject> owner_;
  Value self_;
};

std::optional<Value> Super::attribute(Interp& in, std::string_view name) {
  // Of a class method the class itself is the first argument.
  auto* as_class = self_.get<TypeObject>();
  const bool of_class = as_class && as_class->derives_from(owner_.get());
  const Ref<TypeObject> type = of_class ? Ref<TypeObject>(as_class) : in.type_of(self_);
  const Value* self = of_class ? nullptr : &self_;
  // Looks from the class behind the owner on, in the order of the object's own class (C3).
  bool behind = type.get() == owner_.get();
  for (TypeObject* t : type->order) {
    if (behind)
      if (Value* v = t->members.find(name)) {
        // A class method is bound to the class; __new__ is static.
        if (of_class && v->get<Function>() && name != "__new__") return Value(make<BoundMethod>(self_, *v));
        return name == "__new__" ? *v : bound(in, Value(*v), self, type);
      }
    behind |= t == owner_.get();
  }
  // A class that derives from a type of the language (dict, str) goes on with that.
  if (type->base_kind && !of_class) {
    if (Native* m = in.method(*type->base_kind, name)) return Value(make<BoundMethod>(self_, Value(m)));
    if (auto v = special_of_value(in, self_, name)) return v;
  }
  auto* instance = self_.get<Instance>();
  // Exceptions are objects of the language, with methods that no class lists.
  if (instance && is_exception(in, instance->type.get()))
    if (auto method = exception_method(in, name)) return bound(in, *method, &self_, instance->type);
  Value* v = in.type_of(Kind::kInstance)->members.find(name);
  if (!v) return std::nullopt;
  if (name == "__new__") return *v;
  return Value(make<BoundMethod>(self_, *v));
}

Instance& exception_argument(Interp& in, const Value& v) {
  auto* i = v.get<Instance>();
  if (!i || !is_exception(in, i->type.get()))
    in.fail(ErrorKind::kType, "expected an exception, got '{}'", in.type_name(v));
  return *i;
}
Value exception_init(Interp& in, NativeArgs& a) {
  exception_argument(in, a[0]).fields.set("args", a[1]);
  return Value::none();
}
Value exception_str(Interp& in, NativeArgs& a) {
  return Value::str(exception_text(in, exception_argument(in, a[0]), false));
}
Value exception_repr(Interp& in, NativeArgs& a) {
  return Value::str(exception_text(in, exception_argument(in, a[0]), true));
}
constexpr NativeDef kException[] = {
    {"__init__(self, *args)", exception_init, "keeps the arguments"},
    {"__repr__(self)", exception_repr, "the class with its arguments"},
    {"__str__(self)", exception_str, "the arguments as text"},
};

Object& instance_argument(Interp& in, const Value& v) {
  if (!v.object() || !v.object()->own_type())
    in.fail(ErrorKind::kType, "expected an instance of a class that a script defines, got '{}'", in.type_name(v));
  return *v.object();
}

Value object_setattr(Interp& in, NativeArgs& a) {
  set_field(in, &instance_argument(in, a[0]), in.to_text(a[1], "the attribute's name"), a[2]);
  return Value::none();
}
Value object_delattr(Interp& in, NativeArgs& a) {
  instance_argument(in, a[0]);
  const std::string& name = in.to_text(a[1], "the attribute's name");
  if (!fields_of(a[0])->table.erase(name))
    in.fail_as("AttributeError", "'{}' has no attribute '{}' to delete", in.type_name(a[0]), name);
  return Value::none();
}
Value object_getattribute(Interp& in, NativeArgs& a) {
  const std::string& name = in.to_text(a[1], "the attribute's name");
  Object& self = instance_argument(in, a[0]);
  // Without __getattr__, which this is called from.
  if (Value* v = fields_of(a[0])->table.find(name)) return *v;
  if (Value* v = (*self.own_type())->find(name)) return bound(in, Value(*v), &a[0], *self.own_type());
  in.fail_as("AttributeError", "'{}' has no attribute '{}'", in.type_name(a[0]), name);
}
Value object_init(Interp&, NativeArgs&) { return Value::none(); }
Value object_new(Interp& in, NativeArgs& a) {
  auto* type = a[0].get<TypeObject>();
  if (!type || type->of_kind || !type->constructor.missing())
    in.fail(ErrorKind::kType, "__new__() needs a class that a script defines, got '{}'", in.repr(a[0]));
  CallArgs args;
  // The arguments are the built-in base's, as of dict or str; object() takes none.
  if (type->base_kind)
    for (const Value& v : a[1].get<Tuple>()->items) args.args.push_back(v);
  return new_instance(in, Ref<TypeObject>(type), args);
}
Value object_repr(Interp& in, NativeArgs& a) { return Value::str(fmt::format("<{} object>", in.type_name(a[0]))); }
Value object_eq(Interp&, NativeArgs& a) { return Value::boolean(a[0].same(a[1])); }
Value object_ne(Interp&, NativeArgs& a) { return Value::boolean(!a[0].same(a[1])); }
Value object_hash(Interp&, NativeArgs& a) {
  // Addresses are multiples of 16.
  return Value::integer(static_cast<int64_t>(reinterpret_cast<uintptr_t>(a[0].object()) >> 4));
}

constexpr NativeDef kObject[] = {
    {"__delattr__(self, name)", object_delattr, "deletes a field"},
    {"__eq__(self, other)", object_eq, "is it the same object?"},
    {"__getattribute__(self, name)", object_getattribute, "an attribute, without the class's __getattr__"},
    {"__hash__(self)", object_hash, "a number of the object"},
    {"__init__(self, *args, **kwargs)", object_init, "does nothing"},
    {"__init_subclass__(cls, **kwargs)", object_init, "does nothing"},
    {"__ne__(self, other)", object_ne, "is it another object?"},
    {"__new__(cls, *args, **kwargs)", object_new, "an instance of the class before its __init__"},
    {"__repr__(self)", object_repr, "the text of an object without one of its own"},
    {"__setattr__(self, name, value)", object_setattr, "sets a field, without the class's __setattr__"},
    {"__str__(self)", object_repr, "the text of an object without one of its own"},
};

Value make_property(Interp&, NativeArgs& a) {
  auto given = [&](size_t i) { return a[i].missing() ? Value::none() : a[i]; };
  return make<Property>(given(0), given(1), given(2));
}
Value static_method(Interp&, NativeArgs& a) { return make<StaticMethod>(a[0]); }
Value class_method(Interp&, NativeArgs& a) { return make<ClassMethod>(a[0]); }

constexpr NativeDef kProperty = {"property(fget=None, fset=None, fdel=None, doc=None)", make_property,
                                 "an attribute that a call computes"};
constexpr NativeDef kStaticMethod = {"staticmethod(function)", static_method,
                                     "a method that gets neither instance nor class"};
constexpr NativeDef kClassMethod = {"classmethod(function)", class_method, "a method that gets the class"};

}  // namespace

std::optional<Value> exception_method(Interp&, std::string_view name) {
  for (const NativeDef& d : kException)
    if (d.signature.starts_with(name) && d.signature[name.size()] == '(') return Value(make<Native>(d));
  return std::nullopt;
}

Value make_super(Ref<TypeObject> owner, Value self) { return make<Super>(std::move(owner), std::move(self)); }

void install_classes(Interp& in) {
  for (const NativeDef& d : kObject) {
    auto native = make<Native>(d);
    in.type_of(Kind::kInstance)->members.set(native->name, native);
  }
  const std::pair<Kind, const NativeDef*> types[] = {
      {Property::kKind, &kProperty}, {StaticMethod::kKind, &kStaticMethod}, {ClassMethod::kKind, &kClassMethod}};
  for (const auto& [kind, def] : types) {
    auto native = make<Native>(*def);
    in.type_of(kind)->constructor = native;
    in.add_builtin(native->name, in.type_of(kind));
  }
}

}  // namespace kiln::script
