// Classes of scripts: how an attribute of a class becomes one of its instances, and special methods.
#pragma once
#include <initializer_list>

#include "repl/script/value/value.h"

namespace kiln::script {

struct ScriptError;

/// Names of the operators' methods, in the order of ast::BinaryOp and ast::CompareOp.
inline constexpr std::string_view kBinaryMethods[] = {"add",    "sub", "mul", "truediv", "floordiv", "mod",   "pow",
                                                      "matmul", "and", "or",  "xor",     "lshift",   "rshift"};
inline constexpr std::string_view kCompareMethods[] = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};

/// A function that gets the class it was found in: `C.apply(…)`.
class ClassMethod : public Object {
 public:
  static inline const KindOf<ClassMethod> kKind{"classmethod"};
  explicit ClassMethod(Value f) : Object(kKind), function(std::move(f)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  const Value function;
};

/// A function that gets neither instance nor class.
class StaticMethod : public Object {
 public:
  static inline const KindOf<StaticMethod> kKind{"staticmethod"};
  explicit StaticMethod(Value f) : Object(kKind), function(std::move(f)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  Value call(Interp& in, CallArgs& args) override;
  const Value function;
};

/// An attribute that is computed by a call.
class Property : public Object {
 public:
  static inline const KindOf<Property> kKind{"property"};
  Property(Value get, Value set, Value del)
      : Object(kKind), getter(std::move(get)), setter(std::move(set)), deleter(std::move(del)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  const Value getter, setter, deleter;
};

/// An attribute found in `type`, as an instance has it (`self`), or the class itself (null).
Value bound(Interp& in, const Value& found, const Value* self, const Ref<TypeObject>& type);
/// Calls a special method of an instance's class; nullopt when the class has none, or it gives NotImplemented.
std::optional<Value> special(Interp& in, Object* self, std::string_view name, std::initializer_list<Value> args);
/// Sets a field although the class may have a __setattr__.
void set_field(Interp& in, Object* self, std::string_view name, Value value);
void delete_attribute(Interp& in, const Value& self, std::string_view name);
/// The fields of an instance of a script's class; null for other values.
Dict* fields_of(const Value& v);
/// A new instance of a class, before its __init__.
Value new_instance(Interp& in, const Ref<TypeObject>& type, CallArgs& args);
/// What `super()` has in a method of `owner`: attributes of the classes behind it, bound to `self`.
Value make_super(Ref<TypeObject> owner, Value self);
/// A special method of a type of the language, bound to a value of it, or to be called with one first; a value's own
/// class has been looked at before. nullopt: the type has none.
std::optional<Value> special_of_value(Interp& in, const Value& self, std::string_view name);
std::optional<Value> special_of_type(Interp& in, Kind kind, std::string_view name);
/// __init__, __str__ and __repr__ of exceptions, whose first argument is the exception.
std::optional<Value> exception_method(Interp& in, std::string_view name);
bool is_exception(Interp& in, TypeObject* type);
/// Whether it is what an iterator says its end with.
bool is_stop_iteration(Interp& in, const ScriptError& e);
/// Of an exception whose class says nothing else.
std::string exception_text(Interp& in, Instance& e, bool as_repr);

}  // namespace kiln::script
