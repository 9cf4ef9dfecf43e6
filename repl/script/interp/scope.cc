#include "repl/script/interp/scope.h"

#include <algorithm>

#include "repl/script/value/bytes.h"

namespace kiln::script {

using namespace ast;

uint32_t Globals::index(std::string_view name) {
  auto [it, added] = by_name_.try_emplace(std::string(name), static_cast<uint32_t>(slots_.size()));
  if (added) slots_.push_back({it->first, {}, {}});
  return it->second;
}

Globals::Slot* Globals::find(std::string_view name) {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &slots_[it->second];
}

void NodeMap::set(const void* node, NameRef ref) {
  // At most half full, so that linear probing stays short; every evaluation of a name looks here.
  if (2 * (size_ + 1) > slots_.size()) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<size_t>(16, slots_.size() * 2)));
    size_ = 0;
    for (const Slot& s : old)
      if (s.node) set(s.node, s.ref);
  }
  size_t i = hash(node) & (slots_.size() - 1);
  while (slots_[i].node && slots_[i].node != node) i = (i + 1) & (slots_.size() - 1);
  if (!slots_[i].node) ++size_;
  slots_[i] = {node, ref};
}

size_t Code::parameter(std::string_view wanted) const {
  if (!parameters.empty()) {
    auto it = parameters.find(wanted);
    return it == parameters.end() ? slot_names.size() : it->second;
  }
  for (size_t i = 0; i < parameter_count; ++i)
    if (slot_names[i] == wanted) return i;
  return slot_names.size();
}

void Code::index_parameters() {
  // Below this a linear search of the names is cheaper than hashing one.
  constexpr size_t kFew = 8;
  for (size_t i = 0; parameter_count > kFew && i < parameter_count; ++i) parameters.try_emplace(slot_names[i], i);
}

namespace {

/// What a comprehension calls its variables inside the function around it: `i` → `i#2`, which no script can name.
using Renames = std::vector<std::pair<std::string, std::string>>;

struct Scope {
  enum class Form { kText, kFunction, kClass } form;
  Scope* parent = nullptr;
  const void* node = nullptr;
  Code* code = nullptr;
  bool is_generator = false;
  size_t yields = 0;
  std::vector<std::string> locals;                     // parameters first
  std::unordered_map<std::string, int> places;         // in locals
  std::vector<std::pair<std::string, bool>> declared;  // global (true) and nonlocal (false) names
  std::vector<bool> captured;                          // per local
  struct Use {
    const void* key;
    std::string name;
    SourceRange range;
    bool past_class = false;  // does not see the names of the class's body
  };
  std::vector<Use> uses;
  bool in_comprehension = false;  // behind the first iterable of one
  Renames renames;                // in force now, innermost last
  Renames renames_at_parent;      // of the parent, where this scope stands
  std::unordered_map<std::string, uint32_t> free_index;

  int find_local(const std::string& name) const {
    auto it = places.find(name);
    return it == places.end() ? -1 : it->second;
  }
  void add_local(const std::string& name) {
    places.try_emplace(name, static_cast<int>(locals.size()));
    locals.push_back(name);
  }
  bool is_declared(const std::string& name) const {
    return std::any_of(declared.begin(), declared.end(), [&](const auto& d) { return d.first == name; });
  }
  bool is_global(const std::string& name) const {
    return std::any_of(declared.begin(), declared.end(), [&](const auto& d) { return d.first == name && d.second; });
  }
};

std::string renamed(const Renames& renames, const std::string& name) {
  for (auto it = renames.rbegin(); it != renames.rend(); ++it)
    if (it->first == name) return it->second;
  return name;
}

class Resolver {
 public:
  Resolver(Program& program, Globals& globals) : program_(program), globals_(globals) {}

  Status run() {
    // Three passes, because a name's place depends on the whole function: an assignment below makes it local above, and
    // an inner function met later makes a local a cell.
    Scope* top = open(Scope::Form::kText, nullptr, nullptr, "<module>");
    body(program_.module->body, *top);
    if (error_) return std::move(*error_);
    for (auto& s : scopes_) resolve_uses(*s);
    if (error_) return std::move(*error_);
    for (auto& s : scopes_) emit(*s);
    return {};
  }

 private:
  Scope* open(Scope::Form form, Scope* parent, const void* node, std::string name) {
    auto& code = program_.codes[node];
    code = std::make_unique<Code>();
    code->name = std::move(name);
    code->is_class = form == Scope::Form::kClass;
    code->qualified_name = code->name;
    if (parent && parent->form != Scope::Form::kText && !parent->is_global(code->name))
      code->qualified_name =
          parent->code->qualified_name + (parent->form == Scope::Form::kClass ? "." : ".<locals>.") + code->name;
    scopes_.push_back(std::make_unique<Scope>());
    Scope* s = scopes_.back().get();
    s->form = form;
    s->parent = parent;
    s->node = node;
    s->code = code.get();
    if (parent) s->renames_at_parent = parent->renames;
    return s;
  }

  void bind(const void* key, const std::string& name, SourceRange range, Scope& s) {
    if (s.form != Scope::Form::kText && !s.is_declared(name) && s.find_local(name) < 0) s.add_local(name);
    s.uses.push_back({key, name, range});
  }

  // --- collecting
  // -----------------------------------------------------------------------------------------------------
  void body(const Body& stmts, Scope& s) {
    for (const StmtPtr& st : stmts) stmt(*st, s);
  }

  void declare(const Body& stmts, Scope& s) {
    for (const StmtPtr& st : stmts) {
      if (const auto* g = dyn_as<Global>(st.get())) {
        for (const std::string& name : g->names) s.declared.emplace_back(name, !g->nonlocal);
      } else if (const auto* i = dyn_as<If>(st.get())) {
        declare(i->body, s), declare(i->else_body, s);
      } else if (const auto* f = dyn_as<For>(st.get())) {
        declare(f->body, s), declare(f->else_body, s);
      } else if (const auto* w = dyn_as<While>(st.get())) {
        declare(w->body, s), declare(w->else_body, s);
      } else if (const auto* w2 = dyn_as<With>(st.get())) {
        declare(w2->body, s);
      } else if (const auto* t = dyn_as<Try>(st.get())) {
        declare(t->body, s), declare(t->else_body, s), declare(t->finally_body, s);
        for (const auto& h : t->handlers) declare(h.body, s);
      } else if (const auto* m = dyn_as<Match>(st.get())) {
        for (const auto& c : m->cases) declare(c.body, s);
      }
    }
  }

  void pattern(const Pattern& p, Scope& s) {
    expr(p.value.get(), s), exprs(p.keys, s);
    for (const Pattern& part : p.parts) pattern(part, s);
    for (const std::string* name : {&p.name, &p.rest})
      if (!name->empty()) bind(binding_key(*name), *name, p.range, s);
  }

  void target(const Expr& e, Scope& s) {
    switch (e.kind) {
      case ExprKind::kName:
        bind(&e, as<Name>(e).id, e.range, s);
        return;
      case ExprKind::kTuple:
        for (const ExprPtr& i : as<ast::Tuple>(e).items) target(*i, s);
        return;
      case ExprKind::kList:
        for (const ExprPtr& i : as<ast::List>(e).items) target(*i, s);
        return;
      case ExprKind::kStarred:
        target(*as<Starred>(e).value, s);
        return;
      default:
        expr(&e, s);  // attributes and elements bind no name
    }
  }

  void params(const std::vector<Param>& list, Scope& outer, Scope& inner) {
    for (const Param& p : list) {
      // Defaults are evaluated where the function is defined, so their names belong to the scope around it.
      expr(p.default_value.get(), outer);
      inner.add_local(p.name);
    }
    inner.code->parameter_count = list.size();
  }

  void stmt(const Stmt& st, Scope& s) {
    const size_t before = s.yields;
    statement(st, s);
    if (s.yields != before) s.code->yielding.insert(&st);
  }

  /// The whole value of a statement: the only place where a generator can be suspended.
  void value(const Expr* e, Scope& s) {
    const auto* y = dyn_as<Yield>(e);
    if (!y) return expr(e, s);
    ++s.yields;
    expr(y->value.get(), s);
  }

  void statement(const Stmt& st, Scope& s) {
    switch (st.kind) {
      case StmtKind::kExpr:
        value(as<ExprStmt>(st).value.get(), s);
        return;
      case StmtKind::kAssign: {
        const auto& n = as<Assign>(st);
        value(n.value.get(), s);
        for (const ExprPtr& t : n.targets) target(*t, s);
        return;
      }
      case StmtKind::kAugAssign: {
        const auto& n = as<AugAssign>(st);
        value(n.value.get(), s);
        target(*n.target, s);
        return;
      }
      case StmtKind::kAnnAssign: {
        const auto& n = as<AnnAssign>(st);
        value(n.value.get(), s);
        if (n.annotation->kind == ExprKind::kAttribute) expr(n.annotation.get(), s);  // tl.constexpr is a call
        target(*n.target, s);
        return;
      }
      case StmtKind::kFor: {
        const auto& n = as<For>(st);
        expr(n.iterable.get(), s);
        target(*n.target, s);
        body(n.body, s), body(n.else_body, s);
        return;
      }
      case StmtKind::kWhile:
        expr(as<While>(st).condition.get(), s), body(as<While>(st).body, s), body(as<While>(st).else_body, s);
        return;
      case StmtKind::kIf:
        expr(as<If>(st).condition.get(), s), body(as<If>(st).body, s), body(as<If>(st).else_body, s);
        return;
      case StmtKind::kFunctionDef: {
        const auto& n = as<FunctionDef>(st);
        exprs(n.decorators, s);
        bind(binding_key(n.name), n.name, n.name_range, s);
        // A kernel's body is the compiler's to read; its names must not become captured variables of the script, but
        // what it reads from a function around it must.
        Scope* inner = open(Scope::Form::kFunction, &s, &st, n.name);
        params(n.params, s, *inner);
        declare(n.body, *inner);
        body(n.body, *inner);
        return;
      }
      case StmtKind::kClassDef: {
        const auto& n = as<ClassDef>(st);
        exprs(n.decorators, s), exprs(n.bases, s);
        for (const Keyword& k : n.keywords) expr(k.value.get(), s);
        bind(binding_key(n.name), n.name, n.range, s);
        Scope* inner = open(Scope::Form::kClass, &s, &st, n.name);
        declare(n.body, *inner);
        body(n.body, *inner);
        return;
      }
      case StmtKind::kReturn:
        value(as<Return>(st).value.get(), s);
        return;
      case StmtKind::kImport:
        for (const auto& a : as<Import>(st).names) {
          if (a.name == "*") continue;
          std::string name = !a.as.empty()                        ? a.as
                             : as<Import>(st).from_module.empty() ? a.name.substr(0, a.name.find('.'))
                                                                  : a.name;
          bind(binding_key(a.name), name, a.range, s);
        }
        return;
      case StmtKind::kAssert:
        expr(as<Assert>(st).condition.get(), s), expr(as<Assert>(st).message.get(), s);
        return;
      case StmtKind::kDel:
        for (const ExprPtr& t : as<Del>(st).targets) target(*t, s);
        return;
      case StmtKind::kGlobal:
        for (const std::string& name : as<Global>(st).names)
          if (as<Global>(st).nonlocal && !enclosing_has(name, s))
            fail(error_at(st.range, ErrorKind::kSyntax, "no function around this one has a variable '{}'", name));
        return;
      case StmtKind::kWith:
        for (const auto& item : as<With>(st).items) {
          expr(item.context.get(), s);
          if (item.target) target(*item.target, s);
        }
        body(as<With>(st).body, s);
        return;
      case StmtKind::kTry: {
        const auto& n = as<Try>(st);
        body(n.body, s);
        for (const auto& h : n.handlers) {
          expr(h.type.get(), s);
          if (!h.name.empty()) bind(binding_key(h.name), h.name, h.range, s);
          body(h.body, s);
        }
        body(n.else_body, s), body(n.finally_body, s);
        return;
      }
      case StmtKind::kRaise:
        expr(as<Raise>(st).value.get(), s), expr(as<Raise>(st).cause.get(), s);
        return;
      case StmtKind::kMatch:
        expr(as<Match>(st).subject.get(), s);
        for (const Match::Case& c : as<Match>(st).cases) pattern(c.pattern, s), expr(c.guard.get(), s), body(c.body, s);
        return;
      case StmtKind::kPass:
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kUnsupported:
        return;
    }
  }

  void exprs(const std::vector<ExprPtr>& list, Scope& s) {
    for (const ExprPtr& e : list) expr(e.get(), s);
  }

  void expr(const Expr* e, Scope& s) {
    if (!e) return;
    switch (e->kind) {
      case ExprKind::kConstant:
        constant(as<ConstantExpr>(*e));
        return;
      case ExprKind::kName:
        use_name(*e, renamed(s.renames, as<Name>(*e).id), s);
        return;
      case ExprKind::kTuple:
        exprs(as<ast::Tuple>(*e).items, s);
        return;
      case ExprKind::kList:
        exprs(as<ast::List>(*e).items, s);
        return;
      case ExprKind::kSet:
        exprs(as<ast::Set>(*e).items, s);
        return;
      case ExprKind::kDict:
        exprs(as<ast::Dict>(*e).keys, s), exprs(as<ast::Dict>(*e).values, s);
        return;
      case ExprKind::kUnary:
        expr(as<Unary>(*e).operand.get(), s);
        return;
      case ExprKind::kBinary:
        expr(as<Binary>(*e).left.get(), s), expr(as<Binary>(*e).right.get(), s);
        return;
      case ExprKind::kBoolOp:
        exprs(as<BoolOp>(*e).values, s);
        return;
      case ExprKind::kCompare:
        expr(as<Compare>(*e).left.get(), s), exprs(as<Compare>(*e).rights, s);
        return;
      case ExprKind::kIfExp: {
        const auto& n = as<IfExp>(*e);
        expr(n.condition.get(), s), expr(n.then_value.get(), s), expr(n.else_value.get(), s);
        return;
      }
      case ExprKind::kCall: {
        const auto& n = as<ast::Call>(*e);
        expr(n.callee.get(), s), exprs(n.args, s);
        for (const Keyword& k : n.keywords) expr(k.value.get(), s);
        return;
      }
      case ExprKind::kAttribute:
        expr(as<Attribute>(*e).base.get(), s);
        return;
      case ExprKind::kSubscript:
        expr(as<Subscript>(*e).base.get(), s), expr(as<Subscript>(*e).index.get(), s);
        return;
      case ExprKind::kSlice:
        expr(as<Slice>(*e).lower.get(), s), expr(as<Slice>(*e).upper.get(), s), expr(as<Slice>(*e).step.get(), s);
        return;
      case ExprKind::kLambda: {
        const auto& n = as<Lambda>(*e);
        Scope* inner = open(Scope::Form::kFunction, &s, e, "<lambda>");
        params(n.params, s, *inner);
        expr(n.body.get(), *inner);
        return;
      }
      case ExprKind::kComprehension:
        comprehension(as<Comprehension>(*e), s);
        return;
      case ExprKind::kStarred:
        expr(as<Starred>(*e).value.get(), s);
        return;
      case ExprKind::kJoinedStr:
        for (const auto& p : as<JoinedStr>(*e).pieces) expr(p.value.get(), s), expr(p.spec.get(), s);
        return;
      case ExprKind::kNamedExpr:
        expr(as<NamedExpr>(*e).value.get(), s);
        named(as<NamedExpr>(*e), s);
        return;
      case ExprKind::kYield:
        fail(
            with_note(error_at(e->range, ErrorKind::kUnsupported, "a 'yield' inside of an expression is not supported"),
                      "help: assign its value to a name first, as in x = yield y"));
        return;
      case ExprKind::kEllipsis:
        return;
    }
  }

  void constant(const ConstantExpr& e) {
    program_.names.set(&e, {NameRef::Where::kConstant, static_cast<uint32_t>(program_.constants.size())});
    program_.constants.push_back(e.is_bytes ? Value(make<Bytes>(std::get<std::string>(e.value))) : Value::of(e.value));
  }

  void use_name(const Expr& e, std::string name, Scope& s) {
    // As in Python, a comprehension in a class's body sees its own variables and those around the class.
    const bool past_class = s.form == Scope::Form::kClass && s.in_comprehension && name.find('#') == std::string::npos;
    s.uses.push_back({&e, std::move(name), e.range, past_class});
  }

  void hide_names(const Expr& t, Scope& s) {
    if (const auto* n = dyn_as<Name>(&t)) {
      std::string hidden = n->id + "#" + std::to_string(++comprehensions_);
      s.add_local(hidden);
      s.renames.emplace_back(n->id, hidden);
      s.uses.push_back({&t, hidden, t.range});
    } else if (const auto* tuple = dyn_as<ast::Tuple>(&t)) {
      for (const ExprPtr& i : tuple->items) hide_names(*i, s);
    } else if (const auto* list = dyn_as<ast::List>(&t)) {
      for (const ExprPtr& i : list->items) hide_names(*i, s);
    } else if (const auto* star = dyn_as<Starred>(&t)) {
      hide_names(*star->value, s);
    } else {
      fail(error_at(t.range, ErrorKind::kUnsupported, "a comprehension's variable must be a plain name"));
    }
  }

  /// `name := value` in a generator is a variable of the function around it.
  void named(const NamedExpr& e, Scope& s) {
    Scope* owner = &s;
    while (owner->is_generator) owner = owner->parent;
    if (owner != &s && owner->form != Scope::Form::kText && !owner->is_declared(e.target) &&
        owner->find_local(e.target) < 0)
      owner->add_local(e.target);
    if (owner == &s)
      bind(binding_key(e.target), e.target, e.range, s);
    else
      s.uses.push_back({binding_key(e.target), e.target, e.range});
  }

  /// It runs after the expression was evaluated: its variables are its own, as a function's are.
  void generator(const Comprehension& e, Scope& s) {
    // The first iterable is evaluated at once and outside, as Python does; only the rest runs later.
    expr(e.clauses[0].iterable.get(), s);
    Scope* inner = open(Scope::Form::kFunction, &s, &e, "<genexpr>");
    inner->is_generator = true;
    for (size_t i = 0; i < e.clauses.size(); ++i) {
      if (i > 0) expr(e.clauses[i].iterable.get(), *inner);
      target(*e.clauses[i].target, *inner);
      exprs(e.clauses[i].conditions, *inner);
    }
    expr(e.element.get(), *inner);
  }

  void comprehension(const Comprehension& e, Scope& s) {
    if (e.form == Comprehension::Form::kGenerator) return generator(e, s);
    size_t outer = s.renames.size();
    const bool inside = s.in_comprehension;
    for (const ForClause& c : e.clauses) {
      expr(c.iterable.get(), s);
      s.in_comprehension = true;
      hide_names(*c.target, s);
      exprs(c.conditions, s);
    }
    expr(e.element.get(), s), expr(e.value.get(), s);
    s.renames.resize(outer);
    s.in_comprehension = inside;
  }

  bool enclosing_has(const std::string& name, const Scope& s) const {
    for (const Scope* p = s.parent; p; p = p->parent)
      if (p->form == Scope::Form::kFunction && p->find_local(name) >= 0) return true;
    return false;
  }

  // --- resolving
  // ------------------------------------------------------------------------------------------------------
  /// Finds the cell of `name` for a scope inside `parent`; makes every scope between hand it down. -1: no such
  /// variable.
  int free_variable(Scope& s, const std::string& name) {
    if (auto it = s.free_index.find(name); it != s.free_index.end()) return static_cast<int>(it->second);
    Scope* p = s.parent;
    if (!p) return -1;
    std::string theirs = renamed(s.renames_at_parent, name);
    // Methods do not see the names of their class's body, as in Python; a comprehension's hidden variables they do see.
    bool visible = p->form != Scope::Form::kClass || theirs != name;
    Code::FreeVariable v{name, true, 0};
    int local = visible && !p->is_global(theirs) ? p->find_local(theirs) : -1;
    if (local >= 0) {
      p->captured.resize(p->locals.size());
      p->captured[static_cast<size_t>(local)] = true;
      v.index = static_cast<uint32_t>(local);
    } else {
      if (visible && p->is_global(theirs)) return -1;
      int outer = free_variable(*p, theirs);
      if (outer < 0) return -1;
      v.from_cell = false;
      v.index = static_cast<uint32_t>(outer);
    }
    s.code->free.push_back(v);
    uint32_t index = static_cast<uint32_t>(s.code->free.size() - 1);
    s.free_index.emplace(name, index);
    return static_cast<int>(index);
  }

  /// -1: no variable of this scope.
  static int own_variable(const Scope& s, const Scope::Use& u) {
    return u.past_class || s.is_global(u.name) ? -1 : s.find_local(u.name);
  }

  void resolve_uses(Scope& s) {
    for (Scope::Use& u : s.uses) {
      if (s.is_global(u.name) || own_variable(s, u) >= 0) continue;
      int free = free_variable(s, u.name);
      if (free >= 0) program_.names.set(u.key, {NameRef::Where::kFree, static_cast<uint32_t>(free)});
    }
  }

  void emit(Scope& s) {
    s.captured.resize(s.locals.size());
    s.code->slot_names = s.locals;
    s.code->index_parameters();
    for (uint32_t i = 0; i < s.locals.size(); ++i)
      if (s.captured[i]) s.code->cell_slots.push_back(i);
    for (const Scope::Use& u : s.uses) {
      int local = own_variable(s, u);
      if (local >= 0) {
        auto where = s.captured[static_cast<size_t>(local)] ? NameRef::Where::kCell : NameRef::Where::kLocal;
        program_.names.set(u.key, {where, static_cast<uint32_t>(local)});
      } else if (program_.names.find(u.key).where != NameRef::Where::kFree) {
        program_.names.set(u.key, {NameRef::Where::kGlobal, globals_.index(u.name)});
      }
    }
  }

  void fail(Diagnostic d) {
    if (!error_) error_ = std::move(d);
  }

  Program& program_;
  Globals& globals_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  int comprehensions_ = 0;
  std::optional<Diagnostic> error_;
};

}  // namespace

Result<std::shared_ptr<const Program>> resolve(std::shared_ptr<const Module> module, Globals& globals) {
  auto program = std::make_shared<Program>();
  program->module = std::move(module);
  program->globals = &globals;
  if (Status s = Resolver(*program, globals).run(); !s.ok()) return std::move(s.error());
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace kiln::script
