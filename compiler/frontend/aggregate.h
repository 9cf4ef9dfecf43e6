// Objects of classes under Triton's @_aggregate: several values under one name, with methods. The constructor runs as
// Python does, on tensors too; what it makes does not change.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/frontend/value.h"

namespace kiln::frontend {

/// What a class statement says, and its functions.
struct AggregateClass {
  struct Field {
    std::string name;
    const ast::Expr* annotation = nullptr;
  };
  struct Member {
    FunctionPtr function;
    bool is_static = false;
  };
  std::string name;
  std::vector<Field> fields;
  std::map<std::string, Member, std::less<>> members;

  /// The place of a field; the number of fields when there is none of that name.
  size_t index(std::string_view field) const;
};

/// An object: a value for each field of its class.
struct AggregateValue {
  std::shared_ptr<const AggregateClass> of;
  std::vector<Value> parts;
  std::vector<bool> given = {};  // while the constructor runs: the fields that have their value
};

/// Whether the path of a decorator makes an aggregate of a class.
bool marks_aggregate(std::string_view path);
/// Whether Triton gives a function of Python's a parameter of that name itself (`_semantic`).
bool is_hidden_parameter(std::string_view name);
/// The class without its members, which the caller finds.
std::shared_ptr<AggregateClass> aggregate_of(const ast::ClassDef& c);
/// Makes a function one of an aggregate's. What is not under @triton.jit runs as Python's, on tensors too.
void make_member(JitFunction& f, const AggregateClass& of, bool jit);
/// Makes a member, `__init__`, the constructor: kernels call the class by it.
void make_constructor(JitFunction& f, std::shared_ptr<const AggregateClass> of);
/// The text of the constructor that a class has which defines none: a parameter for each field.
Result<JitFunction> implicit_constructor(const AggregateClass& c, const ast::ClassDef& def);

}  // namespace kiln::frontend
