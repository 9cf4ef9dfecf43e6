// The syntax tree of the Python subset that kernels and host scripts share. Nodes are plain data with a source range;
// the names follow Python's own ast module. Module owns everything, and keeps the source text alive.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ast/constant.h"
#include "support/source.h"

namespace kiln::ast {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

enum class ExprKind {
  kConstant,
  kName,
  kTuple,
  kList,
  kSet,
  kDict,
  kUnary,
  kBinary,
  kBoolOp,
  kCompare,
  kIfExp,
  kCall,
  kAttribute,
  kSubscript,
  kSlice,
  kLambda,
  kComprehension,
  kStarred,
  kJoinedStr,
  kNamedExpr,
  kYield,
  kEllipsis,
};

enum class StmtKind {
  kExpr,
  kAssign,
  kAugAssign,
  kAnnAssign,
  kFor,
  kWhile,
  kIf,
  kFunctionDef,
  kClassDef,
  kReturn,
  kPass,
  kBreak,
  kContinue,
  kImport,
  kAssert,
  kDel,
  kGlobal,
  kWith,
  kTry,
  kRaise,
  kMatch,
  kUnsupported,
};

struct Expr {
  ExprKind kind;
  SourceRange range;
  virtual ~Expr() = default;

 protected:
  Expr(ExprKind k, SourceRange r) : kind(k), range(r) {}
};

struct Stmt {
  StmtKind kind;
  SourceRange range;  // of the whole statement, without its body for compound statements
  virtual ~Stmt() = default;

 protected:
  Stmt(StmtKind k, SourceRange r) : kind(k), range(r) {}
};

/// `static_cast` with the check in one place: `as<Name>(e)`; `dyn_as` gives nullptr for another kind.
template <class T, class Base>
const T& as(const Base& node) {
  KILN_ASSERT(node.kind == T::kKind);
  return static_cast<const T&>(node);
}
template <class T, class Base>
const T* dyn_as(const Base* node) {
  return node && node->kind == T::kKind ? static_cast<const T*>(node) : nullptr;
}

#define KILN_EXPR(Type)                                \
  static constexpr ExprKind kKind = ExprKind::k##Type; \
  explicit Type(SourceRange r) : Expr(kKind, r) {}
#define KILN_STMT(Type)                                \
  static constexpr StmtKind kKind = StmtKind::k##Type; \
  explicit Type(SourceRange r) : Stmt(kKind, r) {}

// --- expressions ---------------------------------------------------------------------------------------------------
struct ConstantExpr : Expr {
  static constexpr ExprKind kKind = ExprKind::kConstant;
  Constant value;
  bool is_bytes = false;  // b'…': `value` holds the bytes as a string
  ConstantExpr(SourceRange r, Constant v) : Expr(kKind, r), value(std::move(v)) {}
};
struct Name : Expr {
  KILN_EXPR(Name) std::string id;
};
struct Tuple : Expr {
  KILN_EXPR(Tuple) std::vector<ExprPtr> items;
};
struct List : Expr {
  KILN_EXPR(List) std::vector<ExprPtr> items;
};
/// Those of a tuple or a list as it is written; null for what is neither.
inline const std::vector<ExprPtr>* items_of(const Expr* e) {
  if (const auto* t = dyn_as<Tuple>(e)) return &t->items;
  if (const auto* l = dyn_as<List>(e)) return &l->items;
  return nullptr;
}
struct Set : Expr {
  KILN_EXPR(Set) std::vector<ExprPtr> items;
};
struct Dict : Expr {
  KILN_EXPR(Dict) std::vector<ExprPtr> keys, values;
};  // keys[i] == nullptr: **values[i]
struct Unary : Expr {
  KILN_EXPR(Unary) UnaryOp op{};
  ExprPtr operand;
};
struct Binary : Expr {
  KILN_EXPR(Binary) BinaryOp op{};
  ExprPtr left, right;
  SourceRange op_range;
};
struct BoolOp : Expr {
  KILN_EXPR(BoolOp) bool is_and = false;
  std::vector<ExprPtr> values;
};
/// `left ops[0] rights[0] ops[1] rights[1] …`
struct Compare : Expr {
  KILN_EXPR(Compare) ExprPtr left;
  std::vector<CompareOp> ops;
  std::vector<ExprPtr> rights;
};
struct IfExp : Expr {
  KILN_EXPR(IfExp) ExprPtr condition, then_value, else_value;
};
struct Keyword {
  std::string name;
  ExprPtr value;
  SourceRange range;
};  // name == "": **value
/// The function that `2j` calls.
inline constexpr std::string_view kImaginary = "__imaginary__";
struct Call : Expr {
  KILN_EXPR(Call) ExprPtr callee;
  std::vector<ExprPtr> args;
  std::vector<Keyword> keywords;
};
struct Attribute : Expr {
  KILN_EXPR(Attribute) ExprPtr base;
  std::string name;
  SourceRange name_range;
};
struct Subscript : Expr {
  KILN_EXPR(Subscript) ExprPtr base, index;
};  // `x[a, b]`: index is a Tuple
struct Slice : Expr {
  KILN_EXPR(Slice) ExprPtr lower, upper, step;
};  // any of them may be null
struct Param {
  std::string name;
  ExprPtr annotation, default_value;
  SourceRange range;
  enum class Kind { kPlain, kArgs, kKwargs, kKeywordOnly } kind = Kind::kPlain;
  bool positional_only = false;  // before a '/'
};
struct Lambda : Expr {
  KILN_EXPR(Lambda) std::vector<Param> params;
  ExprPtr body;
};
struct ForClause {
  ExprPtr target, iterable;
  std::vector<ExprPtr> conditions;
};
/// [e for …], {e for …}, {k: v for …}, (e for …); `value` is set for dicts only.
struct Comprehension : Expr {
  KILN_EXPR(Comprehension) enum class Form { kList, kSet, kDict, kGenerator } form{};
  ExprPtr element, value;
  std::vector<ForClause> clauses;
};
struct Starred : Expr {
  KILN_EXPR(Starred) ExprPtr value;
};
/// An f-string: literal pieces and fields in order. A field has `value`; `spec` is its format (itself an f-string) or
/// null.
struct JoinedStr : Expr {
  KILN_EXPR(JoinedStr)
  struct Piece {
    std::string literal;
    ExprPtr value;
    char conversion = 0;
    ExprPtr spec;
    std::string debug_text;
  };  // debug_text: `{x=}`
  std::vector<Piece> pieces;
};
struct NamedExpr : Expr {
  KILN_EXPR(NamedExpr) std::string target;
  ExprPtr value;
};
/// `yield value` (value may be null) and `yield from value`.
struct Yield : Expr {
  KILN_EXPR(Yield) ExprPtr value;
  bool from = false;
};
struct Ellipsis : Expr {
  KILN_EXPR(Ellipsis)
};

// --- statements ----------------------------------------------------------------------------------------------------
struct ExprStmt : Stmt {
  static constexpr StmtKind kKind = StmtKind::kExpr;
  explicit ExprStmt(SourceRange r) : Stmt(kKind, r) {}
  ExprPtr value;
};
struct Assign : Stmt {
  KILN_STMT(Assign) std::vector<ExprPtr> targets;
  ExprPtr value;
};  // a = b = value
struct AugAssign : Stmt {
  KILN_STMT(AugAssign) ExprPtr target;
  BinaryOp op{};
  ExprPtr value;
};
struct AnnAssign : Stmt {
  KILN_STMT(AnnAssign) ExprPtr target, annotation, value;
};  // value may be null
struct For : Stmt {
  KILN_STMT(For) ExprPtr target, iterable;
  Body body, else_body;
};
struct While : Stmt {
  KILN_STMT(While) ExprPtr condition;
  Body body, else_body;
};
struct If : Stmt {
  KILN_STMT(If) ExprPtr condition;
  Body body, else_body;
};  // elif: an If alone in else_body
struct FunctionDef : Stmt {
  KILN_STMT(FunctionDef)
  std::string name;
  SourceRange name_range;
  std::vector<Param> params;
  ExprPtr returns;
  std::vector<ExprPtr> decorators;
  Body body;
  SourceRange full_range;     // decorators and body included: what %source prints
  bool is_generator = false;  // it yields
};
struct ClassDef : Stmt {
  KILN_STMT(ClassDef) std::string name;
  std::vector<ExprPtr> bases, decorators;
  std::vector<Keyword> keywords;
  Body body;
};
struct Return : Stmt {
  KILN_STMT(Return) ExprPtr value;
};
struct Pass : Stmt {
  KILN_STMT(Pass)
};
struct Break : Stmt {
  KILN_STMT(Break)
};
struct Continue : Stmt {
  KILN_STMT(Continue)
};
/// `import a.b as c` (from_module empty) and `from m import n as c`; `from m import *` has names[0].name == "*",
/// and a relative import's from_module begins with its dots.
struct Import : Stmt {
  KILN_STMT(Import) struct Alias {
    std::string name, as;
    SourceRange range;
  };
  std::string from_module;
  std::vector<Alias> names;
};
struct Assert : Stmt {
  KILN_STMT(Assert) ExprPtr condition, message;
};
struct Del : Stmt {
  KILN_STMT(Del) std::vector<ExprPtr> targets;
};
struct Global : Stmt {
  KILN_STMT(Global) std::vector<std::string> names;
  bool nonlocal = false;
};  // global and nonlocal
struct With : Stmt {
  KILN_STMT(With) struct Item { ExprPtr context, target; };
  std::vector<Item> items;
  Body body;
};
struct Try : Stmt {
  KILN_STMT(Try) struct Handler {
    ExprPtr type;
    std::string name;
    Body body;
    SourceRange range;
  };
  Body body;
  std::vector<Handler> handlers;
  Body else_body, finally_body;
};
struct Raise : Stmt {
  KILN_STMT(Raise) ExprPtr value, cause;
};
/// A statement that Python has and Kiln has not, as `async def`: in files of kernels, which need not reach it.
struct Unsupported : Stmt {
  KILN_STMT(Unsupported) Diagnostic why;
};

/// What stands behind `case`. Names are bound once all of the pattern matches.
struct Pattern {
  enum class Kind {
    kAny,        // `_`, and with a name the capture `x`
    kValue,      // `value`: what equals it
    kSingleton,  // None, True, False: `value` itself
    kSequence,   // [parts], one of which may be a kStar
    kStar,       // `*name` in a sequence, with any number of elements
    kMapping,    // {keys[i]: parts[i], **rest}
    kClass,      // value(parts), of which the last ones are `attributes[i]=part`
    kOr,         // parts[0] | parts[1] | …
  } kind = Kind::kAny;
  SourceRange range;
  std::string name, rest;  // empty: nothing is bound
  ExprPtr value;
  std::vector<Pattern> parts;
  std::vector<ExprPtr> keys;
  std::vector<std::string> attributes;
};
struct Match : Stmt {
  KILN_STMT(Match) struct Case {
    Pattern pattern;
    ExprPtr guard;  // may be null
    Body body;
    SourceRange range;
  };
  ExprPtr subject;
  std::vector<Case> cases;
};

#undef KILN_EXPR
#undef KILN_STMT

/// A parsed text. Nodes point into `source`; hold the Module by shared_ptr while any node is in use.
struct Module {
  std::shared_ptr<const SourceText> source;
  Body body;

  /// The module-level function of that name, or nullptr.
  const FunctionDef* function(std::string_view name) const;
};

/// An indented text form of the tree, for golden tests and `--emit ast`.
std::string dump(const Module& module);
std::string dump(const Stmt& stmt);
std::string dump(const Expr& expr);

}  // namespace kiln::ast
