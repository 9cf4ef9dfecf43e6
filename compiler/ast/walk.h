// Visits every node below one: facts about a function's text without running it.
#pragma once
#include <functional>

#include "compiler/ast/ast.h"

namespace kiln::ast {

using OnExpr = std::function<void(const Expr&)>;
using OnStmt = std::function<void(const Stmt&)>;

/// `e` (null: nothing) and what is below it, in the order of the text, parents first. Annotations are left out.
void walk(const Expr* e, const OnExpr& on_expr);
/// Every statement, nested ones too, each before its own expressions.
void walk(const Body& body, const OnStmt& on_stmt, const OnExpr& on_expr);

}  // namespace kiln::ast
