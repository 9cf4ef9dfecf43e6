#include "compiler/ast/walk.h"

namespace kiln::ast {

namespace {

class Walker {
 public:
  Walker(const OnStmt* on_stmt, const OnExpr& on_expr) : on_stmt_(on_stmt), on_expr_(on_expr) {}

  void expr(const Expr* e) {
    if (!e) return;
    on_expr_(*e);
    switch (e->kind) {
      case ExprKind::kConstant:
      case ExprKind::kName:
      case ExprKind::kEllipsis:
        break;
      case ExprKind::kTuple:
        all(as<Tuple>(*e).items);
        break;
      case ExprKind::kList:
        all(as<List>(*e).items);
        break;
      case ExprKind::kSet:
        all(as<Set>(*e).items);
        break;
      case ExprKind::kDict: {
        const auto& d = as<Dict>(*e);
        // A `**mapping` entry has no key.
        for (size_t i = 0; i < d.values.size(); ++i) expr(d.keys[i].get()), expr(d.values[i].get());
        break;
      }
      case ExprKind::kUnary:
        expr(as<Unary>(*e).operand.get());
        break;
      case ExprKind::kBinary:
        expr(as<Binary>(*e).left.get()), expr(as<Binary>(*e).right.get());
        break;
      case ExprKind::kBoolOp:
        all(as<BoolOp>(*e).values);
        break;
      case ExprKind::kCompare:
        expr(as<Compare>(*e).left.get()), all(as<Compare>(*e).rights);
        break;
      case ExprKind::kIfExp: {
        const auto& i = as<IfExp>(*e);
        expr(i.then_value.get()), expr(i.condition.get()), expr(i.else_value.get());
        break;
      }
      case ExprKind::kCall: {
        const auto& c = as<Call>(*e);
        expr(c.callee.get()), all(c.args);
        for (const Keyword& k : c.keywords) expr(k.value.get());
        break;
      }
      case ExprKind::kAttribute:
        expr(as<Attribute>(*e).base.get());
        break;
      case ExprKind::kSubscript:
        expr(as<Subscript>(*e).base.get()), expr(as<Subscript>(*e).index.get());
        break;
      case ExprKind::kSlice: {
        const auto& s = as<Slice>(*e);
        expr(s.lower.get()), expr(s.upper.get()), expr(s.step.get());
        break;
      }
      case ExprKind::kLambda:
        params(as<Lambda>(*e).params), expr(as<Lambda>(*e).body.get());
        break;
      case ExprKind::kComprehension: {
        const auto& c = as<Comprehension>(*e);
        expr(c.element.get()), expr(c.value.get());
        for (const ForClause& f : c.clauses) expr(f.target.get()), expr(f.iterable.get()), all(f.conditions);
        break;
      }
      case ExprKind::kStarred:
        expr(as<Starred>(*e).value.get());
        break;
      case ExprKind::kJoinedStr:
        for (const JoinedStr::Piece& p : as<JoinedStr>(*e).pieces) expr(p.value.get()), expr(p.spec.get());
        break;
      case ExprKind::kNamedExpr:
        expr(as<NamedExpr>(*e).value.get());
        break;
      case ExprKind::kYield:
        expr(as<Yield>(*e).value.get());
        break;
    }
  }

  void body(const Body& statements) {
    for (const StmtPtr& s : statements) {
      if (on_stmt_) (*on_stmt_)(*s);
      stmt(*s);
    }
  }

 private:
  void all(const std::vector<ExprPtr>& list) {
    for (const ExprPtr& item : list) expr(item.get());
  }
  void params(const std::vector<Param>& list) {
    for (const Param& p : list) expr(p.default_value.get());
  }

  // Annotations are not visited: they are not evaluated.
  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kPass:
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kImport:
      case StmtKind::kGlobal:
        break;
      case StmtKind::kExpr:
        expr(as<ExprStmt>(s).value.get());
        break;
      case StmtKind::kAssign:
        all(as<Assign>(s).targets), expr(as<Assign>(s).value.get());
        break;
      case StmtKind::kAugAssign:
        expr(as<AugAssign>(s).target.get()), expr(as<AugAssign>(s).value.get());
        break;
      case StmtKind::kAnnAssign:
        expr(as<AnnAssign>(s).target.get()), expr(as<AnnAssign>(s).value.get());
        break;
      case StmtKind::kFor: {
        const auto& f = as<For>(s);
        expr(f.target.get()), expr(f.iterable.get()), body(f.body), body(f.else_body);
        break;
      }
      case StmtKind::kWhile: {
        const auto& w = as<While>(s);
        expr(w.condition.get()), body(w.body), body(w.else_body);
        break;
      }
      case StmtKind::kIf: {
        const auto& i = as<If>(s);
        expr(i.condition.get()), body(i.body), body(i.else_body);
        break;
      }
      case StmtKind::kFunctionDef: {
        const auto& f = as<FunctionDef>(s);
        all(f.decorators), params(f.params), body(f.body);
        break;
      }
      case StmtKind::kClassDef: {
        const auto& c = as<ClassDef>(s);
        all(c.decorators), all(c.bases);
        for (const Keyword& k : c.keywords) expr(k.value.get());
        body(c.body);
        break;
      }
      case StmtKind::kReturn:
        expr(as<Return>(s).value.get());
        break;
      case StmtKind::kAssert:
        expr(as<Assert>(s).condition.get()), expr(as<Assert>(s).message.get());
        break;
      case StmtKind::kDel:
        all(as<Del>(s).targets);
        break;
      case StmtKind::kWith: {
        const auto& w = as<With>(s);
        for (const With::Item& item : w.items) expr(item.context.get()), expr(item.target.get());
        body(w.body);
        break;
      }
      case StmtKind::kTry: {
        const auto& t = as<Try>(s);
        body(t.body);
        for (const Try::Handler& h : t.handlers) expr(h.type.get()), body(h.body);
        body(t.else_body), body(t.finally_body);
        break;
      }
      case StmtKind::kRaise:
        expr(as<Raise>(s).value.get()), expr(as<Raise>(s).cause.get());
        break;
      case StmtKind::kUnsupported:
        break;
      case StmtKind::kMatch:
        expr(as<Match>(s).subject.get());
        for (const Match::Case& c : as<Match>(s).cases) pattern(c.pattern), expr(c.guard.get()), body(c.body);
        break;
    }
  }
  void pattern(const Pattern& p) {
    expr(p.value.get()), all(p.keys);
    for (const Pattern& part : p.parts) pattern(part);
  }

  const OnStmt* on_stmt_;
  const OnExpr& on_expr_;
};

}  // namespace

void walk(const Expr* e, const OnExpr& on_expr) { Walker(nullptr, on_expr).expr(e); }

void walk(const Body& body, const OnStmt& on_stmt, const OnExpr& on_expr) { Walker(&on_stmt, on_expr).body(body); }

}  // namespace kiln::ast
