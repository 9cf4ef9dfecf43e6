#include "compiler/frontend/constexpr_text.h"

#include "compiler/parse/parser.h"
#include "kiln/dtype.h"
#include "support/diag.h"

namespace kiln::frontend {

std::string_view last_name(const ast::Expr* e) {
  if (const auto* n = ast::dyn_as<ast::Name>(e)) return n->id;
  if (const auto* a = ast::dyn_as<ast::Attribute>(e)) return a->name;
  return {};
}

std::optional<Global> literal(const ast::Expr* e) {
  if (const auto* c = ast::dyn_as<ast::ConstantExpr>(e)) return Global(c->value);
  if (const auto* u = ast::dyn_as<ast::Unary>(e)) {
    const auto* c = ast::dyn_as<ast::ConstantExpr>(u->operand.get());
    auto applied = c ? ast::apply(u->op, c->value, u->range) : Result<ast::Constant>(ast::Constant());
    if (c && applied.ok()) return Global(std::move(*applied));
    return std::nullopt;
  }
  if (auto type = parse_dtype(last_name(e)); type && ast::dyn_as<ast::Attribute>(e)) return Global(*type);
  return std::nullopt;
}

Result<std::pair<std::string, Global>> parse_constexpr(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return error(ErrorKind::kValue, "expected NAME=VALUE, got '{}'", text);
  std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  auto source = SourceText::make("constexpr", value);
  KILN_TRY(ast::ExprPtr expr, parse::parse_expression(source));
  if (auto v = literal(expr.get())) return std::pair(name, std::move(*v));
  if (auto dtype = parse_dtype(last_name(expr.get()))) return std::pair(name, Global(*dtype));
  return error(ErrorKind::kValue, "{} is not a number, string, True, False, None or a dtype: '{}'", name, value);
}

}  // namespace kiln::frontend
