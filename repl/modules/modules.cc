// The table of all modules.
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

Ref<ModuleObject> Interp::import_module(std::string_view path) {
  auto it = modules_.find(std::string(path));
  if (it != modules_.end()) return it->second;
  Ref<ModuleObject> module = language_module(path);
  const ModuleDef* def = nullptr;
  for (auto table :
       {std_modules(), tabulate_modules(), torch_modules(), torch_cuda_modules(), profiler_modules(), triton_modules()})
    for (const ModuleDef& d : table)
      if (d.path == path) def = &d;
  if (!module && !def) return {};
  if (!module) module = make<ModuleObject>(std::string(path));
  // Known before it is filled: what fills it imports its submodules, and those look for their parent.
  modules_.emplace(path, module);
  if (def) def->fill(*this, *module);
  // `import a.b` also makes b an attribute of a.
  if (size_t dot = path.rfind('.'); dot != std::string_view::npos)
    if (Ref<ModuleObject> parent = import_module(path.substr(0, dot)))
      parent->members.set(path.substr(dot + 1), module);
  return module;
}

}  // namespace kiln::script
