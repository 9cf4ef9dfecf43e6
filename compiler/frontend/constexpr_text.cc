#include "compiler/frontend/constexpr_text.h"

#include <cmath>

#include "compiler/frontend/builtins.h"
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

namespace {

/// "triton.language.sigmoid" for `tl.sigmoid`, "triton.language.extra.libdevice.tanh" for `libdevice.tanh`.
std::string written_path(const ast::Expr* e) {
  if (const auto* n = ast::dyn_as<ast::Name>(e))
    return n->id == "tl" ? "triton.language" : n->id == "libdevice" ? "triton.language.extra.libdevice" : n->id;
  const auto* a = ast::dyn_as<ast::Attribute>(e);
  const std::string base = a ? written_path(a->base.get()) : std::string();
  return base.empty() ? base : base + "." + a->name;
}

/// Beside literals what else a constexpr may hold: tuples, infinities and NaN, dtypes by their names alone, functions
/// of the language, and those of the kernel's file.
std::optional<Global> written(const ast::Expr* e, const JitFunction* function) {
  if (auto v = literal(e)) return v;
  if (const auto* items = ast::items_of(e)) {
    auto out = std::make_shared<GlobalTuple>();
    for (const ast::ExprPtr& item : *items) {
      std::optional<Global> v = written(item.get(), function);
      if (!v) return std::nullopt;
      out->items.push_back(*std::move(v));
    }
    return Global(std::shared_ptr<const GlobalTuple>(std::move(out)));
  }
  if (const auto* u = ast::dyn_as<ast::Unary>(e)) {
    const std::optional<Global> operand = written(u->operand.get(), function);
    const auto* c = operand ? std::get_if<ast::Constant>(&*operand) : nullptr;
    auto applied = c ? ast::apply(u->op, *c, u->range) : Result<ast::Constant>(ast::Constant());
    return c && applied.ok() ? std::optional<Global>(*std::move(applied)) : std::nullopt;
  }
  if (const auto* call = ast::dyn_as<ast::Call>(e)) {  // float("inf")
    const std::optional<Global> text = last_name(call->callee.get()) == "float" && call->args.size() == 1
                                           ? literal(call->args[0].get())
                                           : std::nullopt;
    const auto* c = text ? std::get_if<ast::Constant>(&*text) : nullptr;
    const auto* word = c ? std::get_if<std::string>(c) : nullptr;
    if (!word) return std::nullopt;
    const bool negative = word->starts_with('-');
    const std::string_view name = std::string_view(*word).substr(negative ? 1 : 0);
    if (name == "inf") return Global(ast::Constant(negative ? -HUGE_VAL : HUGE_VAL));
    return name == "nan" ? std::optional<Global>(ast::Constant(std::nan(""))) : std::nullopt;
  }
  if (const auto* n = ast::dyn_as<ast::Name>(e)) {
    if (std::optional<Global> known = function && function->lookup ? function->lookup(n->id) : std::nullopt)
      return known;
    if (n->id == "inf") return Global(ast::Constant(HUGE_VAL));
    if (n->id == "nan") return Global(ast::Constant(std::nan("")));
  }
  if (auto dtype = parse_dtype(last_name(e))) return Global(*dtype);
  const std::string path = written_path(e);
  const std::optional<Value> found = path.empty() ? std::nullopt : resolve_path(path);
  return found && found->builtin() ? std::optional<Global>(ModulePath{path}) : std::nullopt;
}

}  // namespace

Result<std::pair<std::string, Global>> parse_constexpr(const std::string& text, const JitFunction* function) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return error(ErrorKind::kValue, "expected NAME=VALUE, got '{}'", text);
  std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  auto source = SourceText::make("constexpr", value);
  KILN_TRY(ast::ExprPtr expr, parse::parse_expression(source));
  if (auto v = written(expr.get(), function)) return std::pair(name, std::move(*v));
  return error(ErrorKind::kValue, "{} is not a number, string, True, False, None, a dtype, a function or a tuple: '{}'",
               name, value);
}

}  // namespace kiln::frontend
