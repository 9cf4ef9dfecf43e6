// What the language starts with; each part installs its own tables.
#pragma once
#include <functional>

#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Everything below, and the builtin functions and types of the language.
void install_builtins(Interp& in);
void install_types(Interp& in);    // int, str, list… as callable types
void install_classes(Interp& in);  // property, classmethod, and what `object` has
void install_complex(Interp& in);
void install_number_methods(Interp& in);  // what floats have beside their arithmetic
void install_str_methods(Interp& in);
void install_bytes(Interp& in);
void install_container_methods(Interp& in);
void install_slice_methods(Interp& in);

/// Adds native functions to a module.
void add_functions(ModuleObject& module, std::span<const NativeDef> defs);

/// An object with a few attributes and perhaps a call, for the odd corners of a library's surface.
class Opaque : public Object {
 public:
  static constexpr KindOf<Opaque> kKind = Kind::kOpaque;
  explicit Opaque(std::string n, Kind kind = kKind) : Object(kind), name(std::move(n)) {}
  std::optional<Value> attribute(Interp&, std::string_view attribute) override {
    if (Value* v = members.find(attribute)) return *v;
    return std::nullopt;
  }
  void attribute_names(std::vector<std::string>& out) const override {
    for (const auto& e : members.live())
      if (auto* s = e.key.get<Str>()) out.push_back(s->text);
  }
  Value call(Interp& in, CallArgs& args) override { return on_call ? on_call(in, args) : Object::call(in, args); }
  std::string repr(Interp&) override { return "<" + name + ">"; }
  const std::string name;
  Table members;
  std::function<Value(Interp&, CallArgs&)> on_call;
};

/// As hash() gives it: Python's own for numbers and tuples of them.
int64_t value_hash(Interp& in, const Value& v);
/// pow() with three numbers.
Value power_modulo(Interp& in, const Value& base, const Value& exponent, const Value& modulus);
/// Visits keys and values of a dict, or of an object that has keys() and elements by them; false: it is no mapping.
bool visit_mapping(Interp& in, const Value& v, const std::function<void(const Value&, Value)>& visit);

/// A bound of a search among n elements: counted from the end where it is below 0, `otherwise` where it is missing.
int64_t place_within(Interp& in, const Value& v, int64_t n, int64_t otherwise, std::string_view what);

/// Sorts in place, stably; `key` may be none.
void sort_values(Interp& in, std::vector<Value>& items, const Value& key, bool reverse);

}  // namespace kiln::script
