// Imports: modules of the host, and modules that are texts of the language.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/parse/parser.h"
#include "repl/script/interp/docstring.h"
#include "repl/script/interp/loaded_modules.h"
#include "repl/script/interp/missing_name.h"

namespace kiln::script {

using namespace ast;

namespace {

/// A module that is a text: its attributes are the text's global variables.
class ScriptModule : public ModuleObject {
 public:
  ScriptModule(std::string p, Globals& g) : ModuleObject(std::move(p)), globals(g) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    Globals::Slot* slot = globals.find(name);
    if (slot && !slot->value.missing()) return slot->value;
    // What Kiln sets of a program, as __name__ and __file__, stands among the built-in names.
    if (slot && path == "__main__" && name.starts_with("__") && !slot->builtin.missing()) return slot->builtin;
    if (slot = globals.find("__getattr__"); slot && !slot->value.missing() && !name.starts_with("__"))
      return in.call(Value(slot->value), {Value::str(std::string(name))});
    return std::nullopt;
  }
  void set_attribute(Interp&, std::string_view name, Value value) override {
    globals[globals.index(name)].value = std::move(value);
  }
  void attribute_names(std::vector<std::string>& out) const override {
    for (const auto& slot : globals.slots())
      if (!slot.value.missing()) out.push_back(slot.name);
    // What a __getattr__ makes when it is asked for.
    const Globals::Slot *later = globals.find("__getattr__"), *all = globals.find("__all__");
    const auto* names = later && !later->value.missing() && all ? all->value.get<List>() : nullptr;
    for (size_t i = 0; names && i < names->items.size(); ++i)
      if (const auto c = names->items[i].constant())
        if (const auto* name = std::get_if<std::string>(&*c))
          if (std::ranges::find(out, *name) == out.end()) out.push_back(*name);
  }

  Globals& globals;
  std::shared_ptr<const Program> program;
  std::vector<std::shared_ptr<const Program>> replaced;  // by reload(): values of them may still be there
  bool loading = true;
};

ScriptModule* loading(const Ref<ModuleObject>& m) {
  auto* script = dynamic_cast<ScriptModule*>(m.get());
  return script && script->loading ? script : nullptr;
}

/// The program is a module too; functions of libraries that look for tests in it ask for it by its name.
struct LoadedModules {
  explicit LoadedModules(Interp& in) : dict(make<Dict>()) {
    auto main = make<ScriptModule>("__main__", in.globals());
    main->loading = false;
    dict->table.set("__main__", Value(main));
  }
  Ref<Dict> dict;
};

}  // namespace

Ref<Dict> loaded_modules(Interp& in) { return in.state<LoadedModules>().dict; }

std::string help_of_missing(ModuleHelp help, std::string_view module, std::string_view name,
                            const std::vector<std::string>& names) {
  if (help)
    if (std::string known = help(fmt::format("{}.{}", module, name), false); !known.empty()) return known;
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : fmt::format("help: did you mean '{}'?", near);
}

bool Interp::is_library_module(std::string_view path) const {
  for (auto table : module_tables_)
    for (const ModuleDef& d : table)
      if (d.path == path) return true;
  return false;
}

Ref<ModuleObject> Interp::import_module(std::string_view path) {
  auto it = modules_.find(path);
  if (it != modules_.end()) return it->second;
  const Ref<Dict> loaded = loaded_modules(*this);
  // What a script has put there stands for the module.
  if (const Value* known = loaded->table.find(path))
    if (Ref<ModuleObject> module(known->get<ModuleObject>()); module) return module;
  Ref<ModuleObject> module = find_module_ ? find_module_(path) : Ref<ModuleObject>();
  const ModuleDef* def = nullptr;
  for (auto table : module_tables_)
    for (const ModuleDef& d : table)
      if (d.path == path) def = &d;
  if (!module && !def) return import_source(path);
  if (!module) module = make<ModuleObject>(std::string(path));
  // Known before it is filled: what fills it imports its submodules, and those look for their parent.
  modules_.emplace(path, module);
  loaded->table.set(path, Value(module));
  if (def) def->fill(*this, *module);
  // `import a.b` also makes b an attribute of a.
  if (size_t dot = path.rfind('.'); dot != std::string_view::npos)
    if (Ref<ModuleObject> parent = import_module(path.substr(0, dot)))
      parent->set_attribute(*this, path.substr(dot + 1), module);
  return module;
}

Ref<ModuleObject> Interp::import_source(std::string_view path) {
  if (!find_source_) return {};
  Ref<ModuleObject> parent;
  const size_t dot = path.rfind('.');
  if (dot != std::string_view::npos) {
    parent = import_module(path.substr(0, dot));
    if (!parent) return {};
    // A package's text may have imported it.
    if (auto it = modules_.find(path); it != modules_.end()) return it->second;
  }
  std::optional<ModuleSource> source = find_source_(*this, path);
  if (!source) return {};
  check_stack();
  Globals& globals = *module_globals_.emplace_back(std::make_unique<Globals>());
  globals.module = path;
  globals.package = source->is_package ? std::string(path) : std::string(path.substr(0, parent ? dot : 0));
  for (const auto& slot : globals_.slots())
    if (!slot.builtin.missing()) globals[globals.index(slot.name)].builtin = slot.builtin;
  auto set = [&](std::string_view name, std::string text) {
    globals[globals.index(name)].value = Value::str(std::move(text));
  };
  set("__name__", std::string(path));
  set("__package__", globals.package);
  set("__file__", source->file);
  auto module = take(parse::parse_module(SourceText::make(source->file, std::move(source->text))));
  auto made = make<ScriptModule>(std::string(path), globals);
  globals[globals.index("__doc__")].value = docstring_of(module->body);
  made->program = take(resolve(std::move(module), globals));
  // Known before it runs, as in Python: modules that import one another see what has run so far.
  modules_.emplace(path, made);
  loaded_modules(*this)->table.set(path, Value(made));
  try {
    run_module(*made->program);
  } catch (ScriptError&) {
    modules_.erase(std::string(path));
    loaded_modules(*this)->table.erase(path);
    throw;
  }
  made->loading = false;
  if (parent) parent->set_attribute(*this, path.substr(dot + 1), made);
  return made;
}

void Interp::run_module(const Program& program) {
  Entered entered(*this, {nullptr, where_, &program});
  Frame frame(program, *program.codes.at(nullptr));
  frame.make_cells();
  exec(program.module->body, frame);
}

Value Interp::reload_module(const Value& v) {
  Ref<ModuleObject> module(v.get<ModuleObject>());
  if (!module) fail(ErrorKind::kType, "reload() argument must be a module");
  const auto known = modules_.find(module->path);
  if (known == modules_.end() || known->second.get() != module.get())
    fail_as("ImportError", "module {} not in sys.modules", module->path);
  auto* script = dynamic_cast<ScriptModule*>(module.get());
  if (!script) return v;  // what is part of the program is as it was
  std::optional<ModuleSource> source = find_source_(*this, module->path);
  if (!source) fail_as("ModuleNotFoundError", "spec not found for the module '{}'", module->path);
  auto text = take(parse::parse_module(SourceText::make(source->file, std::move(source->text))));
  script->globals[script->globals.index("__doc__")].value = docstring_of(text->body);
  script->replaced.push_back(std::exchange(script->program, take(resolve(std::move(text), script->globals))));
  run_module(*script->program);
  return v;
}

std::string Interp::absolute_path(const Import& s, const Globals& from) {
  const size_t dots = s.from_module.find_first_not_of('.');
  const size_t level = dots == std::string::npos ? s.from_module.size() : dots;
  std::string name = s.from_module.substr(level);
  if (level == 0) return name;
  std::string base = from.package;
  for (size_t i = 1; i < level; ++i) {
    if (base.empty())
      fail_as_type("ImportError", fmt::format("'{}' leads out of the folder of the script", s.from_module),
                   "help: import the module by its name, and add its folder to sys.path");
    const size_t dot = base.rfind('.');
    base = dot == std::string::npos ? "" : base.substr(0, dot);
  }
  return base.empty() || name.empty() ? base + name : base + "." + name;
}

Value Interp::imported(const Ref<ModuleObject>& m, const Import::Alias& a) {
  where_ = a.range;
  if (auto v = find_attribute(m, a.name)) return *std::move(v);
  if (Ref<ModuleObject> sub = import_module(m->path + "." + a.name)) return sub;
  if (loading(m))
    fail_as_type("ImportError",
                 fmt::format("'{}' is not in the module '{}' yet, which is still being imported", a.name, m->path),
                 fmt::format("help: the modules import one another in a circle: import '{}' inside the function that "
                             "needs it",
                             a.name));
  std::vector<std::string> names;
  m->attribute_names(names);
  try {
    fail_as_type("ImportError", fmt::format("the module '{}' has no attribute '{}'", m->path, a.name),
                 help_of_missing(module_help_, m->path, a.name, names));
  } catch (ScriptError& e) {
    e.exception.get<Instance>()->fields.set("name", Value::str(m->path));
    throw;
  }
}

Ref<ModuleObject> Interp::required_module(const std::string& path) {
  const SourceRange range = where_;
  Ref<ModuleObject> m = import_module(path);
  where_ = range;
  if (m) return m;
  try {
    fail_as_type("ModuleNotFoundError", fmt::format("there is no module '{}'", path),
                 module_help_ ? module_help_(path, true) : "");
  } catch (ScriptError& e) {
    e.exception.get<Instance>()->fields.set("name", Value::str(path));
    throw;
  }
}

void Interp::exec_import(const Import& s, Frame& f) {
  auto find = [&](const std::string& path, SourceRange range) {
    where_ = range;
    return required_module(path);
  };
  if (s.from_module.empty()) {
    for (const Import::Alias& a : s.names) {
      Ref<ModuleObject> m = find(a.name, a.range);
      // `import a.b` binds `a`, `import a.b as c` binds the submodule.
      if (a.as.empty() && a.name.find('.') != std::string::npos) m = find(a.name.substr(0, a.name.find('.')), a.range);
      store(binding_key(a.name), m, f);
    }
    return;
  }
  where_ = s.range;
  const std::string path = absolute_path(s, *f.program.globals);
  if (path.empty()) {  // `from . import x` in a script: a module beside it
    for (const Import::Alias& a : s.names) store(binding_key(a.name), find(a.name, a.range), f);
    return;
  }
  Ref<ModuleObject> m = find(path, s.range);
  for (const Import::Alias& a : s.names) {
    if (a.name != "*") {
      store(binding_key(a.name), imported(m, a), f);
      continue;
    }
    std::vector<std::string> names;
    const auto all = find_attribute(m, "__all__");
    if (all)
      for (const Value& name : to_vector(*all)) names.push_back(to_text(name, "a name in __all__"));
    else
      m->attribute_names(names);
    Globals& globals = *f.program.globals;
    for (const std::string& name : names)
      // Python has the rule too: `import *` leaves names with an underscore alone.
      if (all || name[0] != '_') globals[globals.index(name)].value = attribute(m, name);
  }
}

}  // namespace kiln::script
