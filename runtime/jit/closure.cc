#include "runtime/jit/closure.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/builtins.h"

namespace kiln::runtime {
namespace {

using namespace ast;

// Collects the names that are read and those that are bound.
class Names {
 public:
  std::set<std::string> read, bound;
  std::set<std::string> members;  // "a.b", "a.b.c", …: chains of attributes of a name

  void visit(const Body& body) {
    for (const StmtPtr& s : body) visit(*s);
  }

  void bind(const Expr* target) {
    if (!target) return;
    if (auto* name = dyn_as<Name>(target)) {
      bound.insert(name->id);
    } else if (auto* tuple = dyn_as<Tuple>(target)) {
      for (const ExprPtr& item : tuple->items) bind(item.get());
    } else if (auto* list = dyn_as<List>(target)) {
      for (const ExprPtr& item : list->items) bind(item.get());
    } else if (auto* starred = dyn_as<Starred>(target)) {
      bind(starred->value.get());
    } else {
      visit(target);  // x[i] = …, x.y = …: reads of x and i
    }
  }

  void visit(const Expr* e) {
    if (!e) return;
    switch (e->kind) {
      case ExprKind::kConstant:
      case ExprKind::kEllipsis:
        return;
      case ExprKind::kName:
        read.insert(as<Name>(*e).id);
        if (!bound.contains(as<Name>(*e).id)) read_first_.insert(as<Name>(*e).id);
        return;
      case ExprKind::kTuple:
        return visit_all(as<Tuple>(*e).items);
      case ExprKind::kList:
        return visit_all(as<List>(*e).items);
      case ExprKind::kSet:
        return visit_all(as<Set>(*e).items);
      case ExprKind::kDict:
        visit_all(as<Dict>(*e).keys);
        return visit_all(as<Dict>(*e).values);
      case ExprKind::kUnary:
        return visit(as<Unary>(*e).operand.get());
      case ExprKind::kBinary:
        visit(as<Binary>(*e).left.get());
        return visit(as<Binary>(*e).right.get());
      case ExprKind::kBoolOp:
        return visit_all(as<BoolOp>(*e).values);
      case ExprKind::kCompare:
        visit(as<Compare>(*e).left.get());
        return visit_all(as<Compare>(*e).rights);
      case ExprKind::kIfExp: {
        auto& x = as<IfExp>(*e);
        visit(x.condition.get()), visit(x.then_value.get());
        return visit(x.else_value.get());
      }
      case ExprKind::kCall: {
        auto& call = as<Call>(*e);
        visit(call.callee.get());
        visit_all(call.args);
        for (const Keyword& k : call.keywords) visit(k.value.get());
        return;
      }
      // A dotted path may be a member of a module that the script wrote, which is watched as names are.
      case ExprKind::kAttribute:
        if (std::string path = dotted(*e); !path.empty()) members.insert(std::move(path));
        return visit(as<Attribute>(*e).base.get());
      case ExprKind::kSubscript:
        visit(as<Subscript>(*e).base.get());
        return visit(as<Subscript>(*e).index.get());
      case ExprKind::kSlice: {
        auto& slice = as<Slice>(*e);
        visit(slice.lower.get()), visit(slice.upper.get());
        return visit(slice.step.get());
      }
      case ExprKind::kLambda: {
        for (const Param& p : as<Lambda>(*e).params) bound.insert(p.name), visit(p.default_value.get());
        return visit(as<Lambda>(*e).body.get());
      }
      case ExprKind::kComprehension: {
        auto& c = as<Comprehension>(*e);
        for (const ForClause& clause : c.clauses) {
          visit(clause.iterable.get()), bind(clause.target.get());
          visit_all(clause.conditions);
        }
        visit(c.element.get());
        return visit(c.value.get());
      }
      case ExprKind::kStarred:
        return visit(as<Starred>(*e).value.get());
      case ExprKind::kJoinedStr:
        for (const JoinedStr::Piece& piece : as<JoinedStr>(*e).pieces)
          visit(piece.value.get()), visit(piece.spec.get());
        return;
      case ExprKind::kYield:
        return visit(as<Yield>(*e).value.get());
      case ExprKind::kNamedExpr:
        bound.insert(as<NamedExpr>(*e).target);
        return visit(as<NamedExpr>(*e).value.get());
    }
  }

  void visit(const Pattern& p) {
    visit(p.value.get()), visit_all(p.keys);
    for (const std::string& name : {p.name, p.rest})
      if (!name.empty()) bound.insert(name);
    for (const Pattern& part : p.parts) visit(part);
  }

  void visit(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kUnsupported:
        return;
      case StmtKind::kMatch:
        visit(as<Match>(s).subject.get());
        for (const Match::Case& c : as<Match>(s).cases) visit(c.pattern), visit(c.guard.get()), visit(c.body);
        return;
      case StmtKind::kExpr:
        return visit(as<ExprStmt>(s).value.get());
      case StmtKind::kAssign:
        // The value first, as Python evaluates it: `n = n` reads what is outside.
        visit(as<Assign>(s).value.get());
        for (const ExprPtr& target : as<Assign>(s).targets) bind(target.get());
        return;
      case StmtKind::kAugAssign:
        visit(as<AugAssign>(s).target.get()), visit(as<AugAssign>(s).value.get());
        return bind(as<AugAssign>(s).target.get());
      case StmtKind::kAnnAssign: {
        auto& a = as<AnnAssign>(s);
        visit(a.annotation.get()), visit(a.value.get());
        return bind(a.target.get());
      }
      case StmtKind::kFor: {
        auto& loop = as<For>(s);
        visit(loop.iterable.get()), bind(loop.target.get()), visit(loop.body);
        return visit(loop.else_body);
      }
      case StmtKind::kWhile: {
        auto& loop = as<While>(s);
        visit(loop.condition.get()), visit(loop.body);
        return visit(loop.else_body);
      }
      case StmtKind::kIf: {
        auto& branch = as<If>(s);
        visit(branch.condition.get()), visit(branch.body);
        return visit(branch.else_body);
      }
      case StmtKind::kFunctionDef: {
        auto& def = as<FunctionDef>(s);
        bound.insert(def.name);
        for (const Param& p : def.params) bound.insert(p.name), visit(p.default_value.get());
        return visit(def.body);
      }
      case StmtKind::kClassDef:
        bound.insert(as<ClassDef>(s).name);
        return visit(as<ClassDef>(s).body);
      case StmtKind::kReturn:
        return visit(as<Return>(s).value.get());
      case StmtKind::kPass:
      case StmtKind::kBreak:
      case StmtKind::kContinue:
        return;
      case StmtKind::kImport:
        for (const Import::Alias& a : as<Import>(s).names) bound.insert(a.as.empty() ? a.name : a.as);
        return;
      case StmtKind::kAssert:
        visit(as<Assert>(s).condition.get());
        return visit(as<Assert>(s).message.get());
      case StmtKind::kDel:
        return visit_all(as<Del>(s).targets);
      case StmtKind::kGlobal:
        // Declared global, hence not bound here.
        for (const std::string& n : as<ast::Global>(s).names) declared_global_.insert(n);
        return;
      case StmtKind::kWith: {
        for (const With::Item& item : as<With>(s).items) visit(item.context.get()), bind(item.target.get());
        return visit(as<With>(s).body);
      }
      case StmtKind::kTry: {
        auto& t = as<Try>(s);
        visit(t.body);
        for (const Try::Handler& h : t.handlers) {
          visit(h.type.get());
          if (!h.name.empty()) bound.insert(h.name);
          visit(h.body);
        }
        visit(t.else_body);
        return visit(t.finally_body);
      }
      case StmtKind::kRaise:
        return visit(as<Raise>(s).value.get());
    }
  }

  /// A parameter's default is outside of the function: `n` of `def f(n=n)` is another n.
  void visit_defaults(const FunctionDef& def) {
    Names defaults;
    for (const Param& p : def.params) defaults.visit(p.default_value.get());
    declared_global_.insert(defaults.read.begin(), defaults.read.end());
    read.merge(defaults.read);
    members.merge(defaults.members);
  }

  /// As in Triton, a name means what is outside until the function binds it.
  std::vector<std::string> free() const {
    std::vector<std::string> names;
    for (const std::string& n : read)
      if (!bound.count(n) || read_first_.count(n) || declared_global_.count(n)) names.push_back(n);
    return names;
  }

 private:
  static std::string dotted(const Expr& e) {
    if (const auto* name = dyn_as<Name>(&e)) return name->id;
    const auto* attribute = dyn_as<Attribute>(&e);
    if (!attribute) return {};
    std::string base = dotted(*attribute->base);
    return base.empty() ? base : base + "." + attribute->name;
  }
  void visit_all(const std::vector<ExprPtr>& list) {
    for (const ExprPtr& e : list) visit(e.get());
  }
  std::set<std::string> declared_global_;  // or read where nothing of the function is bound
  std::set<std::string> read_first_;       // before the function binds them
};

using frontend::JitFunction;

// Equality of what can be watched; functions compare by identity.
bool same_named_tuples(const JitFunction& a, const JitFunction& b);

bool same(const frontend::Global& a, const frontend::Global& b) {
  if (a.index() != b.index()) return false;
  if (auto* c = std::get_if<Constant>(&a))
    // Python's 1 == True == 1.0 are three constants to a compiler.
    return *c == std::get<Constant>(b) && c->index() == std::get<Constant>(b).index();
  if (auto* f = std::get_if<std::shared_ptr<const JitFunction>>(&a)) {
    const auto& other = std::get<std::shared_ptr<const JitFunction>>(b);
    return *f == other || (*f)->def == other->def || same_named_tuples(**f, *other);
  }
  return describe(a) == describe(b);
}

/// A script's NamedTuple is made a function each time that it is asked for. Its text names the fields, and not what
/// they are unless given.
bool same_named_tuples(const JitFunction& a, const JitFunction& b) {
  if (!a.named_tuple || !b.named_tuple || a.module->source->text() != b.module->source->text()) return false;
  return std::ranges::all_of(a.def->params, [&](const Param& p) {
    const auto x = a.default_of ? a.default_of(p.name) : std::nullopt;
    const auto y = b.default_of ? b.default_of(p.name) : std::nullopt;
    return x && y ? same(*x, *y) : x.has_value() == y.has_value();
  });
}

Names names_of(const FunctionDef& def) {
  Names names;
  for (const Param& p : def.params) names.bound.insert(p.name);
  names.visit(def.body);
  names.visit_defaults(def);
  return names;
}

/// The value of a name, or of a member of a module that is a text of the script's (`helpers.f`).
std::optional<frontend::Global> value_of(const JitFunction& function, std::string_view path) {
  size_t dot = path.find('.');
  std::optional<frontend::Global> value = function.lookup ? function.lookup(path.substr(0, dot)) : std::nullopt;
  while (value && dot != std::string_view::npos) {
    const auto* module = std::get_if<frontend::ModulePath>(&*value);
    if (!module || frontend::is_known_module(module->path) || !function.member) return std::nullopt;
    path.remove_prefix(dot + 1);
    dot = path.find('.');
    value = function.member(module->path, path.substr(0, dot));
  }
  return value;
}

/// " x y" for a NamedTuple, nothing for other tuples.
std::string fields_of(const frontend::GlobalTuple& tuple) {
  std::string text;
  for (const std::string& field : tuple.fields) text += " " + field;
  return text;
}

class ClosureMaker {
 public:
  Closure closure;

  int add(const std::shared_ptr<const JitFunction>& function) {
    auto [it, fresh] = index_.emplace(function->def, static_cast<int>(index_.size()));
    // The index stands in for the function's text, so functions that call each other end.
    int index = it->second;
    if (!fresh) return index;
    const std::shared_ptr<const SourceText>& file = function->module->source;
    if (std::find(closure.sources.begin(), closure.sources.end(), file) == closure.sources.end())
      closure.sources.push_back(file);
    Place place = place_of(function->def->range);
    const std::string title = "function " + std::to_string(index);
    SourceRange source = function->def->full_range.text ? function->def->full_range : function->def->range;
    std::string text(source.str());
    text += "\n";
    for (const std::string& name : reads(*function->def)) {
      auto value = value_of(*function, name);
      if (!value) continue;  // a builtin of the language, or unknown: the frontend says so
      text += name + " = " + text_of(*value) + "\n";
      if (std::holds_alternative<frontend::ModulePath>(*value)) continue;
      const bool is_variable = name.find('.') == std::string::npos && function->watch;
      closure.watches.push_back({function, name, *value, is_variable ? function->watch(name) : nullptr});
    }
    if (function->aggregate) {
      for (const auto& field : function->aggregate->fields)
        text += "field " + field.name + ": " + std::string(field.annotation->range.str()) + "\n";
      for (const auto& [name, member] : function->aggregate->members)
        if (member.function.get() != function.get())
          text += (member.is_static ? "static method " : "method ") + name + " = " + text_of(member.function) + "\n";
    }
    for (const Param& p : function->def->params)
      if (auto value = function->default_of ? function->default_of(p.name) : std::nullopt)
        text += "default " + p.name + " = " + text_of(*value) + "\n";
    // `text` has the places that line tables name; `meaning` is equal for code that is equal, wherever it stands.
    closure.text += title + " " + place.file + ":" + std::to_string(place.line) + "\n" + text;
    closure.meaning += title + "\n" + text;
    return index;
  }

 private:
  std::string text_of(const frontend::Global& value) {
    if (auto* f = std::get_if<std::shared_ptr<const JitFunction>>(&value)) return "function " + std::to_string(add(*f));
    if (auto* tuple = std::get_if<std::shared_ptr<const frontend::GlobalTuple>>(&value)) {
      std::string text = (*tuple)->is_dict ? "{" : "(";
      for (const auto& key : (*tuple)->keys) text += text_of(key) + ":";
      for (const auto& item : (*tuple)->items) text += text_of(item) + ",";
      return text + ")" + fields_of(**tuple);
    }
    return describe(value);
  }

  std::map<const FunctionDef*, int> index_;
};

}  // namespace

std::string describe(const frontend::Global& value) {
  struct Visitor {
    std::string operator()(const Constant& c) const { return std::string(type_name(c)) + " " + repr(c); }
    std::string operator()(DType t) const { return "dtype " + std::string(name(t)); }
    std::string operator()(const std::shared_ptr<const JitFunction>& f) const { return "function " + f->def->name; }
    std::string operator()(const frontend::ModulePath& m) const { return "module " + m.path; }
    std::string operator()(frontend::PointerTo p) const { return "pointer " + std::string(name(p.element)); }
    std::string operator()(const std::shared_ptr<const frontend::GlobalTuple>& tuple) const {
      std::string text = tuple->is_dict ? "{" : "(";
      for (const auto& key : tuple->keys) text += describe(key) + ":";
      for (const auto& item : tuple->items) text += describe(item) + ",";
      return text + ")" + fields_of(*tuple);
    }
  };
  return std::visit(Visitor{}, value);
}

std::vector<std::string> free_names(const FunctionDef& def) { return names_of(def).free(); }

std::vector<std::string> reads(const FunctionDef& def) {
  const Names names = names_of(def);
  std::vector<std::string> out = names.free();
  const std::set<std::string> free(out.begin(), out.end());
  for (const std::string& member : names.members)
    if (free.count(member.substr(0, member.find('.')))) out.push_back(member);
  return out;
}

Closure make_closure(const std::shared_ptr<const JitFunction>& function) {
  ClosureMaker maker;
  maker.add(function);
  return std::move(maker.closure);
}

bool is_current(const Closure& closure) {
  for (const Watch& watch : closure.watches) {
    if (watch.unchanged && watch.unchanged()) continue;
    // What was there and is gone counts as changed.
    auto now = value_of(*watch.function, watch.name);
    if (!now || !same(*now, watch.value)) return false;
  }
  return true;
}

}  // namespace kiln::runtime
