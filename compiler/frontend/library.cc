// The standard library: its texts are embedded, and parsed when first used.
#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "compiler/frontend/builtins.h"
#include "compiler/parse/parser.h"
#include "support/diag.h"

namespace kiln::embedded {
std::string_view stdlib_text(std::string_view path);
}

namespace kiln::frontend {

namespace {

constexpr std::string_view kPrefix = "<kiln>/";

using Functions = std::unordered_map<std::string, FunctionPtr>;

Functions parse_library(std::string_view file) {
  std::string path = fmt::format("stdlib/{}.py", file);
  std::string_view text = embedded::stdlib_text(path);
  KILN_ASSERT(text.data(), "{} is not embedded", path);
  auto module = parse::parse_module(SourceText::make(fmt::format("{}{}", kPrefix, path), std::string(text)));
  KILN_ASSERT(module.ok(), "{}", render(module.error()));
  auto functions = jit_functions(*module);
  KILN_ASSERT(functions.ok(), "{}", render(functions.error()));
  Functions out;
  for (const FunctionPtr& f : *functions) out.emplace(f->def->name, f);
  return out;
}

}  // namespace

FunctionPtr library_function(const Builtin& builtin) {
  // Immutable once parsed, and shared by every compilation of the process.
  static std::mutex mutex;
  static std::unordered_map<std::string_view, Functions> libraries;
  std::lock_guard lock(mutex);
  auto it = libraries.find(builtin.params);
  if (it == libraries.end()) it = libraries.emplace(builtin.params, parse_library(builtin.params)).first;
  auto f = it->second.find(std::string(builtin.name));
  KILN_ASSERT(f != it->second.end(), "{} is not in stdlib/{}.py", builtin.name, builtin.params);
  return f->second;
}

bool is_library(const JitFunction& function) {
  return function.module && function.module->source->file_name().starts_with(kPrefix);
}

}  // namespace kiln::frontend
