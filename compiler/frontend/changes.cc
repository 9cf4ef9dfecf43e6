#include "compiler/frontend/changes.h"

#include <algorithm>

#include "compiler/ast/walk.h"
#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

namespace {

/// The name that a target or the object of a method begins with.
std::string base_of(const ast::Expr* e) {
  while (e && e->kind != ast::ExprKind::kName)
    if (const auto* s = ast::dyn_as<ast::Subscript>(e))
      e = s->base.get();
    else if (const auto* a = ast::dyn_as<ast::Attribute>(e))
      e = a->base.get();
    else
      return {};
  return e ? ast::as<ast::Name>(*e).id : std::string();
}

/// Functions that leave what they get as it is.
bool is_reader(std::string_view function) {
  static const std::set<std::string, std::less<>> kReaders = {
      "abs", "all", "any",   "bool",  "constexpr", "enumerate", "float", "int", "isinstance", "len", "list",
      "max", "min", "print", "range", "repr",      "sorted",    "str",   "sum", "tuple",      "zip"};
  return kReaders.contains(function);
}

}  // namespace

bool makes_list(const ast::Expr& e) {
  if (const auto* b = ast::dyn_as<ast::Binary>(&e)) return makes_list(*b->left) || makes_list(*b->right);
  const auto* call = ast::dyn_as<ast::Call>(&e);
  const auto* callee = call ? ast::dyn_as<ast::Name>(call->callee.get()) : nullptr;
  return e.kind == ast::ExprKind::kList || e.kind == ast::ExprKind::kDict || e.kind == ast::ExprKind::kComprehension ||
         (callee && (callee->id == "list" || callee->id == "sorted"));
}

Changes changes_of(const ast::Body& file, const ast::Body& body) {
  Changes out;
  auto hand_on = [&](const ast::ExprPtr& e) {
    if (const auto* n = ast::dyn_as<ast::Name>(e.get())) out.handed_on.insert(n->id);
  };
  ast::walk(
      file,
      [&](const ast::Stmt& s) {
        if (const auto* g = ast::dyn_as<ast::Global>(&s)) out.changing.insert(g->names.begin(), g->names.end());
        if (const auto* a = ast::dyn_as<ast::AugAssign>(&s)) out.changing.insert(base_of(a->target.get()));
        if (const auto* a = ast::dyn_as<ast::Assign>(&s)) {
          for (const ast::ExprPtr& target : a->targets)
            if (target->kind != ast::ExprKind::kName) out.changing.insert(base_of(target.get()));
          hand_on(a->value);
        }
        if (const auto* d = ast::dyn_as<ast::Del>(&s))
          for (const ast::ExprPtr& t : d->targets) out.changing.insert(base_of(t.get()));
      },
      [&](const ast::Expr& e) {
        const auto* call = ast::dyn_as<ast::Call>(&e);
        const auto* method = call ? ast::dyn_as<ast::Attribute>(call->callee.get()) : nullptr;
        const auto* callee = call ? ast::dyn_as<ast::Name>(call->callee.get()) : nullptr;
        // What has a list may change it, under another name too.
        if (method && !is_reading_method(method->name)) out.changing.insert(base_of(method));
        if (call && !is_reader(callee ? callee->id : method ? method->name : "")) {
          std::for_each(call->args.begin(), call->args.end(), hand_on);
          for (const ast::Keyword& k : call->keywords) hand_on(k.value);
        }
        if (const auto* n = ast::dyn_as<ast::NamedExpr>(&e)) out.changing.insert(n->target);
      });
  for (const ast::StmtPtr& s : body)
    if (s->kind == ast::StmtKind::kFor || s->kind == ast::StmtKind::kWhile || s->kind == ast::StmtKind::kWith)
      out.changing.merge(assigned_names(std::span(&s, 1)));
  return out;
}

std::optional<bool> asks_for_vendor(const ast::Expr& condition) {
  if (const auto* u = ast::dyn_as<ast::Unary>(&condition); u && u->op == ast::UnaryOp::kNot) {
    const std::optional<bool> inner = asks_for_vendor(*u->operand);
    return inner ? std::optional<bool>(!*inner) : std::nullopt;
  }
  const auto* call = ast::dyn_as<ast::Call>(&condition);
  const ast::Expr* named = call ? call->callee.get() : &condition;
  std::string name;
  if (const auto* n = ast::dyn_as<ast::Name>(named)) name = n->id;
  if (const auto* a = ast::dyn_as<ast::Attribute>(named)) name = a->name;
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (std::string_view other : {"is_hip", "is_rocm", "is_amd", "is_xpu", "is_npu", "is_musa"})
    if (name == other) return false;
  return name == "is_cuda" || name == "is_nvidia" ? std::optional<bool>(true) : std::nullopt;
}

}  // namespace kiln::frontend
