#pragma once
#include <string>
#include <variant>

#include "compiler/ast/ast.h"
#include "repl/script/value/value.h"

namespace kiln::script {

/// The docstring of a function, class or module: its first statement, where that is a text; else None.
inline Value docstring_of(const ast::Body& body) {
  const auto* first = body.empty() ? nullptr : ast::dyn_as<ast::ExprStmt>(body[0].get());
  const auto* text = first ? ast::dyn_as<ast::ConstantExpr>(first->value.get()) : nullptr;
  return text && std::holds_alternative<std::string>(text->value) ? Value::of(text->value) : Value::none();
}

}  // namespace kiln::script
