// Where each name of a text lives: resolved once, before it runs, so that running looks nothing up by its spelling.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ast/ast.h"
#include "repl/script/value/value.h"

namespace kiln::script {

/// For maps that are asked by texts which are no std::string.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Global variables of a session; indices stay valid while it lives.
class Globals {
 public:
  struct Slot {
    std::string name;
    Value value;    // missing: not set
    Value builtin;  // what the name means otherwise
  };
  uint32_t index(std::string_view name);
  Slot* find(std::string_view name);
  Slot& operator[](uint32_t i) { return slots_[i]; }
  std::vector<Slot>& slots() { return slots_; }

  std::string module = "__main__";
  std::string package;  // what a relative import of the text starts from

 private:
  std::vector<Slot> slots_;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> by_name_;
};

struct NameRef {
  enum class Where : uint8_t {
    kNone,
    kLocal,     // a slot of the frame
    kCell,      // a slot of the frame that holds a Cell
    kFree,      // a cell that the function brought along
    kGlobal,    // a slot of Globals
    kConstant,  // of Program::constants
  } where = Where::kNone;
  uint32_t index = 0;
};

/// A map from syntax nodes, filled once and then only read: open addressing on the node's address.
class NodeMap {
 public:
  void set(const void* node, NameRef ref);
  NameRef find(const void* node) const {
    if (slots_.empty()) return {};
    for (size_t i = hash(node);; ++i) {
      const Slot& s = slots_[i & (slots_.size() - 1)];
      if (s.node == node) return s.ref;
      if (!s.node) return {};
    }
  }

 private:
  struct Slot {
    const void* node = nullptr;
    NameRef ref;
  };
  static size_t hash(const void* p) { return (reinterpret_cast<uintptr_t>(p) * 0x9E3779B97F4A7C15u) >> 20; }
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

/// The variables of one function, lambda, class body or text.
struct Code {
  struct FreeVariable {
    std::string name;
    bool from_cell = false;  // of the frame around (else of that frame's own free variables)
    uint32_t index = 0;
  };
  std::string name;
  std::string qualified_name;           // Python's __qualname__: "C.f", "f.<locals>.g"
  std::vector<std::string> slot_names;  // parameters first, in order
  /// The slot of a parameter; the number of slots when there is none of that name.
  size_t parameter(std::string_view wanted) const;
  void index_parameters();
  std::unordered_map<std::string_view, size_t> parameters;  // of many parameters; else they are few to look through
  size_t parameter_count = 0;
  std::vector<uint32_t> cell_slots;  // slots that need a Cell
  std::vector<FreeVariable> free;
  bool is_class = false;
  std::unordered_set<const void*> yielding;  // of a generator: its statements that are or hold a yield
};

/// A parsed text with its names resolved.
struct Program : std::enable_shared_from_this<Program> {
  std::shared_ptr<const ast::Module> module;
  Globals* globals = nullptr;
  NodeMap names;
  std::vector<Value> constants;
  std::unordered_map<const void*, std::unique_ptr<Code>>
      codes;  // FunctionDef, Lambda, ClassDef, a generator's Comprehension; nullptr: the text itself
};

/// Resolves a text. Names that no function binds are globals.
Result<std::shared_ptr<const Program>> resolve(std::shared_ptr<const ast::Module> module, Globals& globals);

/// The key in Program::names of a parameter, an import's alias, a handler's name, a global… : anything that binds a
/// name without being an ast::Name.
inline const void* binding_key(const std::string& name) { return &name; }

}  // namespace kiln::script
