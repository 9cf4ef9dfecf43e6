#include "repl/modules/triton/language.h"

#include <fmt/format.h>

#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/kernel_globals.h"

#include "compiler/frontend/builtins.h"
#include "repl/modules/modules.h"
#include "repl/script/builtins/builtins.h"
#include "support/text.h"

namespace kiln::script {

Value KernelMember::call(Interp& in, CallArgs&) {
  in.fail(with_note(error(ErrorKind::kType, "{} can only be called inside a kernel", path),
                    "help: put it into a function under @triton.jit"));
}

namespace {

/// The function of the kernel language that a path names; null for what is none.
const frontend::Builtin* builtin_of(std::string_view path) {
  const auto value = frontend::resolve_path(path);
  return value ? value->builtin() : nullptr;
}

}  // namespace

std::vector<KernelMember::Parameter> KernelMember::parameters() const {
  std::vector<Parameter> out;
  const frontend::Builtin* b = builtin_of(path);
  if (b && b->in_library()) {
    for (const ast::Param& p : frontend::library_function(*b)->def->params)
      out.push_back({p.name, p.default_value ? std::string(p.default_value->range.str()) : "", false});
  } else if (b) {
    // As the row writes them: no default there has a comma in it.
    for (std::string_view rest = b->params; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      std::string_view item = trimmed(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const bool takes_rest = item.starts_with('*');
      if (takes_rest) item.remove_prefix(1);
      const size_t equals = std::min(item.find('='), item.size());
      out.push_back({std::string(item.substr(0, equals)), std::string(item.substr(std::min(equals + 1, item.size()))),
                     takes_rest});
    }
  }
  return out;
}

std::vector<std::string> KernelMember::words_of(std::string_view parameter) const {
  if (parameter == "propagate_nan") return {"tl.PropagateNan.ALL", "tl.PropagateNan.NONE"};
  struct Row {
    std::string_view parameter;
    std::span<const ir::Word> words;
  };
  static constexpr Row kRows[] = {{"cache_modifier", ir::kWords<ir::Cache>},
                                  {"eviction_policy", ir::kWords<ir::Eviction>},
                                  {"fp_downcast_rounding", ir::kWords<ir::Rounding>},
                                  {"input_precision", ir::kWords<ir::Precision>},
                                  {"padding_option", ir::kWords<ir::Padding>},
                                  {"scope", ir::kWords<ir::Scope>},
                                  {"sem", ir::kWords<ir::Sem>}};
  std::vector<std::string> out;
  for (const Row& row : kRows)
    if (row.parameter == parameter)
      for (const ir::Word& word : row.words)
        if (word.stands_on(path.substr(path.rfind('.') + 1))) out.push_back(fmt::format("'{}'", word.text));
  if (parameter == "input_precision") out.insert(out.end(), {"'bf16x3'", "'bf16x6'"});  // parts, by dot itself
  return out;
}

std::string_view KernelMember::help() const {
  static constexpr std::pair<std::string_view, std::string_view> kRows[] = {
#define KILN_BUILTIN_HELP(NAME, HELP) {#NAME, HELP},
#include "repl/modules/triton/builtin_help.def"
  };
  const frontend::Builtin* b = builtin_of(path);
  for (const auto& [name, help] : kRows)
    if (b && name == b->name) return help;
  return {};
}

std::string KernelMember::signature() const {
  const frontend::Builtin* b = builtin_of(path);
  if (!b) return path;
  std::string text;
  for (const Parameter& p : parameters())
    text += (text.empty() ? "" : ", ") + std::string(p.takes_rest ? "*" : "") + p.name +
            (p.initial.empty() ? "" : "=" + p.initial);
  return fmt::format("{}({})", b->display_name(), text);
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

/// Kernels make objects of the class (kernel_globals.cc).
Value aggregate(Interp& in, NativeArgs& a) {
  auto* type = a[0].get<TypeObject>();
  if (!type || !type->def)
    in.fail(ErrorKind::kType, "_aggregate decorates a class, got a value of type {}", in.type_name(a[0]));
  make_aggregate(in, *type);
  return a[0];
}
constexpr NativeDef kAggregateFunction{"_aggregate(cls)", aggregate, "a class whose objects kernels make"};

/// Whose kernels Proton's marks are for; they record nothing.
Value leave_semantic(Interp&, NativeArgs&) { return Value::none(); }
constexpr NativeDef kMarks[] = {{"enable_semantic(semantic_name)", leave_semantic, "does nothing"},
                                {"disable_semantic(semantic_name)", leave_semantic, "does nothing"}};

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
  const bool marks = path == "triton.profiler.language";
  if ((!path.starts_with("triton.language") && !marks) || !frontend::is_known_module(path)) return {};
  auto module = make<LanguageModule>(std::string(path));
  if (marks) add_functions(*module, kMarks);
  if (path == "triton.language" || path == "triton.language.core") {
    module->members.set("constexpr", make<Native>(kConstexpr));
    if (path.ends_with(".core")) {
      module->members.set("CONSTEXPR_0", Value::integer(0));
      module->members.set("_aggregate", make<Native>(kAggregateFunction));
    }
    for (int i = 0; i < kNumDTypes; ++i) module->members.set(kDTypes[i].triton, Value::dtype(static_cast<DType>(i)));
  }
  return module;
}

}  // namespace kiln::script
