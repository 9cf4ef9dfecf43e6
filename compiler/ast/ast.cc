#include "compiler/ast/ast.h"

namespace kiln::ast {

const FunctionDef* Module::function(std::string_view name) const {
  // The last definition of a name is the one that counts.
  for (auto s = body.rbegin(); s != body.rend(); ++s)
    if (const auto* f = dyn_as<FunctionDef>(s->get()); f && f->name == name) return f;
  return nullptr;
}

}  // namespace kiln::ast
