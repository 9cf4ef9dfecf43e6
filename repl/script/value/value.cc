#include "repl/script/value/value.h"

#include <fmt/format.h>

#include <algorithm>

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
bool Object::change_item(Interp&, const Value&, BinaryOp, const std::function<Value()>&) { return false; }
std::optional<uint64_t> Object::hash(Interp&) { return std::nullopt; }

Value BoundMethod::call(Interp& in, CallArgs& args) {
  if (auto* native = function.get<Native>(); native && native->receiver) return native->call_on(in, &self, args);
  args.args.insert_front(self);
  return in.call(function, args);
}

std::optional<Value> BoundMethod::attribute(Interp& in, std::string_view name) {
  if (name == "__self__") return self;
  if (name == "__func__") return function;
  return in.find_attribute(function, name);
}

std::string BoundMethod::repr(Interp& in) { return fmt::format("<bound method of {}>", in.type_name(self)); }

// --- modules
// ------------------------------------------------------------------------------------------------------------

std::optional<Value> ModuleObject::attribute(Interp& in, std::string_view name) {
  if (Value* v = members.find(name)) return *v;
  for (const Text& text : texts)
    if (std::find(text.names.begin(), text.names.end(), name) != text.names.end()) {
      std::optional<Value> v = in.import_module(text.path)->attribute(in, name);
      return v && text.prepare ? text.prepare(in, *v) : v;
    }
  if (name == "__name__") return Value::str(path);
  return std::nullopt;
}

void ModuleObject::set_attribute(Interp&, std::string_view name, Value value) { members.set(name, std::move(value)); }

void ModuleObject::attribute_names(std::vector<std::string>& out) const {
  for (const auto& e : members.live())
    if (auto* s = e.key.get<Str>()) out.push_back(s->text);
  for (const Text& text : texts) out.insert(out.end(), text.names.begin(), text.names.end());
}

std::string ModuleObject::repr(Interp&) { return fmt::format("<module '{}'>", path); }

}  // namespace kiln::script
