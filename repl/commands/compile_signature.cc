#include "repl/commands/compile_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ast/annotation.h"
#include "compiler/ast/walk.h"
#include "compiler/parse/parser.h"
#include "repl/commands/assumed_constexpr.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using ast::Expr;
using ast::Stmt;

// The name that leads an address: `x` of `x + i * 2 + j`, of `x[None, :]` and of `x.to(…)`.
std::string_view leading_name(const Expr* e) {
  while (e) {
    if (auto* n = ast::dyn_as<ast::Name>(e)) return n->id;
    if (auto* b = ast::dyn_as<ast::Binary>(e); b && (b->op == ast::BinaryOp::kAdd || b->op == ast::BinaryOp::kSub))
      e = b->left.get();
    else if (auto* s = ast::dyn_as<ast::Subscript>(e))
      e = s->base.get();
    else if (auto* c = ast::dyn_as<ast::Call>(e)) {
      auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
      e = method ? method->base.get() : nullptr;
    } else
      return {};
  }
  return {};
}

bool is_memory_function(std::string_view name) {
  return name == "load" || name == "store" || name.starts_with("atomic_");
}

// Parameters and local names that are used as addresses.
std::set<std::string, std::less<>> address_names(const ast::FunctionDef& f) {
  std::set<std::string, std::less<>> names;
  std::multimap<std::string, std::string, std::less<>> comes_from;  // local name → what its value starts with
  auto on_expr = [&](const Expr& e) {
    auto* call = ast::dyn_as<ast::Call>(&e);
    if (!call || call->args.empty() || !is_memory_function(last_name(call->callee.get()))) return;
    if (auto name = leading_name(call->args[0].get()); !name.empty()) names.emplace(name);
  };
  auto on_stmt = [&](const Stmt& s) {
    auto* a = ast::dyn_as<ast::Assign>(&s);
    if (!a) return;
    for (const auto& t : a->targets)
      if (auto* n = ast::dyn_as<ast::Name>(t.get()))
        if (auto from = leading_name(a->value.get()); !from.empty()) comes_from.emplace(n->id, from);
  };
  ast::walk(f.body, on_stmt, on_expr);
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [local, from] : comes_from)
      if (names.contains(local)) grew |= names.insert(from).second;
  }
  return names;
}

// "*fp32" or "i64" from an annotation, or "".
std::string annotated_type(const Expr* annotation) {
  if (!annotation) return {};
  std::string text;
  if (auto* c = ast::dyn_as<ast::ConstantExpr>(annotation))
    if (auto* s = std::get_if<std::string>(&c->value)) text = *s;
  if (text.empty()) text = last_name(annotation);
  std::string_view element = text;
  if (element.starts_with("*")) element.remove_prefix(1);
  if (element.starts_with("tl.")) element.remove_prefix(3);
  auto dtype = parse_dtype(element);
  if (!dtype) return {};
  return text.starts_with("*") ? "*" + std::string(name(*dtype)) + ":16" : std::string(name(*dtype));
}

bool usually_float(std::string_view name) {
  constexpr std::string_view kNames[] = {"eps",      "epsilon",       "p",  "alpha", "beta",     "scale",
                                         "sm_scale", "softmax_scale", "lr", "slope", "momentum", "dropout_p",
                                         "factor",   "weight_decay"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string show(const frontend::Global& g) {
  if (auto* c = std::get_if<ast::Constant>(&g)) return ast::repr(*c);
  if (auto* t = std::get_if<DType>(&g)) return "tl." + std::string(info(*t).torch);
  return "…";
}

std::string assumed_type(const ast::Param& param, const std::set<std::string, std::less<>>& addresses) {
  if (std::string t = annotated_type(param.annotation.get()); !t.empty()) return t;
  if (addresses.contains(param.name) || param.name.ends_with("ptr") || param.name.ends_with("Ptr")) return "*fp32:16";
  if (auto* c = ast::dyn_as<ast::ConstantExpr>(param.default_value.get())) {
    if (std::holds_alternative<double>(c->value)) return "fp32";
    if (std::holds_alternative<bool>(c->value)) return "i1";
  }
  return usually_float(param.name) ? "fp32" : "i32:16";
}

}  // namespace

AssumedSignature assume_signature(const frontend::JitFunction& function,
                                  const std::vector<std::pair<std::string, frontend::Global>>& constexprs) {
  AssumedSignature out;
  out.constexprs = constexprs;
  const ast::FunctionDef& f = *function.def;
  auto addresses = address_names(f);
  auto given = [&](const std::string& name) {
    return std::any_of(constexprs.begin(), constexprs.end(), [&](const auto& c) { return c.first == name; });
  };
  std::map<std::string_view, std::optional<frontend::Global>> assumed;
  for (const ast::Param& p : f.params)
    if (!given(p.name) && p.annotation && ast::is_constexpr_annotation(*p.annotation))
      assumed.emplace(p.name, assumed_constexpr(function, p));
  // One free size is a block of a vector; several are the sides of a tile.
  const auto sizes = std::count_if(assumed.begin(), assumed.end(), [](const auto& a) { return !a.second; });
  const ast::Constant size(ast::Int{sizes > 1 ? 32 : 1024});
  for (const ast::Param& param : f.params) {
    std::string type;
    auto* none = ast::dyn_as<ast::ConstantExpr>(param.default_value.get());
    bool none_by_default = none && std::holds_alternative<ast::None>(none->value);
    if (given(param.name)) {
      type = "constexpr";
    } else if (auto it = assumed.find(param.name); it != assumed.end() || none_by_default) {
      type = "constexpr";
      out.constexprs.emplace_back(param.name,
                                  it == assumed.end() ? ast::Constant(ast::None{}) : it->second.value_or(size));
      out.assumptions.push_back(fmt::format("{}={}", param.name, show(out.constexprs.back().second)));
    } else {
      type = assumed_type(param, addresses);
      out.assumptions.push_back(fmt::format("{}: {}", param.name, type));
    }
    out.signature += (out.signature.empty() ? "" : ", ") + type;
  }
  return out;
}

Result<std::pair<std::string, frontend::Global>> parse_constexpr(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return error(ErrorKind::kValue, "expected NAME=VALUE, got '{}'", text);
  std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  auto source = SourceText::make("--constexpr", value);
  KILN_TRY(ast::ExprPtr expr, parse::parse_expression(source));
  if (auto v = literal(expr.get())) return std::pair(name, std::move(*v));
  if (auto dtype = parse_dtype(last_name(expr.get()))) return std::pair(name, frontend::Global(*dtype));
  return error(ErrorKind::kValue, "{} is not a number, string, True, False, None or a dtype: '{}'", name, value);
}

std::vector<std::string> called_names(const ast::FunctionDef& function) {
  std::vector<std::string> names;
  ast::walk(
      function.body, [](const Stmt&) {},
      [&](const Expr& e) {
        if (auto* call = ast::dyn_as<ast::Call>(&e))
          if (auto* n = ast::dyn_as<ast::Name>(call->callee.get())) names.push_back(n->id);
      });
  return names;
}

}  // namespace kiln::repl
