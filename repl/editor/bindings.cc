#include "repl/editor/bindings.h"

#include <map>

namespace kiln::editor {

namespace {

constexpr Binding kBindings[] = {
#define KILN_BINDING(e, keys, help) {Action::k##e, keys, help},
#include "repl/editor/bindings.def"
};

std::map<Key, Action> by_key() {
  constexpr std::string_view kBetween = "  ";
  std::map<Key, Action> out;
  for (const Binding& b : kBindings)
    for (std::string_view rest = b.keys; !rest.empty();) {
      const size_t end = rest.find(kBetween);
      if (auto key = parse_key(rest.substr(0, end))) out.emplace(*key, b.action);
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + kBetween.size());
    }
  return out;
}

}  // namespace

std::span<const Binding> bindings() { return kBindings; }

std::optional<Action> action_of(const Key& key) {
  static const std::map<Key, Action> kByKey = by_key();
  auto it = kByKey.find(key);
  return it == kByKey.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace kiln::editor
