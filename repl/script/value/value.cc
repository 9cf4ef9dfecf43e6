#include "repl/script/value/value.h"

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;
using ast::UnaryOp;

namespace {
constexpr std::string_view kKindNames[] = {
#define KILN_SCRIPT_TYPE(e, name) name,
#include "repl/script/value/types.def"
#undef KILN_SCRIPT_TYPE
};
}  // namespace

namespace {
/// Grows before main() only.
std::vector<std::string_view>& kind_names() {
  static std::vector<std::string_view> names(std::begin(kKindNames), std::end(kKindNames));
  return names;
}
}  // namespace

Kind register_kind(std::string_view name) {
  kind_names().push_back(name);
  return static_cast<Kind>(kind_names().size() - 1);
}
size_t count_kinds() { return kind_names().size(); }
std::string_view kind_name(Kind k) { return kind_names()[static_cast<size_t>(k)]; }

Value Value::str(std::string s) { return make<Str>(std::move(s)); }

Value Value::wide(ast::Int i) {
  if (i >= INT64_MIN && i <= INT64_MAX) return integer(static_cast<int64_t>(i));
  return make<WideInt>(i);
}

Value Value::of(const ast::Constant& c) {
  switch (c.index()) {
    case 0:
      return none();
    case 1:
      return boolean(std::get<bool>(c));
    case 2:
      return wide(std::get<ast::Int>(c));
    case 3:
      return real(std::get<double>(c));
  }
  return str(std::get<std::string>(c));
}

std::optional<ast::Constant> Value::constant() const {
  if (missing()) return std::nullopt;
  switch (kind()) {
    case Kind::kNone:
      return ast::None{};
    case Kind::kBool:
      return boolean();
    case Kind::kInt:
      return is_small_int() ? ast::Int{integer()} : get<WideInt>()->value;
    case Kind::kFloat:
      return real();
    case Kind::kStr:
      return get<Str>()->text;
    default:
      return std::nullopt;
  }
}

void Object::destroy() {
  // A long linked list would recurse once per link and overflow the stack. Below this depth objects wait in `later`,
  // which the outermost destroy() empties in a loop.
  constexpr int kMaxDepth = 200;
  thread_local int depth = 0;
  thread_local std::vector<Object*> later;
  if (depth >= kMaxDepth) {
    later.push_back(this);
    return;
  }
  ++depth;
  delete this;
  while (depth == 1 && !later.empty()) {
    Object* o = later.back();
    later.pop_back();
    delete o;
  }
  --depth;
}

// --- what an object does when its type says nothing
// -------------------------------------------------------------------

std::optional<Value> Object::attribute(Interp&, std::string_view) { return std::nullopt; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): overriders keep it
void Object::set_attribute(Interp& in, std::string_view name, Value) {
  in.fail_as("AttributeError", "the attribute '{}' of '{}' cannot be set", name, in.type_name(Value(this)));
}

void Object::attribute_names(std::vector<std::string>&) const {}

Value Object::call(Interp& in, CallArgs&) {
  in.fail(ErrorKind::kType, "'{}' cannot be called", in.type_name(Value(this)));
}

std::optional<Value> Object::call_at(Interp&, const Value&, CallArgs&) { return std::nullopt; }

Value Object::item(Interp& in, const Value&) {
  in.fail(ErrorKind::kType, "'{}' has no elements to index", in.type_name(Value(this)));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): overriders keep it
void Object::set_item(Interp& in, const Value&, Value) {
  in.fail(ErrorKind::kType, "the elements of '{}' cannot be assigned", in.type_name(Value(this)));
}

void Object::delete_item(Interp& in, const Value&) {
  in.fail(ErrorKind::kType, "the elements of '{}' cannot be deleted", in.type_name(Value(this)));
}

std::optional<int64_t> Object::length(Interp&) { return std::nullopt; }

Value Object::iterate(Interp&) { return {}; }

std::string Object::repr(Interp& in) { return fmt::format("<{} object>", in.type_name(Value(this))); }

bool Object::truth(Interp&) { return true; }

std::optional<Value> Object::binary(Interp&, BinaryOp, const Value&, bool) { return std::nullopt; }
std::optional<Value> Object::unary(Interp&, UnaryOp) { return std::nullopt; }
std::optional<Value> Object::compare(Interp&, CompareOp, const Value&) { return std::nullopt; }
std::optional<bool> Object::contains(Interp&, const Value&) { return std::nullopt; }
std::optional<std::string> Object::format(Interp&, std::string_view) { return std::nullopt; }
std::optional<Value> Object::in_place(Interp&, BinaryOp, const Value&) { return std::nullopt; }
std::optional<uint64_t> Object::hash(Interp&) { return std::nullopt; }

// --- classes and instances
// --------------------------------------------------------------------------------------------

Value* TypeObject::find(std::string_view attribute) {
  if (Value* v = members.find(attribute)) return v;
  for (const auto& b : bases)
    if (Value* v = b->find(attribute)) return v;
  return nullptr;
}

bool TypeObject::derives_from(const TypeObject* base) const {
  if (this == base) return true;
  for (const auto& b : bases)
    if (b->derives_from(base)) return true;
  return false;
}

std::optional<Value> TypeObject::attribute(Interp& in, std::string_view attribute) {
  if (Value* v = find(attribute)) {
    auto* bound = v->get<ClassMethod>();
    if (!bound) return *v;
    auto o = make<Opaque>(name + "." + std::string(attribute));
    o->on_call = [method = Ref<ClassMethod>(bound), type = Value(this)](Interp& interp, CallArgs& args) {
      return method->run(interp, type, args);
    };
    return Value(o);
  }
  if (attribute == "__name__") return Value::str(name.substr(name.rfind('.') + 1));
  if (of_kind)
    if (Native* m = in.method(*of_kind, attribute)) return Value(m);
  return std::nullopt;
}

void TypeObject::set_attribute(Interp& in, std::string_view attribute, Value value) {
  if (of_kind || constructor.object())
    in.fail_as("AttributeError", "the attributes of the built-in type '{}' cannot be set", name);
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
  auto instance = make<Instance>(Ref<TypeObject>(this));
  if (Value* init = find("__init__")) {
    // Held by value: the call may rebind `__init__` and free the function that runs.
    Value function = *init;
    args.args.insert_front(instance);
    Value result = in.call(function, args);
    if (!result.is_none()) in.fail(ErrorKind::kType, "__init__() of '{}' must return None", name);
    return instance;
  }
  if (derives_from(in.exception_type("BaseException").get())) {
    if (!args.keywords.empty()) in.fail(ErrorKind::kType, "{}() takes no keyword arguments", name);
    std::vector<Value> items;
    for (Value& v : args.args) items.push_back(std::move(v));
    instance->fields.set("args", make<Tuple>(std::move(items)));
    return instance;
  }
  if (!args.args.empty() || !args.keywords.empty())
    in.fail(ErrorKind::kType, "{}() takes no arguments: the class has no __init__", name);
  return instance;
}

std::string TypeObject::repr(Interp&) {
  return fmt::format("<class '{}{}'>", of_kind || error ? "" : "__main__.", name);
}

std::optional<Value> Instance::attribute(Interp& in, std::string_view name) {
  if (Value* v = fields.find(name)) return *v;
  if (Value* v = type->find(name)) {
    if (v->get<Function>()) return Value(make<BoundMethod>(Value(this), *v));
    return *v;
  }
  if (name == "__class__") return Value(type);
  if (name == "code" && type->derives_from(in.exception_type("SystemExit").get())) {
    Value* args = fields.find("args");
    auto* given = args ? args->get<Tuple>() : nullptr;
    if (!given || given->items.empty()) return Value::none();
    return given->items.size() == 1 ? given->items[0] : *args;
  }
  return std::nullopt;
}

void Instance::set_attribute(Interp&, std::string_view name, Value value) { fields.set(name, std::move(value)); }

void Instance::attribute_names(std::vector<std::string>& out) const {
  for (const auto& e : fields.live())
    if (auto* s = e.key.get<Str>()) out.push_back(s->text);
  type->attribute_names(out);
}

namespace {

/// Calls a special method of an instance's class; nullopt when the class has none.
std::optional<Value> special(Interp& in, Instance* self, std::string_view name, std::initializer_list<Value> args) {
  Value* found = self->type->find(name);
  if (!found) return std::nullopt;
  Value function = *found;
  CallArgs call;
  call.args.push_back(Value(self));
  for (const Value& v : args) call.args.push_back(v);
  return in.call(function, call);
}

constexpr std::string_view kBinaryMethods[] = {"add",    "sub", "mul", "truediv", "floordiv", "mod",   "pow",
                                               "matmul", "and", "or",  "xor",     "lshift",   "rshift"};
constexpr std::string_view kCompareMethods[] = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};

}  // namespace

Value Instance::call(Interp& in, CallArgs& args) {
  Value* found = type->find("__call__");
  if (!found) in.fail(ErrorKind::kType, "'{}' cannot be called: its class has no __call__", type->name);
  Value function = *found;
  args.args.insert_front(Value(this));
  return in.call(function, args);
}

Value Instance::item(Interp& in, const Value& index) {
  if (auto v = special(in, this, "__getitem__", {index})) return *v;
  return Object::item(in, index);
}

void Instance::set_item(Interp& in, const Value& index, Value value) {
  if (!special(in, this, "__setitem__", {index, value})) Object::set_item(in, index, value);
}

std::optional<int64_t> Instance::length(Interp& in) {
  auto v = special(in, this, "__len__", {});
  if (!v) return std::nullopt;
  return in.to_int(*v, "the result of __len__()");
}

namespace {
/// Runs a script's own __next__ until it raises StopIteration.
class InstanceIterator : public IteratorObject {
 public:
  explicit InstanceIterator(Ref<Instance> i) : instance_(std::move(i)) {}
  bool next(Interp& in, Value& out) override {
    try {
      auto v = special(in, instance_.get(), "__next__", {});
      if (!v) in.fail(ErrorKind::kType, "'{}' is no iterator: its class has no __next__", instance_->type->name);
      out = std::move(*v);
      return true;
    } catch (ScriptError& e) {
      auto* raised = e.exception.get<Instance>();
      if (raised && raised->type->derives_from(in.exception_type("StopIteration").get())) return false;
      throw;
    }
  }

 private:
  Ref<Instance> instance_;
};
}  // namespace

Value Instance::iterate(Interp& in) {
  auto v = special(in, this, "__iter__", {});
  if (!v) return {};
  if (auto* i = v->get<Instance>()) return make<InstanceIterator>(Ref<Instance>(i));
  return in.iterator(*v);
}

std::string Instance::repr(Interp& in) {
  if (auto v = special(in, this, "__repr__", {})) return in.to_text(*v, "the result of __repr__()");
  if (type->derives_from(in.exception_type("BaseException").get())) {
    Value* args = fields.find("args");
    auto* tuple = args ? args->get<Tuple>() : nullptr;
    std::string out = type->name + "(";
    for (size_t i = 0; tuple && i < tuple->items.size(); ++i) out += (i ? ", " : "") + in.repr(tuple->items[i]);
    return out + ")";
  }
  return fmt::format("<{} object>", type->name);
}

std::string Instance::str(Interp& in) {
  if (auto v = special(in, this, "__str__", {})) return in.to_text(*v, "the result of __str__()");
  if (!type->find("__repr__") && type->derives_from(in.exception_type("BaseException").get())) {
    Value* args = fields.find("args");
    auto* tuple = args ? args->get<Tuple>() : nullptr;
    if (!tuple || tuple->items.empty()) return "";
    return tuple->items.size() == 1 ? in.str(tuple->items[0]) : in.repr(*args);
  }
  return repr(in);
}

bool Instance::truth(Interp& in) {
  if (auto v = special(in, this, "__bool__", {})) return in.truth(*v);
  auto n = length(in);
  return !n || *n != 0;
}

std::optional<Value> Instance::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  return special(in, this, fmt::format("__{}{}__", reflected ? "r" : "", kBinaryMethods[static_cast<size_t>(op)]),
                 {other});
}

std::optional<Value> Instance::in_place(Interp& in, BinaryOp op, const Value& other) {
  return special(in, this, fmt::format("__i{}__", kBinaryMethods[static_cast<size_t>(op)]), {other});
}

std::optional<Value> Instance::unary(Interp& in, UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate:
      return special(in, this, "__neg__", {});
    case UnaryOp::kPlus:
      return special(in, this, "__pos__", {});
    case UnaryOp::kInvert:
      return special(in, this, "__invert__", {});
    case UnaryOp::kNot:
      break;
  }
  return std::nullopt;
}

std::optional<Value> Instance::compare(Interp& in, CompareOp op, const Value& other) {
  if (op > CompareOp::kGe) return std::nullopt;
  if (auto v = special(in, this, kCompareMethods[static_cast<size_t>(op)], {other})) return v;
  // Python derives != from __eq__ where a class has no __ne__.
  if (op == CompareOp::kNe)
    if (auto v = special(in, this, "__eq__", {other})) return Value::boolean(!in.truth(*v));
  return std::nullopt;
}

std::optional<bool> Instance::contains(Interp& in, const Value& item) {
  auto v = special(in, this, "__contains__", {item});
  if (!v) return std::nullopt;
  return in.truth(*v);
}

Value BoundMethod::call(Interp& in, CallArgs& args) {
  if (auto* native = function.get<Native>()) return native->call_on(in, &self, args);
  args.args.insert_front(self);
  return in.call(function, args);
}

std::optional<Value> BoundMethod::attribute(Interp& in, std::string_view name) {
  if (name == "__self__") return self;
  return in.find_attribute(function, name);
}

std::string BoundMethod::repr(Interp& in) { return fmt::format("<bound method of {}>", in.type_name(self)); }

// --- modules
// ------------------------------------------------------------------------------------------------------------

std::optional<Value> ModuleObject::attribute(Interp&, std::string_view name) {
  if (Value* v = members.find(name)) return *v;
  if (name == "__name__") return Value::str(path);
  return std::nullopt;
}

void ModuleObject::set_attribute(Interp&, std::string_view name, Value value) { members.set(name, std::move(value)); }

void ModuleObject::attribute_names(std::vector<std::string>& out) const {
  for (const auto& e : members.live())
    if (auto* s = e.key.get<Str>()) out.push_back(s->text);
}

std::string ModuleObject::repr(Interp&) { return fmt::format("<module '{}'>", path); }

}  // namespace kiln::script
