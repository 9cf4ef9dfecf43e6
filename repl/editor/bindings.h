// What the keys do, by the table in bindings.def.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "repl/editor/keys.h"

namespace kiln::editor {

enum class Action : uint8_t {
#define KILN_BINDING(e, keys, help) k##e,
#include "repl/editor/bindings.def"
};

struct Binding {
  Action action;
  std::string_view keys;  // separated by two blanks
  std::string_view help;
};
std::span<const Binding> bindings();

/// What the key does; nullopt: nothing, or it is a character to insert.
std::optional<Action> action_of(const Key& key);

}  // namespace kiln::editor
