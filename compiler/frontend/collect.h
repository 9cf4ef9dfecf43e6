// The tables that collecting a file fills: what it and the files that it imports define.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "compiler/ast/ast.h"
#include "compiler/frontend/frontend.h"

namespace kiln::frontend {

struct Program;
struct FileNames;

/// A module-level name that is not constexpr, and the file whose names its value is made of.
struct Plain {
  const ast::Expr* value;
  FileNames* file;
};

/// What a file defines.
struct FileNames {
  std::deque<JitFunction> functions;
  std::map<std::string, Global, std::less<>> names;
  /// What tl.constexpr(…), defaults of parameters and constexpr functions read beside `names`; kernels do not.
  std::map<std::string, Plain, std::less<>> plain;
  /// Classes of constants, which plain values are made of.
  std::map<std::string, std::shared_ptr<const GlobalTuple>, std::less<>> classes;
  /// Names of which one assignment does not tell the value.
  std::set<std::string, std::less<>> changing;
  /// The frame in which values are computed: a constexpr function without a body.
  ast::FunctionDef frame{SourceRange{}};
  JitFunction context;
  /// Of a function that makes jit functions: its names hide the file's, which the tables have too.
  const ast::FunctionDef* around = nullptr;
  std::set<std::string, std::less<>> locals;
  std::deque<FileNames> inner;
};

/// A file and those that it imports. It owns their functions; each FunctionPtr that leaves shares ownership of all of
/// it, and the tables of names hold plain references, so that nothing keeps itself alive.
struct Program : std::enable_shared_from_this<Program> {
  LoadModule load;
  Interpret interpret;
  std::map<std::string, FileNames, std::less<>> files;  // by the path of the file, which is also its ModulePath

  std::optional<Global> lookup(const FileNames& file, std::string_view name) const {
    auto it = file.names.find(name);
    if (it == file.names.end()) return std::nullopt;
    if (const auto* f = std::get_if<FunctionPtr>(&it->second)) return Global(FunctionPtr(shared_from_this(), f->get()));
    return it->second;
  }
  /// The same with what kernels do not see: as Python's own code does.
  std::optional<Global> lookup_plain(const FileNames& file, std::string_view name) {
    auto it = file.plain.find(name);
    if (it == file.plain.end()) {
      if (std::optional<Global> found = lookup(file, name)) return found;
      auto c = file.classes.find(name);
      return c == file.classes.end() ? std::nullopt : std::optional<Global>(c->second);
    }
    if (it->second.file->changing.contains(name)) return std::nullopt;
    return value_of(*it->second.value, *it->second.file);
  }
  /// What an expression of a file is worth; nullopt: not without running the file.
  std::optional<Global> value_of(const ast::Expr& e, const FileNames& file) {
    constexpr int kDeepest = 16;  // names made of names, or of themselves
    if (computing >= kDeepest) return std::nullopt;
    ++computing;
    std::optional<Global> out = compute(FunctionPtr(shared_from_this(), &file.context), e);
    --computing;
    return out;
  }
  int computing = 0;

  const FileNames* find(std::string_view path) const {
    auto it = files.find(path);
    return it == files.end() ? nullptr : &it->second;
  }
  FileNames& add(const std::shared_ptr<const ast::Module>& module);
  /// The file behind an import, null when there is none.
  const FileNames* imported(const std::string& name, const std::string& importing_file, std::string* path) {
    // The table is what ends imports in a circle; a package that imports without end is not followed.
    constexpr size_t kMostFiles = 1000;
    if (!load || name.empty() || is_known_module(name) || files.size() >= kMostFiles) return nullptr;
    // Triton is the language, also where its own text stands beside the file.
    if (name == "triton" || name.starts_with("triton.")) return nullptr;
    std::shared_ptr<const ast::Module> module = load(name, importing_file);
    if (!module) return nullptr;
    *path = module->source->file_name();
    if (const FileNames* known = find(*path)) return known;
    return &add(module);
  }
};

}  // namespace kiln::frontend
