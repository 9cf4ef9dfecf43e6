// Classes as values: what scripts read, set and call of them.
#include <fmt/format.h>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

using ast::BinaryOp;

namespace {

/// A method that its first call uses up its arguments for, and its second needs again.
void copy_arguments(const CallArgs& from, CallArgs& to) {
  for (const Value& v : from.args) to.args.push_back(v);
  for (const KeywordArg& k : from.keywords) to.keywords.push_back(k);
  to.site = from.site;
}

}  // namespace

Value* TypeObject::find(std::string_view attribute) {
  if (Value* v = members.find(attribute)) return v;
  for (TypeObject* t : order)
    if (Value* v = t->members.find(attribute)) return v;
  return nullptr;
}

bool TypeObject::derives_from(const TypeObject* base) const {
  if (this == base) return true;
  for (const TypeObject* t : order)
    if (t == base) return true;
  return false;
}

std::string TypeObject::full_name() {
  Value* module = members.find("__module__");
  auto* text = module ? module->get<Str>() : nullptr;
  return (text && text->text != "builtins" ? text->text + "." : "") + (qualified_name.empty() ? name : qualified_name);
}

std::optional<Value> TypeObject::attribute(Interp& in, std::string_view attribute) {
  if (Value* v = find(attribute)) return bound(in, Value(*v), nullptr, Ref<TypeObject>(this));
  if (attribute == "__qualname__" && !qualified_name.empty()) return Value::str(qualified_name);
  if (attribute == "__name__" || attribute == "__qualname__") return Value::str(name.substr(name.rfind('.') + 1));
  if (attribute == "__module__") return Value::str("builtins");
  if (attribute == "__doc__") return Value::none();
  if (attribute == "__dict__") {
    auto dict = make<Dict>();
    dict->table = members;
    return Value(dict);
  }
  const Ref<TypeObject>& object = in.type_of(Kind::kInstance);
  if (attribute == "__bases__" || attribute == "__mro__") {
    std::vector<Value> types;
    if (attribute == "__mro__") {
      types.emplace_back(this);
      for (TypeObject* t : order) types.emplace_back(t);
    } else {
      for (const auto& b : bases) types.emplace_back(b);
    }
    if (this != object.get() && (types.empty() || attribute == "__mro__")) types.emplace_back(object);
    return Value(make<Tuple>(std::move(types)));
  }
  if (attribute == "__annotations__") return Value(make<Dict>());
  if (attribute == "__base__")
    return this == object.get() ? Value::none() : Value(bases.empty() ? object : bases.front());
  if (attribute == "__subclasses__") {
    auto o = make<Opaque>("__subclasses__");
    o->on_call = [me = Ref<TypeObject>(this)](Interp&, CallArgs&) -> Value {
      std::vector<Value> types;
      for (const auto& weak : me->derived)
        if (const auto type = weak.lock(); type && *type) types.emplace_back(*type);
      return make<List>(std::move(types));
    };
    return Value(o);
  }
  if (attribute == "mro") {
    auto o = make<Opaque>("mro");
    o->on_call = [me = Ref<TypeObject>(this)](Interp& interp, CallArgs&) -> Value {
      return make<List>(interp.to_vector(*me->attribute(interp, "__mro__")));
    };
    return Value(o);
  }
  for (auto kind : {of_kind, base_kind})
    if (kind) {
      if (Native* m = in.method(*kind, attribute)) return Value(m);
      if (auto v = special_of_type(in, *kind, attribute)) return v;
    }
  if (is_exception(in, this))
    if (auto method = exception_method(in, attribute)) return method;
  if (Value* v = object->members.find(attribute)) return *v;
  return std::nullopt;
}

void TypeObject::set_attribute(Interp& in, std::string_view attribute, Value value) {
  if (of_kind || constructor.object())
    in.fail_as("AttributeError", "the attributes of the built-in type '{}' cannot be set", name);
  if (Value* hook = find("__class_setattr__"))
    in.call(bound(in, Value(*hook), nullptr, Ref<TypeObject>(this)), {Value::str(std::string(attribute)), value});
  members.set(attribute, std::move(value));
}

void TypeObject::attribute_names(std::vector<std::string>& out) const {
  for (const auto& e : members.live())
    if (auto* s = e.key.get<Str>()) out.push_back(s->text);
  for (const auto& b : bases) b->attribute_names(out);
}

Value TypeObject::call(Interp& in, CallArgs& args) {
  if (!constructor.missing()) return in.call(constructor, args);
  if (of_kind) in.fail(ErrorKind::kType, "cannot create '{}' instances", name);
  const Ref<TypeObject> me(this);
  if (Value* hook = find("__class_call__")) return in.call(bound(in, Value(*hook), nullptr, me), args);
  if (!abstract.empty())
    in.fail(ErrorKind::kType, "Can't instantiate abstract class {} with abstract method{} {}", name,
            abstract.size() == 1 ? "" : "s", fmt::join(abstract, ", "));
  // Held by value: the call may rebind `__init__` and free the function that runs.
  Value* found = find("__init__");
  const Value init = found ? *found : Value();
  Value instance;
  if (Value* maker = find("__new__")) {
    CallArgs given;
    copy_arguments(args, given);
    given.args.insert_front(Value(me));
    instance = in.call(bound(in, Value(*maker), nullptr, me), given);
    // As Python: __init__ runs only on what __new__ made of this class.
    if (!instance.object() || !instance.object()->own_type() || !(*instance.object()->own_type())->derives_from(this))
      return instance;
  } else if (init.missing()) {
    if (!base_kind && !is_exception(in, this) && (!args.args.empty() || !args.keywords.empty()))
      in.fail(ErrorKind::kType, "{}() takes no arguments: the class has no __init__", name);
    return new_instance(in, me, args);
  } else if (base_kind) {
    CallArgs given;
    copy_arguments(args, given);
    instance = new_instance(in, me, given);
  } else {
    instance = new_instance(in, me, args);
  }
  if (init.missing()) return instance;
  args.args.insert_front(instance);
  const Value result = in.call(init, args);
  if (!result.is_none()) in.fail(ErrorKind::kType, "__init__() of '{}' must return None", name);
  return instance;
}

namespace {
/// A method that a class has of itself, as Python's classes have from a metaclass.
std::optional<Value> class_special(Interp& in, TypeObject* type, std::string_view name,
                                   std::initializer_list<Value> args) {
  Value* found = type->find(name);
  if (!found) return std::nullopt;
  CallArgs call;
  if (found->get<Function>()) call.args.push_back(Value(type));
  for (const Value& v : args) call.args.push_back(v);
  return in.call(bound(in, Value(*found), nullptr, Ref<TypeObject>(type)), call);
}
}  // namespace

Value TypeObject::item(Interp& in, const Value& index) {
  if (auto v = class_special(in, this, "__class_getitem__", {index})) return *v;
  if (of_kind) return Value(this);  // list[int] is only an annotation
  in.fail(ErrorKind::kType, "the class '{}' has no elements to index", name);
}

Value TypeObject::iterate(Interp& in) {
  auto v = class_special(in, this, "__class_iter__", {});
  return v ? Value(in.iterator(*v)) : Value();
}

std::optional<int64_t> TypeObject::length(Interp& in) {
  auto v = class_special(in, this, "__class_len__", {});
  return v ? std::optional(in.to_int(*v, "the number of members")) : std::nullopt;
}

std::optional<bool> TypeObject::contains(Interp& in, const Value& item) {
  auto v = class_special(in, this, "__class_contains__", {item});
  return v ? std::optional(in.truth(*v)) : std::nullopt;
}

// `int | None` is a tuple of types, which isinstance() takes.
std::optional<Value> TypeObject::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  if (op != BinaryOp::kOr) return std::nullopt;
  std::vector<Value> types;
  auto add = [&](const Value& v) {
    if (auto* t = v.get<Tuple>())
      types.insert(types.end(), t->items.begin(), t->items.end());
    else
      types.push_back(v.is_none() ? Value(in.type_of(Kind::kNone)) : v);
  };
  const Value me(this);
  add(reflected ? other : me);
  add(reflected ? me : other);
  return Value(make<Tuple>(std::move(types), "typing.Union"));
}

std::string TypeObject::repr(Interp& in) {
  if (auto v = class_special(in, this, "__class_repr__", {})) return in.to_text(*v, "the value of __class_repr__");
  return fmt::format("<class '{}'>", full_name());
}

}  // namespace kiln::script
