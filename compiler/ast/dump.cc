#include <fmt/format.h>

#include "compiler/ast/ast.h"

namespace kiln::ast {
namespace {

/// One line per node: "field: Kind attributes", children indented by two spaces.
class Dumper {
 public:
  std::string take() { return std::move(out_); }

  void body(std::string_view label, const Body& stmts) {
    if (stmts.empty()) return;
    line("{}:", label);
    Indent in(*this);
    for (const StmtPtr& s : stmts) stmt(*s);
  }

  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kExpr:
        open("Expr"), child("", as<ExprStmt>(s).value);
        break;
      case StmtKind::kAssign: {
        const auto& n = as<Assign>(s);
        open("Assign");
        for (const ExprPtr& t : n.targets) child("target", t);
        child("value", n.value);
        break;
      }
      case StmtKind::kAugAssign: {
        const auto& n = as<AugAssign>(s);
        open("AugAssign {}=", spelling(n.op)), child("target", n.target), child("value", n.value);
        break;
      }
      case StmtKind::kAnnAssign: {
        const auto& n = as<AnnAssign>(s);
        open("AnnAssign"), child("target", n.target), child("annotation", n.annotation), child("value", n.value);
        break;
      }
      case StmtKind::kFor: {
        const auto& n = as<For>(s);
        open("For"), child("target", n.target), child("iterable", n.iterable), nested("body", n.body),
            nested("else", n.else_body);
        break;
      }
      case StmtKind::kWhile: {
        const auto& n = as<While>(s);
        open("While"), child("condition", n.condition), nested("body", n.body), nested("else", n.else_body);
        break;
      }
      case StmtKind::kIf: {
        const auto& n = as<If>(s);
        open("If"), child("condition", n.condition), nested("then", n.body), nested("else", n.else_body);
        break;
      }
      case StmtKind::kFunctionDef: {
        const auto& n = as<FunctionDef>(s);
        open("FunctionDef {}", n.name), children("decorator", n.decorators), params(n.params),
            child("returns", n.returns), nested("body", n.body);
        break;
      }
      case StmtKind::kClassDef: {
        const auto& n = as<ClassDef>(s);
        open("ClassDef {}", n.name), children("decorator", n.decorators), children("base", n.bases);
        for (const Keyword& k : n.keywords) child(k.name, k.value);
        nested("body", n.body);
        break;
      }
      case StmtKind::kReturn:
        open("Return"), child("", as<Return>(s).value);
        break;
      case StmtKind::kPass:
        open("Pass");
        break;
      case StmtKind::kBreak:
        open("Break");
        break;
      case StmtKind::kContinue:
        open("Continue");
        break;
      case StmtKind::kImport: {
        const auto& n = as<Import>(s);
        std::string names;
        for (const auto& a : n.names)
          names += (names.empty() ? "" : ", ") + a.name + (a.as.empty() ? "" : " as " + a.as);
        open("Import{}{}: {}", n.from_module.empty() ? "" : " from ", n.from_module, names);
        break;
      }
      case StmtKind::kAssert:
        open("Assert"), child("condition", as<Assert>(s).condition), child("message", as<Assert>(s).message);
        break;
      case StmtKind::kDel:
        open("Del"), children("", as<Del>(s).targets);
        break;
      case StmtKind::kGlobal: {
        const auto& n = as<Global>(s);
        open("{} {}", n.nonlocal ? "Nonlocal" : "Global", fmt::to_string(fmt::join(n.names, ", ")));
        break;
      }
      case StmtKind::kWith: {
        const auto& n = as<With>(s);
        open("With");
        for (const auto& item : n.items) child("context", item.context), child("as", item.target);
        nested("body", n.body);
        break;
      }
      case StmtKind::kTry: {
        const auto& n = as<Try>(s);
        open("Try"), nested("body", n.body);
        for (const auto& h : n.handlers) {
          Indent in(*this);
          line("except{}{}:", h.name.empty() ? "" : " as ", h.name);
          child("type", h.type), nested("body", h.body);
        }
        nested("else", n.else_body), nested("finally", n.finally_body);
        break;
      }
      case StmtKind::kRaise:
        open("Raise"), child("", as<Raise>(s).value), child("from", as<Raise>(s).cause);
        break;
      case StmtKind::kUnsupported:
        open("Unsupported");
        break;
      case StmtKind::kMatch:
        open("Match"), child("subject", as<Match>(s).subject);
        for (const Match::Case& c : as<Match>(s).cases) {
          Indent in(*this);
          line("case:");
          pattern("", c.pattern), child("if", c.guard), nested("body", c.body);
        }
        break;
    }
  }

  static std::string_view name_of(Pattern::Kind kind) {
    switch (kind) {
      case Pattern::Kind::kAny:
        return "any";
      case Pattern::Kind::kValue:
        return "value";
      case Pattern::Kind::kSingleton:
        return "singleton";
      case Pattern::Kind::kSequence:
        return "sequence";
      case Pattern::Kind::kStar:
        return "star";
      case Pattern::Kind::kMapping:
        return "mapping";
      case Pattern::Kind::kClass:
        return "class";
      case Pattern::Kind::kOr:
        return "or";
    }
    KILN_UNREACHABLE("a kind of pattern");
  }

  void pattern(std::string_view label, const Pattern& p) {
    Indent in(*this);
    line("{}{}pattern {}{}{}", label, label.empty() ? "" : " ", name_of(p.kind), p.name.empty() ? "" : " as ", p.name);
    child("", p.value);
    const size_t positional = p.parts.size() - p.attributes.size();
    for (size_t i = 0; i < p.parts.size(); ++i) {
      if (i < p.keys.size()) child("key", p.keys[i]);
      pattern(i < positional ? "" : p.attributes[i - positional], p.parts[i]);
    }
    if (!p.rest.empty()) line("  rest {}", p.rest);
  }

  void expr(std::string_view label, const Expr& e) {
    label_ = label;
    switch (e.kind) {
      case ExprKind::kConstant:
        open("Constant {}{}", as<ConstantExpr>(e).is_bytes ? "b" : "", repr(as<ConstantExpr>(e).value));
        break;
      case ExprKind::kName:
        open("Name {}", as<Name>(e).id);
        break;
      case ExprKind::kTuple:
        open("Tuple"), children("", as<Tuple>(e).items);
        break;
      case ExprKind::kList:
        open("List"), children("", as<List>(e).items);
        break;
      case ExprKind::kSet:
        open("Set"), children("", as<Set>(e).items);
        break;
      case ExprKind::kDict: {
        const auto& n = as<Dict>(e);
        open("Dict");
        for (size_t i = 0; i < n.keys.size(); ++i)
          child("key", n.keys[i]), child(n.keys[i] ? "value" : "**", n.values[i]);
        break;
      }
      case ExprKind::kUnary:
        open("Unary {}", spelling(as<Unary>(e).op)), child("", as<Unary>(e).operand);
        break;
      case ExprKind::kBinary: {
        const auto& n = as<Binary>(e);
        open("Binary {}", spelling(n.op)), child("", n.left), child("", n.right);
        break;
      }
      case ExprKind::kBoolOp:
        open("BoolOp {}", as<BoolOp>(e).is_and ? "and" : "or"), children("", as<BoolOp>(e).values);
        break;
      case ExprKind::kCompare: {
        const auto& n = as<Compare>(e);
        open("Compare"), child("", n.left);
        for (size_t i = 0; i < n.ops.size(); ++i) child(spelling(n.ops[i]), n.rights[i]);
        break;
      }
      case ExprKind::kIfExp: {
        const auto& n = as<IfExp>(e);
        open("IfExp"), child("condition", n.condition), child("then", n.then_value), child("else", n.else_value);
        break;
      }
      case ExprKind::kCall: {
        const auto& n = as<Call>(e);
        open("Call"), child("callee", n.callee), children("", n.args);
        for (const Keyword& k : n.keywords) child(k.name.empty() ? "**" : "keyword " + k.name, k.value);
        break;
      }
      case ExprKind::kAttribute:
        open("Attribute {}", as<Attribute>(e).name), child("", as<Attribute>(e).base);
        break;
      case ExprKind::kSubscript:
        open("Subscript"), child("", as<Subscript>(e).base), child("index", as<Subscript>(e).index);
        break;
      case ExprKind::kSlice: {
        const auto& n = as<Slice>(e);
        open("Slice"), child("lower", n.lower), child("upper", n.upper), child("step", n.step);
        break;
      }
      case ExprKind::kLambda:
        open("Lambda"), params(as<Lambda>(e).params), child("body", as<Lambda>(e).body);
        break;
      case ExprKind::kComprehension: {
        const auto& n = as<Comprehension>(e);
        constexpr std::string_view kForms[] = {"list", "set", "dict", "generator"};
        open("Comprehension {}", kForms[static_cast<size_t>(n.form)]), child("element", n.element),
            child("value", n.value);
        for (const ForClause& c : n.clauses)
          child("for", c.target), child("in", c.iterable), children("if", c.conditions);
        break;
      }
      case ExprKind::kStarred:
        open("Starred"), child("", as<Starred>(e).value);
        break;
      case ExprKind::kJoinedStr: {
        open("JoinedStr");
        Indent in(*this);
        for (const auto& p : as<JoinedStr>(e).pieces) {
          if (!p.literal.empty()) line("Constant {}", repr(Constant(p.literal)));
          if (!p.value) continue;
          line("field{}{}{}", p.conversion ? " !" : "", p.conversion ? std::string(1, p.conversion) : "",
               p.debug_text.empty() ? "" : " " + repr(Constant(p.debug_text)));
          child("", p.value), child("spec", p.spec);
        }
        break;
      }
      case ExprKind::kNamedExpr:
        open("NamedExpr {}", as<NamedExpr>(e).target), child("", as<NamedExpr>(e).value);
        break;
      case ExprKind::kYield:
        open("Yield{}", as<Yield>(e).from ? " from" : ""), child("", as<Yield>(e).value);
        break;
      case ExprKind::kEllipsis:
        open("Ellipsis");
        break;
    }
  }

 private:
  struct Indent {
    explicit Indent(Dumper& d) : dumper(d) { ++dumper.depth_; }
    ~Indent() { --dumper.depth_; }
    Dumper& dumper;
  };

  template <class... Args>
  void line(fmt::format_string<Args...> f, Args&&... args) {
    out_.append(static_cast<size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(out_), f, std::forward<Args>(args)...);
    out_ += '\n';
  }
  /// A node's own line, with the label that its parent gave it.
  template <class... Args>
  void open(fmt::format_string<Args...> f, Args&&... args) {
    std::string label = std::exchange(label_, {});
    line("{}{}{}", label, label.empty() ? "" : ": ", fmt::format(f, std::forward<Args>(args)...));
  }
  void child(std::string_view label, const ExprPtr& e) {
    if (!e) return;
    Indent in(*this);
    expr(label, *e);
  }
  void children(std::string_view label, const std::vector<ExprPtr>& items) {
    for (const ExprPtr& e : items) child(label, e);
  }
  void nested(std::string_view label, const Body& stmts) {
    Indent in(*this);
    body(label, stmts);
  }
  void params(const std::vector<Param>& list) {
    Indent in(*this);
    constexpr std::string_view kMarks[] = {"", "*", "**", "keyword-only "};
    for (const Param& p : list) {
      line("param {}{}", kMarks[static_cast<size_t>(p.kind)], p.name);
      child("annotation", p.annotation), child("default", p.default_value);
    }
  }

  std::string out_;
  std::string label_;
  int depth_ = 0;
};

}  // namespace

std::string dump(const Module& module) {
  Dumper d;
  for (const StmtPtr& s : module.body) d.stmt(*s);
  return d.take();
}

std::string dump(const Stmt& stmt) {
  Dumper d;
  d.stmt(stmt);
  return d.take();
}

std::string dump(const Expr& expr) {
  Dumper d;
  d.expr("", expr);
  return d.take();
}

}  // namespace kiln::ast
