#include "repl/modules/triton/language.h"

#include "repl/modules/triton/kernel.h"

#include "compiler/frontend/builtins.h"
#include "repl/modules/modules.h"

namespace kiln::script {

Value KernelMember::call(Interp& in, CallArgs&) {
  in.fail(with_note(error(ErrorKind::kType, "{} can only be called inside a kernel", path),
                    "help: put it into a function under @triton.jit"));
}

std::string KernelMember::signature() const {
  const size_t dot = path.rfind('.');
  for (const frontend::Builtin& b : frontend::builtins())
    if (b.name == path.substr(dot + 1) && b.fn) return fmt::format("{}({})", b.display_name(), b.params);
  return path;
}

namespace {
Value unwrapped(const Value& v) {
  auto* c = v.get<ConstexprObject>();
  return c ? c->value : v;
}
}  // namespace

std::optional<Value> ConstexprObject::attribute(Interp& in, std::string_view name) {
  if (name == "value") return value;
  if (name == "__index__" || name == "__float__" || name == "__int__") {
    auto o = make<Opaque>(std::string(name));
    o->on_call = [v = value](Interp&, CallArgs&) { return v; };
    return Value(o);
  }
  return in.find_attribute(value, name);
}

std::optional<Value> ConstexprObject::binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) {
  return reflected ? in.binary(op, unwrapped(other), value) : in.binary(op, value, unwrapped(other));
}

std::optional<Value> ConstexprObject::compare(Interp& in, ast::CompareOp op, const Value& other) {
  return in.compare(op, value, unwrapped(other));
}

namespace {

Value make_constexpr(Interp& in, NativeArgs& a) {
  if (a[0].get<ConstexprObject>()) return a[0];
  if (auto* f = a[0].get<Function>(); f && f->def) return constexpr_function_of(in, a[0]);  // as a decorator
  return make<ConstexprObject>(a[0]);
}
constexpr NativeDef kConstexpr{"constexpr(value)", make_constexpr, "a constant that kernels may see"};

/// Members come from the compiler's own table of builtins; dtypes and constexpr are values here too.
class LanguageModule : public ModuleObject {
 public:
  using ModuleObject::ModuleObject;
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    if (auto v = ModuleObject::attribute(in, name)) return v;
    std::string member = path + "." + std::string(name);
    if (frontend::is_known_module(member)) return Value(in.import_module(member));
    std::vector<std::string> names = frontend::member_names(path);
    if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
    return Value(make<KernelMember>(member));
  }
  void attribute_names(std::vector<std::string>& out) const override {
    ModuleObject::attribute_names(out);
    for (std::string& n : frontend::member_names(path)) out.push_back(std::move(n));
  }
};

}  // namespace

Ref<ModuleObject> language_module(std::string_view path) {
  if (path.rfind("triton.language", 0) != 0 || !frontend::is_known_module(path)) return {};
  auto module = make<LanguageModule>(std::string(path));
  if (path == "triton.language" || path == "triton.language.core") {
    module->members.set("constexpr", make<Native>(kConstexpr));
    if (path.ends_with(".core")) module->members.set("CONSTEXPR_0", Value::integer(0));
    for (int i = 0; i < kNumDTypes; ++i) module->members.set(kDTypes[i].triton, Value::dtype(static_cast<DType>(i)));
  }
  return module;
}

}  // namespace kiln::script
