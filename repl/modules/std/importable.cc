// What imports could name, for completion.
#include <algorithm>
#include <filesystem>

#include "compiler/parse/parser.h"
#include "repl/modules/modules.h"

namespace kiln::embedded {
std::vector<std::string_view> library_text_paths();
}

namespace kiln::script {

namespace {

namespace fs = std::filesystem;

/// A module whose name begins with '_' is its package's own.
bool is_public(std::string_view path) {
  return path == "__future__" || !(path.starts_with('_') || path.find("._") != std::string_view::npos);
}

/// triton.language and the modules inside it, which the compiler knows.
void add_language_modules(const std::string& path, std::vector<std::string>& out) {
  const Ref<ModuleObject> module = language_module(path);
  if (!module) return;
  out.push_back(path);
  std::vector<std::string> names;
  module->attribute_names(names);
  for (const std::string& name : names) add_language_modules(path + "." + name, out);
}

std::vector<std::string> own_modules() {
  std::vector<std::string> out;
  for (auto table : module_tables())
    for (const ModuleDef& d : table) out.emplace_back(d.path);
  for (const char* path : {"triton.language", "triton.profiler.language"}) add_language_modules(path, out);
  for (std::string_view path : embedded::library_text_paths()) {
    const size_t folder = path.find("library/");
    if (folder == std::string_view::npos) continue;
    path.remove_prefix(folder + std::string_view("library/").size());
    path.remove_suffix(std::string_view(".py").size());
    if (path.ends_with(".__init__")) path.remove_suffix(std::string_view(".__init__").size());
    out.emplace_back(path);
  }
  return out;
}

/// Files and packages of a folder of sys.path, below the package that `typed` names.
void add_files(const std::string& folder, std::string_view package, std::vector<std::string>& out) {
  std::string relative(package);
  std::replace(relative.begin(), relative.end(), '.', '/');
  const fs::path in_folder = fs::path(folder.empty() ? "." : folder) / relative;
  std::error_code failed;
  for (fs::directory_iterator it(in_folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code none;
    const bool is_file = it->path().extension() == ".py" && it->is_regular_file(none);
    if (!is_file && !fs::is_regular_file(it->path() / "__init__.py", none)) continue;
    const std::string name = is_file ? it->path().stem().string() : it->path().filename().string();
    if (name.find_first_of(" .-") == std::string::npos) out.push_back(std::string(package) + name);
  }
}

/// The names that a text defines at its top, also below an `if` or `try`.
void add_definitions(const ast::Body& body, std::vector<std::string>& out) {
  auto add_target = [&](const ast::Expr& e) {
    if (const auto* name = ast::dyn_as<ast::Name>(&e)) out.push_back(name->id);
    if (const auto* tuple = ast::dyn_as<ast::Tuple>(&e))
      for (const ast::ExprPtr& item : tuple->items)
        if (const auto* name = ast::dyn_as<ast::Name>(item.get())) out.push_back(name->id);
  };
  for (const ast::StmtPtr& s : body) {
    if (const auto* n = ast::dyn_as<ast::FunctionDef>(s.get())) out.push_back(n->name);
    if (const auto* n = ast::dyn_as<ast::ClassDef>(s.get())) out.push_back(n->name);
    if (const auto* n = ast::dyn_as<ast::Assign>(s.get()))
      for (const ast::ExprPtr& target : n->targets) add_target(*target);
    if (const auto* n = ast::dyn_as<ast::AnnAssign>(s.get())) add_target(*n->target);
    if (const auto* n = ast::dyn_as<ast::Import>(s.get()))
      for (const ast::Import::Alias& a : n->names)
        if (a.name != "*") out.push_back(a.as.empty() ? a.name.substr(0, a.name.find('.')) : a.as);
    if (const auto* n = ast::dyn_as<ast::If>(s.get()))
      add_definitions(n->body, out), add_definitions(n->else_body, out);
    if (const auto* n = ast::dyn_as<ast::Try>(s.get())) {
      for (const ast::Body* part : {&n->body, &n->else_body, &n->finally_body}) add_definitions(*part, out);
      for (const ast::Try::Handler& h : n->handlers) add_definitions(h.body, out);
    }
    if (const auto* n = ast::dyn_as<ast::Match>(s.get()))
      for (const ast::Match::Case& c : n->cases) add_definitions(c.body, out);
  }
}

void sort_once(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

std::vector<std::string> importable(Interp& in, std::string_view typed) {
  std::vector<std::string> paths = own_modules();
  for (const Value& folder : search_path(in)->items)
    if (auto* text = folder.get<Str>()) add_files(text->text, typed.substr(0, typed.rfind('.') + 1), paths);
  std::vector<std::string> out;
  for (const std::string& path : paths)
    if (path.starts_with(typed) && (is_public(path) || typed.starts_with('_')))
      out.push_back(path.substr(0, path.find('.', typed.size())));
  sort_once(out);
  return out;
}

std::vector<std::string> importable_names(Interp& in, std::string_view path) {
  std::vector<std::string> names;
  const bool is_native = in.is_library_module(path) || language_module(path);
  auto source = is_native ? std::nullopt : find_source(in, path);
  if (is_native || (source && source->file.starts_with(kLibraryFolder))) {
    if (Ref<ModuleObject> module = in.import_module(path)) module->attribute_names(names);
  } else if (source) {
    if (auto module = parse::parse_module(SourceText::make(source->file, std::move(source->text))); module.ok())
      add_definitions((*module)->body, names);
  }
  const std::string below = std::string(path) + ".";
  for (const std::string& module : importable(in, below)) names.push_back(module.substr(below.size()));
  sort_once(names);
  return names;
}

}  // namespace kiln::script
