#include "repl/commands/compile_imports.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "compiler/parse/parser.h"
#include "repl/shell/files.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

namespace fs = std::filesystem;

// pkg/utils.py or pkg/utils/__init__.py; empty when there is neither.
fs::path module_file(fs::path place, std::string_view dotted) {
  std::error_code ignored;
  for (; !dotted.empty(); dotted = dotted.substr(std::min(dotted.size(), dotted.find('.') + 1))) {
    place /= std::string(dotted.substr(0, dotted.find('.')));
    if (dotted.find('.') == std::string_view::npos) break;
  }
  fs::path file = place;
  file += ".py";
  if (fs::is_regular_file(file, ignored)) return file;
  file = place / "__init__.py";
  return fs::is_regular_file(file, ignored) ? file : fs::path();
}

fs::path find_module(std::string_view name, const fs::path& importing_file) {
  fs::path folder = importing_file.parent_path();
  if (name.starts_with(".")) {
    for (name.remove_prefix(1); name.starts_with("."); name.remove_prefix(1)) folder = folder.parent_path();
    return module_file(folder, name);
  }
  for (;; folder = folder.parent_path()) {
    if (fs::path file = module_file(folder, name); !file.empty() && file != importing_file) return file;
    if (folder == folder.parent_path()) return {};
  }
}

}  // namespace

frontend::LoadModule follow_imports() {
  using Parsed = std::map<std::string, std::shared_ptr<const ast::Module>>;
  return [parsed = std::make_shared<Parsed>()](const std::string& name, const std::string& importing_file) {
    std::error_code failed;
    const fs::path from = fs::absolute(importing_file, failed).lexically_normal();
    const std::string path = find_module(name, from).string();
    auto [it, fresh] = parsed->try_emplace(path);
    if (!fresh || path.empty()) return it->second;
    if (auto text = read_text(path); text.ok())
      if (auto module = parse::parse_kernel_file(SourceText::make(path, *std::move(text))); module.ok())
        it->second = *std::move(module);
    return it->second;
  };
}

}  // namespace kiln::repl
