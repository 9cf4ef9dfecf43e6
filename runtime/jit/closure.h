// The dependencies of a jit function outside of its own text: the jit functions that it calls and the values of its
// globals.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/frontend.h"

namespace kiln::runtime {

/// A global that a function read when the closure was made.
struct Watch {
  std::shared_ptr<const frontend::JitFunction> function;
  std::string name;
  frontend::Global value;
  std::function<bool()> unchanged;  // JitFunction::watch
};

struct Closure {
  /// Source, file and line of each function reached, and the values of its globals: equal texts compile to equal code.
  std::string text;
  /// The same without files and lines: equal ones mean the same.
  std::string meaning;
  /// Constants and functions among the globals, which a script may rebind.
  std::vector<Watch> watches;
  /// The files of those functions; the first function's first.
  std::vector<std::shared_ptr<const SourceText>> sources;
};

Closure make_closure(const std::shared_ptr<const frontend::JitFunction>& function);
/// False once a watched name has another value.
bool is_current(const Closure& closure);

/// A text that tells values of different type or value apart.
std::string describe(const frontend::Global& value);

/// The names that a function reads and does not bind itself, sorted.
std::vector<std::string> free_names(const ast::FunctionDef& def);
/// The same, and the chains of attributes that begin with one ("tl.load").
std::vector<std::string> reads(const ast::FunctionDef& def);

}  // namespace kiln::runtime
