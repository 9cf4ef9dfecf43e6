// Statements other than control flow, and what is known about a function's names before it is compiled.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ast/annotation.h"
#include "compiler/ast/walk.h"
#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

using ast::StmtKind;

Status Codegen::body(std::span<const ast::Stmt* const> statements, bool tail) {
  for (size_t i = 0; i < statements.size(); ++i) {
    if (frame().flow.kind == Flow::Kind::kMaybe) return guarded(statements.subspan(i), tail);
    if (frame().flow.kind != Flow::Kind::kFalls) return {};  // what follows is never reached
    const ast::Stmt& s = *statements[i];
    const auto* branch = ast::dyn_as<ast::If>(&s);
    if (!branch) {
      KILN_CHECK_OK(statement(s));
      continue;
    }
    KILN_CHECK_OK(step(s.range));
    KILN_TRY(Value condition, expr(*branch->condition));
    bool last = tail && i + 1 == statements.size();
    if (!condition.tensor()) {
      KILN_TRY(bool taken, constant_truth(condition, branch->condition->range));
      KILN_CHECK_OK(body(pointers(taken ? branch->body : branch->else_body), last));
      continue;
    }
    RangeScope scope(*this, branch->condition->range);
    KILN_TRY(ir::Value * bit, scalar_condition({condition, branch->condition->range}, "an if"));
    // When one branch always returns, what follows belongs to the other one.
    bool absorbs = surely_returns(branch->body) || surely_returns(branch->else_body);
    if (absorbs) return if_stmt(*branch, bit, statements.subspan(i + 1), tail);
    KILN_CHECK_OK(if_stmt(*branch, bit, {}, last));
  }
  return {};
}

Status Codegen::statement(const ast::Stmt& s) {
  KILN_CHECK_OK(step(s.range));
  RangeScope scope(*this, s.range);
  auto unsupported = [&](std::string_view what, std::string_view help) -> Status {
    Diagnostic d = fail(s.range, ErrorKind::kUnsupported, "{} is not supported in kernels", what);
    if (!help.empty()) d = with_note(std::move(d), fmt::format("help: {}", help));
    return d;
  };
  switch (s.kind) {
    case StmtKind::kExpr: {
      if (ast::as<ast::ExprStmt>(s).value->kind == ast::ExprKind::kEllipsis) return {};
      unused_ = ast::as<ast::ExprStmt>(s).value.get();
      KILN_TRY(Value ignored, expr(*unused_));
      return {};
    }
    case StmtKind::kAssign: {
      const auto& a = ast::as<ast::Assign>(s);
      KILN_TRY(Value v, expr(*a.value));
      RangeScope value_scope(*this, a.value->range);
      KILN_TRY(Value kept, strip_constexpr(v, a.value->range));
      for (const ast::ExprPtr& t : a.targets) KILN_CHECK_OK(assign(*t, kept, a.value->range, false));
      return {};
    }
    case StmtKind::kAugAssign: {
      const auto& a = ast::as<ast::AugAssign>(s);
      const auto* target = ast::dyn_as<ast::Name>(a.target.get());
      if (!target)
        return fail(a.target->range, ErrorKind::kUnsupported,
                    "only a name can be updated in place; store to memory with tl.store");
      KILN_TRY(Value old, name(target->id, target->range));
      KILN_TRY(Value by, expr(*a.value));
      KILN_TRY(Value v, binary(a.op, {std::move(old), target->range}, {std::move(by), a.value->range}, s.range));
      KILN_TRY(Value kept, strip_constexpr(v, s.range));
      return bind(target->id, std::move(kept), s.range, false);
    }
    case StmtKind::kAnnAssign:
      return annotated(ast::as<ast::AnnAssign>(s));
    case StmtKind::kFor:
      return for_stmt(ast::as<ast::For>(s));
    case StmtKind::kWhile:
      return while_stmt(ast::as<ast::While>(s));
    case StmtKind::kReturn:
      return return_stmt(ast::as<ast::Return>(s));
    case StmtKind::kPass:
      return {};
    case StmtKind::kAssert: {
      const auto& a = ast::as<ast::Assert>(s);
      std::vector<Arg> args;
      KILN_TRY(Value condition, expr(*a.condition));
      args.push_back({std::move(condition), a.condition->range});
      if (a.message) {
        KILN_TRY(Value message, expr(*a.message));
        args.push_back({std::move(message), a.message->range});
      }
      bool known = args[0].value.constant() != nullptr;
      // As in Triton: without debug an assert of a kernel is not looked at, not even one that is known to fail.
      if (known && !options.debug && !computing() && !is_library(*frame().function)) return {};
      const Builtin* check = find_builtin(known ? "static_assert" : "device_assert", kInLanguage);
      KILN_TRY(Value ignored, call(Value(check), std::move(args), {}, s.range, s.range));
      return {};
    }
    case StmtKind::kIf:
      KILN_UNREACHABLE("body() handles if");
    case StmtKind::kFunctionDef:
      return unsupported("a function inside a kernel", "define it at module level under @triton.jit");
    case StmtKind::kClassDef:
      return unsupported("a class", "");
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      if (computing()) {
        frame().flow = {s.kind == StmtKind::kBreak ? Flow::Kind::kBroke : Flow::Kind::kContinues, nullptr};
        return {};
      }
      if (s.kind == StmtKind::kContinue) return unsupported("continue", "put the rest of the loop body under an if");
      return unsupported("break", "put the condition into a while loop, or mask the remaining iterations");
    case StmtKind::kImport:
      if (computing()) return local_import(ast::as<ast::Import>(s));
      return unsupported("import", "import at the top of the file");
    case StmtKind::kDel:
      return unsupported("del", "");
    case StmtKind::kGlobal:
      return unsupported("global", "a kernel changes memory only, through tl.store");
    case StmtKind::kWith: {
      const auto& w = ast::as<ast::With>(s);
      if (!enters_scopes(w))
        return unsupported("with", "only `with pl.scope(name)` of triton.profiler.language is, which records nothing");
      return with_stmt(w);
    }
    case StmtKind::kTry:
      return unsupported("try", "");
    case StmtKind::kRaise:
      return unsupported("raise", "use tl.static_assert or tl.device_assert");
    case StmtKind::kUnsupported:
      return ast::as<ast::Unsupported>(s).why;
    case StmtKind::kMatch:
      return unsupported("match", "use if and elif");
  }
  KILN_UNREACHABLE("statement kind");
}

Result<Value> Codegen::strip_constexpr(const Value& value, SourceRange range) {
  if (computing()) return value;
  if (value.is_number()) {
    KILN_TRY(ir::Value * v, tensor({value, range}));
    return Value(v);
  }
  if (value.constant_as<std::string>())
    return with_note(fail(range, ErrorKind::kType,
                          "a string stays a compile-time value, so its name needs the annotation tl.constexpr"),
                     "help: write `name: tl.constexpr = …`");
  if (const TupleValue* t = value.as_tuple()) {
    std::vector<Value> items;
    for (const Value& item : t->items) {
      KILN_TRY(Value kept, strip_constexpr(item, range));
      items.push_back(std::move(kept));
    }
    return with_parts(value, std::move(items));
  }
  return value;
}

Status Codegen::assign(const ast::Expr& target, Value value, SourceRange value_range, bool declared_constexpr) {
  if (const auto* n = ast::dyn_as<ast::Name>(&target))
    return bind(n->id, std::move(value), n->range, declared_constexpr);
  if (const auto* made = ast::dyn_as<ast::Attribute>(&target); made && computing())
    return set_field(*made, std::move(value), value_range);
  const std::vector<ast::ExprPtr>* items = ast::items_of(&target);
  const auto* field = ast::dyn_as<ast::Attribute>(&target);
  const auto* object = field ? ast::dyn_as<ast::Name>(field->base.get()) : nullptr;
  const auto bound = object ? frame().env.find(object->id) : frame().env.end();
  if (const AggregateValue* a = bound == frame().env.end() ? nullptr : bound->second.value.aggregate())
    return with_note(fail(target.range, ErrorKind::kUnsupported, "an object does not change in a kernel"),
                     fmt::format("help: make another: {0} = {1}(…)", object->id, a->of->name));
  if (!items)
    return with_note(
        fail(target.range, ErrorKind::kUnsupported, "a kernel can assign to names only"),
        "help: memory is written with tl.store(pointer, value), and an element of a tensor is replaced with tl.where");
  const TupleValue* t = value.as_tuple();
  if (!t)
    return fail(value_range, ErrorKind::kType, "{} names on the left, but the value is {}", items->size(),
                describe(value));
  if (t->items.size() != items->size())
    return fail(target.range, ErrorKind::kType, "{} names on the left, but {} values on the right", items->size(),
                t->items.size());
  for (size_t i = 0; i < items->size(); ++i)
    KILN_CHECK_OK(assign(*(*items)[i], t->items[i], value_range, declared_constexpr));
  return {};
}

Status Codegen::bind(std::string_view id, Value value, SourceRange at, bool declared_constexpr) {
  // Whatever goes through a value does so by recursion.
  constexpr int kDeepest = 200;
  if (const TupleValue* t = value.as_tuple() ? value.as_tuple() : value.as_dict(); t && t->depth > kDeepest)
    return fail(at, ErrorKind::kValue, "{} has tuples within one another more than {} deep", id, kDeepest);
  if (ir::Value* v = value.tensor(); v && v->name.empty() && !is_library(*frame().function))
    v->name = module.intern(id);
  frame().env.insert_or_assign(std::string(id), Binding{std::move(value), at, declared_constexpr});
  return {};
}

Status Codegen::local_import(const ast::Import& s) {
  for (const ast::Import::Alias& n : s.names) {
    const bool whole = s.from_module.empty();
    const std::string first = n.name.substr(0, n.name.find('.'));
    const std::string path = !whole ? fmt::format("{}.{}", s.from_module, n.name) : n.as.empty() ? first : n.name;
    std::optional<Value> known = resolve_path(path);
    KILN_CHECK_OK(
        bind(n.as.empty() ? first : n.as, known ? *std::move(known) : Value(ModulePath{path}), s.range, true));
  }
  return {};
}

/// Whether all contexts are scopes of Proton.
bool Codegen::enters_scopes(const ast::With& s) {
  return std::ranges::all_of(s.items, [&](const ast::With::Item& item) {
    const auto* made = ast::dyn_as<ast::Call>(item.context.get());
    if (!made || item.target) return false;
    const Result<Value> callee = expr(*made->callee);
    const Builtin* builtin = callee.ok() ? callee->builtin() : nullptr;
    return builtin && builtin->name == "scope" && (builtin->exposure() & kInProfiler);
  });
}

Status Codegen::with_stmt(const ast::With& s) {
  for (const ast::With::Item& item : s.items) {
    KILN_TRY([[maybe_unused]] Value scope, expr(*item.context));
  }
  const ast::Stmt* returns = nullptr;
  ast::walk(
      s.body, [&](const ast::Stmt& inner) { returns = inner.kind == StmtKind::kReturn ? &inner : returns; },
      [](const ast::Expr&) {});
  if (returns) return fail(returns->range, ErrorKind::kUnsupported, "return inside a `with` is not supported");
  return body(pointers(s.body), false);
}

Status Codegen::annotated(const ast::AnnAssign& s) {
  if (!s.value)
    return fail(s.range, ErrorKind::kUnsupported, "a declaration without a value is not supported in kernels");
  KILN_TRY(Value v, expr(*s.value));
  if (!ast::is_constexpr_annotation(*s.annotation)) {
    KILN_TRY(Value kept, strip_constexpr(v, s.value->range));
    return assign(*s.target, std::move(kept), s.value->range, false);
  }
  // As in Triton the annotation keeps constexprs and lets values of the running program through.
  bool runtime = v.tensor() != nullptr;
  if (const std::vector<Value>* parts = parts_of(v))
    runtime = std::any_of(parts->begin(), parts->end(), [](const Value& x) { return x.tensor() != nullptr; });
  return assign(*s.target, std::move(v), s.value->range, !runtime);
}

Status Codegen::return_stmt(const ast::Return& s) {
  Frame& f = frame();
  if (f.runtime_loops > 0)
    return with_note(fail(s.range, ErrorKind::kUnsupported, "return inside a loop is not supported"),
                     "help: keep the result in a variable and return it after the loop");
  Value v;
  if (s.value) {
    KILN_TRY(v, expr(*s.value));
  }
  f.flow = {Flow::Kind::kReturned, nullptr};
  f.result = std::move(v);
  f.result_at = s.range;
  return {};
}

// --- what is known before compilation -------------------------------------------------------------------------------

namespace {

struct Reads {
  NameUses& uses;

  void list(const std::vector<ast::ExprPtr>& items) {
    for (const ast::ExprPtr& e : items) visit(e.get());
  }
  void visit(const ast::Expr* e) {
    if (!e) return;
    using ast::ExprKind;
    switch (e->kind) {
      case ExprKind::kName:
        uses.reads[ast::as<ast::Name>(*e).id].push_back(e->range.begin);
        return;
      case ExprKind::kTuple:
        return list(ast::as<ast::Tuple>(*e).items);
      case ExprKind::kList:
        return list(ast::as<ast::List>(*e).items);
      case ExprKind::kUnary:
        return visit(ast::as<ast::Unary>(*e).operand.get());
      case ExprKind::kBinary:
        visit(ast::as<ast::Binary>(*e).left.get());
        return visit(ast::as<ast::Binary>(*e).right.get());
      case ExprKind::kBoolOp:
        return list(ast::as<ast::BoolOp>(*e).values);
      case ExprKind::kCompare:
        visit(ast::as<ast::Compare>(*e).left.get());
        return list(ast::as<ast::Compare>(*e).rights);
      case ExprKind::kIfExp:
        visit(ast::as<ast::IfExp>(*e).condition.get());
        visit(ast::as<ast::IfExp>(*e).then_value.get());
        return visit(ast::as<ast::IfExp>(*e).else_value.get());
      case ExprKind::kCall:
        visit(ast::as<ast::Call>(*e).callee.get());
        list(ast::as<ast::Call>(*e).args);
        for (const ast::Keyword& k : ast::as<ast::Call>(*e).keywords) visit(k.value.get());
        return;
      case ExprKind::kAttribute:
        return visit(ast::as<ast::Attribute>(*e).base.get());
      case ExprKind::kSubscript:
        visit(ast::as<ast::Subscript>(*e).base.get());
        return visit(ast::as<ast::Subscript>(*e).index.get());
      case ExprKind::kSlice:
        visit(ast::as<ast::Slice>(*e).lower.get());
        visit(ast::as<ast::Slice>(*e).upper.get());
        return visit(ast::as<ast::Slice>(*e).step.get());
      case ExprKind::kStarred:
        return visit(ast::as<ast::Starred>(*e).value.get());
      case ExprKind::kJoinedStr:
        for (const auto& piece : ast::as<ast::JoinedStr>(*e).pieces) visit(piece.value.get());
        return;
      case ExprKind::kNamedExpr:
        return visit(ast::as<ast::NamedExpr>(*e).value.get());
      case ExprKind::kComprehension: {
        const auto& c = ast::as<ast::Comprehension>(*e);
        visit(c.element.get());
        for (const ast::ForClause& clause : c.clauses) visit(clause.iterable.get()), list(clause.conditions);
        return;
      }
      // Refused when they are compiled.
      case ExprKind::kConstant:
      case ExprKind::kSet:
      case ExprKind::kDict:
      case ExprKind::kLambda:
      case ExprKind::kEllipsis:
      case ExprKind::kYield:
        return;
    }
  }
  void visit(const ast::Body& statements) {
    for (const ast::StmtPtr& s : statements) visit(*s);
  }
  void visit(const ast::Stmt& s) {
    switch (s.kind) {
      case StmtKind::kExpr:
        return visit(ast::as<ast::ExprStmt>(s).value.get());
      case StmtKind::kAssign:
        return visit(ast::as<ast::Assign>(s).value.get());
      case StmtKind::kAugAssign:
        visit(ast::as<ast::AugAssign>(s).target.get());
        return visit(ast::as<ast::AugAssign>(s).value.get());
      case StmtKind::kAnnAssign:
        return visit(ast::as<ast::AnnAssign>(s).value.get());
      case StmtKind::kFor:
        visit(ast::as<ast::For>(s).iterable.get());
        visit(ast::as<ast::For>(s).body);
        return visit(ast::as<ast::For>(s).else_body);
      case StmtKind::kWhile:
        visit(ast::as<ast::While>(s).condition.get());
        visit(ast::as<ast::While>(s).body);
        return visit(ast::as<ast::While>(s).else_body);
      case StmtKind::kIf:
        visit(ast::as<ast::If>(s).condition.get());
        visit(ast::as<ast::If>(s).body);
        return visit(ast::as<ast::If>(s).else_body);
      case StmtKind::kWith:
        return visit(ast::as<ast::With>(s).body);
      case StmtKind::kReturn:
        return visit(ast::as<ast::Return>(s).value.get());
      case StmtKind::kAssert:
        visit(ast::as<ast::Assert>(s).condition.get());
        return visit(ast::as<ast::Assert>(s).message.get());
      case StmtKind::kPass:
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kImport:
      case StmtKind::kDel:
      case StmtKind::kGlobal:
      case StmtKind::kTry:
      case StmtKind::kRaise:
      case StmtKind::kFunctionDef:
      case StmtKind::kClassDef:
      case StmtKind::kMatch:
      case StmtKind::kUnsupported:
        return;
    }
  }
};

void add_targets(const ast::Expr* e, std::set<std::string, std::less<>>& out) {
  if (const auto* n = ast::dyn_as<ast::Name>(e)) out.insert(n->id);
  if (const auto* items = ast::items_of(e))
    for (const ast::ExprPtr& item : *items) add_targets(item.get(), out);
}

/// Calls `fn` on each nested statement list that control flow may enter.
template <class Fn>
void nested_bodies(const ast::Stmt& s, Fn&& fn) {
  if (const auto* f = ast::dyn_as<ast::For>(&s)) fn(f->body), fn(f->else_body);
  if (const auto* w = ast::dyn_as<ast::While>(&s)) fn(w->body), fn(w->else_body);
  if (const auto* w = ast::dyn_as<ast::With>(&s)) fn(w->body);
  if (const auto* i = ast::dyn_as<ast::If>(&s)) fn(i->body), fn(i->else_body);
}

}  // namespace

NameUses collect_uses(const ast::FunctionDef& def) {
  NameUses uses;
  Reads{uses}.visit(def.body);
  for (auto& [n, offsets] : uses.reads) std::sort(offsets.begin(), offsets.end());
  return uses;
}

std::set<std::string, std::less<>> assigned_names(std::span<const ast::StmtPtr> statements) {
  std::set<std::string, std::less<>> out;
  for (const ast::StmtPtr& s : statements) {
    if (const auto* a = ast::dyn_as<ast::Assign>(s.get()))
      for (const ast::ExprPtr& t : a->targets) add_targets(t.get(), out);
    if (const auto* a = ast::dyn_as<ast::AugAssign>(s.get())) add_targets(a->target.get(), out);
    if (const auto* a = ast::dyn_as<ast::AnnAssign>(s.get())) add_targets(a->target.get(), out);
    if (const auto* f = ast::dyn_as<ast::For>(s.get())) add_targets(f->target.get(), out);
    nested_bodies(*s, [&](const ast::Body& inner) { out.merge(assigned_names(inner)); });
  }
  return out;
}

std::vector<const ast::Stmt*> pointers(const ast::Body& body) {
  std::vector<const ast::Stmt*> out;
  for (const ast::StmtPtr& s : body) out.push_back(s.get());
  return out;
}

bool surely_returns(std::span<const ast::StmtPtr> statements) {
  for (const ast::StmtPtr& s : statements) {
    if (s->kind == StmtKind::kReturn) return true;
    if (const auto* i = ast::dyn_as<ast::If>(s.get()); i && surely_returns(i->body) && surely_returns(i->else_body))
      return true;
  }
  return false;
}

uint32_t end_of(const ast::Stmt& s) {
  uint32_t end = s.range.end;
  nested_bodies(s, [&](const ast::Body& inner) {
    if (!inner.empty()) end = std::max(end, end_of(*inner.back()));
  });
  return end;
}

}  // namespace kiln::frontend
