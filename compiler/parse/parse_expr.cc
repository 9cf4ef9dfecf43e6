#include <algorithm>
#include <string>
#include <unordered_map>

#include "compiler/parse/literals.h"
#include "compiler/parse/parser_impl.h"

namespace kiln::parse {

using namespace ast;

namespace {

// Binary operators by precedence, loosest first. `**` is not among them: it binds tighter than a unary minus on its
// left and groups to the right.
struct BinaryRow {
  Tok token;
  BinaryOp op;
  int precedence;
};
constexpr BinaryRow kBinaryOps[] = {
    {Tok::kPipe, BinaryOp::kOr, 1},           {Tok::kCaret, BinaryOp::kXor, 2},   {Tok::kAmp, BinaryOp::kAnd, 3},
    {Tok::kShl, BinaryOp::kShl, 4},           {Tok::kShr, BinaryOp::kShr, 4},     {Tok::kPlus, BinaryOp::kAdd, 5},
    {Tok::kMinus, BinaryOp::kSub, 5},         {Tok::kStar, BinaryOp::kMul, 6},    {Tok::kSlash, BinaryOp::kDiv, 6},
    {Tok::kFloorDiv, BinaryOp::kFloorDiv, 6}, {Tok::kPercent, BinaryOp::kMod, 6}, {Tok::kAt, BinaryOp::kMatMul, 6},
};

const BinaryRow* binary_row(Tok t) {
  for (const BinaryRow& r : kBinaryOps)
    if (r.token == t) return &r;
  return nullptr;
}

struct CompareRow {
  Tok token;
  CompareOp op;
};
constexpr CompareRow kCompareOps[] = {
    {Tok::kEqEq, CompareOp::kEq},   {Tok::kNotEq, CompareOp::kNe},   {Tok::kLess, CompareOp::kLt},
    {Tok::kLessEq, CompareOp::kLe}, {Tok::kGreater, CompareOp::kGt}, {Tok::kGreaterEq, CompareOp::kGe},
    {Tok::kIn, CompareOp::kIn},
};

std::string_view describe_target(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kConstant:
      return "a literal";
    case ExprKind::kCall:
      return "the result of a call";
    case ExprKind::kCompare:
      return "a comparison";
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kBoolOp:
      return "the result of an operator";
    case ExprKind::kIfExp:
      return "a conditional expression";
    case ExprKind::kSet:
    case ExprKind::kDict:
      return "a set or dict";
    case ExprKind::kLambda:
      return "a lambda";
    case ExprKind::kComprehension:
      return "a comprehension";
    case ExprKind::kJoinedStr:
      return "an f-string";
    case ExprKind::kNamedExpr:
      return "a ':=' expression";
    case ExprKind::kYield:
      return "a 'yield'";
    case ExprKind::kEllipsis:
      return "'...'";
    case ExprKind::kSlice:
      return "a slice";
    case ExprKind::kStarred:
      return "a starred expression outside of a list or tuple";
    case ExprKind::kName:
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kAttribute:
    case ExprKind::kSubscript:
      break;
  }
  return "";
}

}  // namespace

// Targets are parsed as expressions and checked afterwards, since only the '=' behind them shows that they are targets.
void Parser::check_target(const Expr& e, bool in_list) {
  if (const std::vector<ExprPtr>* items = items_of(&e)) {
    int stars = 0;
    for (const ExprPtr& item : *items) {
      check_target(*item, true);
      if (item->kind == ExprKind::kStarred && ++stars > 1)
        fail(error_at(item->range, ErrorKind::kSyntax, "only one name of an assignment can be starred"));
    }
    return;
  }
  // `*a = x` alone is refused, as in Python: only a list or tuple has a rest to collect.
  if (const auto* s = dyn_as<Starred>(&e); s && in_list) return check_target(*s->value);
  std::string_view what = describe_target(e);
  if (what.empty()) return;
  Diagnostic d = error_at(e.range, ErrorKind::kSyntax, "cannot assign to {}", what);
  if (e.kind == ExprKind::kCall || e.kind == ExprKind::kCompare || e.kind == ExprKind::kConstant)
    d = with_note(std::move(d), "help: '==' compares, '=' assigns");
  fail(std::move(d));
}

ExprPtr Parser::whole_expression() {
  while (take(Tok::kNewline)) {
  }
  if (at(Tok::kIndent)) advance();  // leading spaces of a single expression mean nothing
  ExprPtr e = expressions(true);
  while (at(Tok::kNewline) || at(Tok::kDedent)) advance();
  if (!at(Tok::kEnd)) fail_expected("the end of the expression");
  return e;
}

ExprPtr Parser::expressions(bool starred) {
  uint32_t begin = now().begin;
  ExprPtr first = starred ? star_or_named() : named_expression();
  if (!at(Tok::kComma)) return first;
  auto tuple = std::make_unique<Tuple>(SourceRange{});
  tuple->items.push_back(std::move(first));
  while (take(Tok::kComma)) {
    check_token();
    Tok k = now().kind;
    // What may follow a tuple's last comma, as in `x = 1,`.
    if (k == Tok::kNewline || k == Tok::kEnd || k == Tok::kAssign || k == Tok::kSemicolon || k == Tok::kColon ||
        k == Tok::kRParen || k == Tok::kRBracket || k == Tok::kRBrace)
      break;
    tuple->items.push_back(starred ? star_or_named() : named_expression());
  }
  tuple->range = since(begin);
  return tuple;
}

// Targets of `for` stop before 'in', which an ordinary expression would take as a comparison.
ExprPtr Parser::target_list() {
  uint32_t begin = now().begin;
  auto item = [&]() -> ExprPtr {
    if (!at(Tok::kStar)) return binary(1);
    uint32_t star_begin = advance().begin;
    auto star = std::make_unique<Starred>(SourceRange{});
    star->value = binary(1);
    star->range = since(star_begin);
    return star;
  };
  ExprPtr first = item();
  if (!at(Tok::kComma)) return first;
  auto tuple = std::make_unique<Tuple>(SourceRange{});
  tuple->items.push_back(std::move(first));
  while (take(Tok::kComma) && !at(Tok::kIn)) tuple->items.push_back(item());
  tuple->range = since(begin);
  return tuple;
}

ExprPtr Parser::star_or_named() {
  if (!at(Tok::kStar)) return named_expression();
  Level level(*this);
  uint32_t begin = advance().begin;
  auto star = std::make_unique<Starred>(SourceRange{});
  star->value = binary(1);
  star->range = since(begin);
  return star;
}

ExprPtr Parser::named_expression() {
  // Two tokens decide, since the target of ':=' is a plain name by Python's grammar.
  if (!at(Tok::kIdentifier) || ahead(1).kind != Tok::kWalrus) return expression();
  Token name = advance();
  advance();
  auto node = std::make_unique<NamedExpr>(SourceRange{});
  node->target = name_of(range(name));
  node->value = expression();
  node->range = since(name.begin);
  return node;
}

ExprPtr Parser::expression() {
  Level level(*this);
  // The height of the tree is limited as well as the depth of the recursion, because later passes recurse over the
  // tree: a chain such as a.b.c… is parsed in a loop but is one level per link.
  int outer_height = std::exchange(height_, 0);
  check_token();
  ExprPtr result;
  if (at(Tok::kLambda)) {
    result = lambda();
  } else {
    uint32_t begin = now().begin;
    result = disjunction();
    if (at(Tok::kIf)) {
      advance();
      auto node = std::make_unique<IfExp>(SourceRange{});
      node->then_value = std::move(result);
      node->condition = disjunction();
      if (!take(Tok::kElse)) fail_expected("'else' of the conditional expression");
      node->else_value = expression();
      node->range = since(begin);
      result = std::move(node);
    }
  }
  height_ = std::max(outer_height, height_ + 1);
  return result;
}

ExprPtr Parser::lambda() {
  Token first = advance();
  auto node = std::make_unique<Lambda>(SourceRange{});
  node->params = parameters(Tok::kColon, false);
  if (!take(Tok::kColon)) fail_expected("':' after the lambda's parameters");
  node->body = expression();
  node->range = since(first.begin);
  return node;
}

std::vector<Param> Parser::parameters(Tok close, bool annotations) {
  std::vector<Param> params;
  std::unordered_map<std::string, size_t> declared;  // where in params
  bool keyword_only = false, seen_default = false, bare_star = false;
  while (!at(close)) {
    Token first = now();
    if (take(Tok::kSlash)) {
      if (params.empty()) fail(error_at(range(first), ErrorKind::kSyntax, "expected a parameter before '/'"));
      if (keyword_only || params[0].positional_only)
        fail(error_at(range(first), ErrorKind::kSyntax, "'/' stands once among the parameters, before any '*'"));
      for (Param& before : params) before.positional_only = true;
      if (!take(Tok::kComma)) break;
      continue;
    }
    Param p;
    if (take(Tok::kStar)) {
      // Python takes one '*' only, since all behind it is given by name.
      if (keyword_only) fail(error_at(range(first), ErrorKind::kSyntax, "only one '*' can stand among the parameters"));
      keyword_only = true;
      bare_star = !at(Tok::kIdentifier);
      if (bare_star) {
        if (!take(Tok::kComma) || at(close))
          fail(error_at(range(first), ErrorKind::kSyntax, "expected a keyword parameter after '*'"));
        continue;
      }
      p.kind = Param::Kind::kArgs;
    } else if (take(Tok::kPow)) {
      p.kind = Param::Kind::kKwargs;
    } else if (keyword_only) {
      p.kind = Param::Kind::kKeywordOnly;
    }
    Token name = expect_identifier("a parameter's name");
    p.name = name_of(range(name));
    if (const auto [first_one, is_new] = declared.emplace(p.name, params.size()); !is_new)
      fail(with_note(error_at(range(name), ErrorKind::kSyntax, "the parameter '{}' is declared twice", p.name),
                     "first declared here", params[first_one->second].range));
    if (annotations && take(Tok::kColon)) p.annotation = expression();
    if (take(Tok::kAssign)) {
      if (p.kind == Param::Kind::kArgs || p.kind == Param::Kind::kKwargs)
        fail(error_at(range(name), ErrorKind::kSyntax, "'{}' collects arguments and takes no default", p.name));
      p.default_value = expression();
      seen_default = true;
    } else if (seen_default && p.kind == Param::Kind::kPlain) {
      fail(error_at(range(name), ErrorKind::kSyntax, "the parameter '{}' needs a default, as one before it has one",
                    p.name));
    }
    p.range = since(first.begin);
    bool last = p.kind == Param::Kind::kKwargs;
    params.push_back(std::move(p));
    if (!take(Tok::kComma)) break;
    if (last && !at(close))
      fail(error_at(here(), ErrorKind::kSyntax, "no parameter can follow '**{}'", params.back().name));
  }
  return params;
}

ExprPtr Parser::disjunction() {
  uint32_t begin = now().begin;
  ExprPtr left = conjunction();
  if (!at(Tok::kOr)) return left;
  auto node = std::make_unique<BoolOp>(SourceRange{});
  node->values.push_back(std::move(left));
  while (take(Tok::kOr)) node->values.push_back(conjunction());
  node->range = since(begin);
  grow_chain();
  return node;
}

ExprPtr Parser::conjunction() {
  uint32_t begin = now().begin;
  ExprPtr left = inversion();
  if (!at(Tok::kAnd)) return left;
  auto node = std::make_unique<BoolOp>(SourceRange{});
  node->is_and = true;
  node->values.push_back(std::move(left));
  while (take(Tok::kAnd)) node->values.push_back(inversion());
  node->range = since(begin);
  grow_chain();
  return node;
}

ExprPtr Parser::inversion() {
  if (!at(Tok::kNot)) return comparison();
  Level level(*this);
  uint32_t begin = advance().begin;
  auto node = std::make_unique<Unary>(SourceRange{});
  node->op = UnaryOp::kNot;
  node->operand = inversion();
  node->range = since(begin);
  grow_chain();
  return node;
}

ExprPtr Parser::comparison() {
  uint32_t begin = now().begin;
  ExprPtr left = binary(1);
  std::unique_ptr<Compare> node;
  for (;;) {
    CompareOp op{};
    if (at(Tok::kIs)) {
      advance();
      op = take(Tok::kNot) ? CompareOp::kIsNot : CompareOp::kIs;
    } else if (at(Tok::kNot)) {
      // `a not b` is no comparison; the caller reports the 'not'.
      if (ahead(1).kind != Tok::kIn) break;
      advance();
      advance();
      op = CompareOp::kNotIn;
    } else {
      const auto* row = std::find_if(std::begin(kCompareOps), std::end(kCompareOps),
                                     [&](const CompareRow& r) { return at(r.token); });
      if (row == std::end(kCompareOps)) break;
      advance();
      op = row->op;
      // Python 2's operator, which would otherwise be reported as a missing operand.
      if (op == CompareOp::kLt && at(Tok::kGreater))
        fail(error_at(here(), ErrorKind::kSyntax, "'<>' is no operator: use '!='"));
    }
    if (!node) {
      node = std::make_unique<Compare>(SourceRange{});
      node->left = std::move(left);
      grow_chain();
    }
    node->ops.push_back(op);
    node->rights.push_back(binary(1));
  }
  if (!node) return left;
  node->range = since(begin);
  return node;
}

ExprPtr Parser::binary(int min_precedence) {
  uint32_t begin = now().begin;
  ExprPtr left = unary();
  for (;;) {
    check_token();
    const BinaryRow* row = binary_row(now().kind);
    if (!row || row->precedence < min_precedence) return left;
    Token op = advance();
    auto node = std::make_unique<Binary>(SourceRange{});
    node->op = row->op;
    node->op_range = range(op);
    node->left = std::move(left);
    // One level tighter on the right, so that operators of equal precedence group to the left.
    node->right = binary(row->precedence + 1);
    node->range = since(begin);
    grow_chain();
    left = std::move(node);
  }
}

ExprPtr Parser::unary() {
  check_token();
  Tok k = now().kind;
  if (k != Tok::kMinus && k != Tok::kPlus && k != Tok::kTilde) return power();
  Level level(*this);
  uint32_t begin = advance().begin;
  auto node = std::make_unique<Unary>(SourceRange{});
  node->op = k == Tok::kMinus ? UnaryOp::kNegate : k == Tok::kPlus ? UnaryOp::kPlus : UnaryOp::kInvert;
  node->operand = unary();
  node->range = since(begin);
  grow_chain();
  return node;
}

ExprPtr Parser::power() {
  uint32_t begin = now().begin;
  ExprPtr base = postfix();
  if (!at(Tok::kPow)) return base;
  Level level(*this);
  Token op = advance();
  auto node = std::make_unique<Binary>(SourceRange{});
  node->op = BinaryOp::kPow;
  node->op_range = range(op);
  node->left = std::move(base);
  // 2 ** -1 is valid, and a ** b ** c groups to the right by way of unary() and power().
  node->right = unary();
  node->range = since(begin);
  grow_chain();
  return node;
}

ExprPtr Parser::postfix() {
  if (at(Tok::kAwait)) fail(error_at(here(), ErrorKind::kUnsupported, "'await' is not supported: use plain functions"));
  uint32_t begin = now().begin;
  ExprPtr e = atom();
  for (;;) {
    if (at(Tok::kLParen)) {
      e = call(std::move(e));
    } else if (at(Tok::kLBracket)) {
      e = subscript(std::move(e));
    } else if (take(Tok::kDot)) {
      Token name = expect_identifier("a name after '.'");
      auto node = std::make_unique<Attribute>(SourceRange{});
      node->base = std::move(e);
      node->name = name_of(range(name));
      node->name_range = range(name);
      e = std::move(node);
    } else {
      return e;
    }
    e->range = since(begin);
    grow_chain();
  }
}

ExprPtr Parser::call(ExprPtr callee) {
  Token open = advance();
  auto node = std::make_unique<Call>(SourceRange{});
  node->callee = std::move(callee);
  std::unordered_map<std::string, size_t> given;  // where in keywords
  while (!at(Tok::kRParen)) {
    Token first = now();
    if (take(Tok::kPow)) {
      ExprPtr value = expression();
      node->keywords.push_back({"", std::move(value), since(first.begin)});
    } else if (take(Tok::kStar)) {
      auto star = std::make_unique<Starred>(SourceRange{});
      star->value = expression();
      star->range = since(first.begin);
      node->args.push_back(std::move(star));
    } else if (at(Tok::kIdentifier) && ahead(1).kind == Tok::kAssign) {
      std::string name(range(advance()).str());  // as it stands, in classes too
      advance();
      if (const auto [first_one, is_new] = given.emplace(name, node->keywords.size()); !is_new)
        fail(with_note(error_at(range(first), ErrorKind::kSyntax, "the argument '{}' is given twice", name),
                       "first given here", node->keywords[first_one->second].range));
      ExprPtr value = expression();
      node->keywords.push_back({std::move(name), std::move(value), since(first.begin)});
    } else {
      ExprPtr value = named_expression();
      if (at(Tok::kAssign))
        fail(with_note(error_at(here(), ErrorKind::kSyntax, "a keyword argument's name must be a plain name"),
                       "help: '==' compares"));
      if (at(Tok::kFor)) {
        value = comprehension(Comprehension::Form::kGenerator, std::move(value), nullptr, first.begin);
        if (!node->args.empty() || !node->keywords.empty() || !at(Tok::kRParen))
          fail(error_at(value->range, ErrorKind::kSyntax,
                        "a generator expression among other arguments needs its own brackets"));
      }
      if (!node->keywords.empty())
        fail(error_at(value->range, ErrorKind::kSyntax, "a positional argument cannot follow a keyword argument"));
      node->args.push_back(std::move(value));
    }
    if (!take(Tok::kComma)) break;
  }
  expect_close(Tok::kRParen, open);
  return node;
}

ExprPtr Parser::subscript(ExprPtr base) {
  Token open = advance();
  auto node = std::make_unique<Subscript>(SourceRange{});
  node->base = std::move(base);
  if (at(Tok::kRBracket)) fail(error_at(here(), ErrorKind::kSyntax, "expected an index between '[' and ']'"));
  uint32_t begin = now().begin;
  node->index = subscript_item();
  if (at(Tok::kComma)) {
    auto tuple = std::make_unique<Tuple>(SourceRange{});
    tuple->items.push_back(std::move(node->index));
    while (take(Tok::kComma) && !at(Tok::kRBracket)) tuple->items.push_back(subscript_item());
    tuple->range = since(begin);
    node->index = std::move(tuple);
  }
  expect_close(Tok::kRBracket, open);
  return node;
}

ExprPtr Parser::subscript_item() {
  uint32_t begin = now().begin;
  ExprPtr lower;
  if (!at(Tok::kColon)) {
    lower = star_or_named();
    if (!at(Tok::kColon)) return lower;
  }
  advance();
  auto slice = std::make_unique<Slice>(SourceRange{});
  slice->lower = std::move(lower);
  auto ends = [&] { return at(Tok::kColon) || at(Tok::kComma) || at(Tok::kRBracket); };
  if (!ends()) slice->upper = expression();
  if (take(Tok::kColon) && !ends()) slice->step = expression();
  slice->range = since(begin);
  return slice;
}

ExprPtr Parser::atom() {
  check_token();
  Token t = now();
  auto constant = [&](Constant c) {
    advance();
    return std::make_unique<ConstantExpr>(range(t), std::move(c));
  };
  switch (t.kind) {
    case Tok::kIdentifier: {
      advance();
      auto node = std::make_unique<Name>(range(t));
      node->id = name_of(range(t));
      return node;
    }
    case Tok::kInt: {
      auto value = int_value(range(t));
      if (!value.ok()) fail(std::move(value.error()));
      return constant(*value);
    }
    case Tok::kFloat:
      return constant(float_value(range(t)));
    case Tok::kImaginary: {
      // A call of a builtin function of scripts: kernels have no complex constants.
      advance();
      auto function = std::make_unique<Name>(range(t));
      function->id = kImaginary;
      auto node = std::make_unique<Call>(range(t));
      node->callee = std::move(function);
      node->args.push_back(std::make_unique<ConstantExpr>(range(t), Constant(float_value(range(t)))));
      return node;
    }
    case Tok::kString:
      return strings();
    case Tok::kNone:
      return constant(None{});
    case Tok::kTrue:
      return constant(true);
    case Tok::kFalse:
      return constant(false);
    case Tok::kEllipsis:
      advance();
      return std::make_unique<Ellipsis>(range(t));
    case Tok::kLParen:
      return parenthesised();
    case Tok::kLBracket:
      return list_display();
    case Tok::kLBrace:
      return brace_display();
    case Tok::kLambda:
      fail(error_at(range(t), ErrorKind::kSyntax, "a lambda inside an operator's operand needs brackets"));
    case Tok::kYield:
      fail(error_at(range(t), ErrorKind::kSyntax, "a 'yield' inside of an expression needs brackets"));
    case Tok::kStar:
      fail(error_at(range(t), ErrorKind::kSyntax, "'*' can only stand in a call, a tuple, a list or a set"));
    default:
      break;
  }
  if (is_keyword(t.kind))
    fail(error_at(range(t), ErrorKind::kSyntax, "expected an expression, but '{}' is a keyword", range(t).str()));
  fail_expected("an expression");
}

ExprPtr Parser::yield() {
  Token first = advance();
  if (!in_function_) fail(error_at(range(first), ErrorKind::kSyntax, "'yield' is outside of a function"));
  yields_ = true;
  auto node = std::make_unique<Yield>(SourceRange{});
  node->from = take(Tok::kFrom);
  if (node->from)
    node->value = expression();
  else if (!at(Tok::kNewline) && !at(Tok::kSemicolon) && !at(Tok::kEnd) && !at(Tok::kRParen))
    node->value = expressions(true);
  node->range = since(first.begin);
  return node;
}

ExprPtr Parser::parenthesised() {
  Token open = advance();
  if (take(Tok::kRParen)) return std::make_unique<Tuple>(since(open.begin));
  if (at(Tok::kYield)) {
    ExprPtr inner = yield();
    expect_close(Tok::kRParen, open);
    return inner;
  }
  ExprPtr inner = expressions(true);
  if (at(Tok::kFor)) {
    inner = comprehension(Comprehension::Form::kGenerator, std::move(inner), nullptr, open.begin);
    expect_close(Tok::kRParen, open);
    inner->range = since(open.begin);
    return inner;
  }
  expect_close(Tok::kRParen, open);
  if (inner->kind == ExprKind::kStarred)
    fail(error_at(inner->range, ErrorKind::kSyntax, "'*' needs a comma after it to make a tuple"));
  // Brackets count to a tuple, but not to another expression: the caret of an error stays on what is wrong.
  if (inner->kind == ExprKind::kTuple) inner->range = since(open.begin);
  return inner;
}

ExprPtr Parser::list_display() {
  Token open = advance();
  auto node = std::make_unique<List>(SourceRange{});
  while (!at(Tok::kRBracket)) {
    node->items.push_back(star_or_named());
    if (at(Tok::kFor) && node->items.size() == 1) {
      ExprPtr result = comprehension(Comprehension::Form::kList, std::move(node->items[0]), nullptr, open.begin);
      expect_close(Tok::kRBracket, open);
      result->range = since(open.begin);
      return result;
    }
    if (!take(Tok::kComma)) break;
  }
  expect_close(Tok::kRBracket, open);
  node->range = since(open.begin);
  return node;
}

ExprPtr Parser::brace_display() {
  Token open = advance();
  // The first element decides between dict and set, and `{}` is a dict, so both are at hand until the end.
  auto dict = std::make_unique<Dict>(SourceRange{});
  auto set = std::make_unique<Set>(SourceRange{});
  while (!at(Tok::kRBrace)) {
    bool first = dict->values.empty() && set->items.empty();
    ExprPtr key, value;
    if (at(Tok::kPow) && set->items.empty()) {
      advance();
      value = binary(1);
      // No key marks `**mapping`.
      dict->keys.push_back(nullptr);
      dict->values.push_back(std::move(value));
    } else {
      key = star_or_named();
      if (!dict->values.empty() && !at(Tok::kColon)) fail_expected("':' after a dict's key");
      if (set->items.empty() && take(Tok::kColon)) value = expression();
      if (at(Tok::kFor) && first) {
        auto form = value ? Comprehension::Form::kDict : Comprehension::Form::kSet;
        ExprPtr result = comprehension(form, std::move(key), std::move(value), open.begin);
        expect_close(Tok::kRBrace, open);
        result->range = since(open.begin);
        return result;
      }
      if (value) {
        dict->keys.push_back(std::move(key));
        dict->values.push_back(std::move(value));
      } else {
        set->items.push_back(std::move(key));
      }
    }
    if (!take(Tok::kComma)) break;
  }
  expect_close(Tok::kRBrace, open);
  if (!set->items.empty()) {
    set->range = since(open.begin);
    return set;
  }
  dict->range = since(open.begin);
  return dict;
}

std::vector<ForClause> Parser::for_clauses() {
  std::vector<ForClause> clauses;
  while (take(Tok::kFor)) {
    ForClause c;
    c.target = target_list();
    check_target(*c.target);
    if (!take(Tok::kIn)) fail_expected("'in' after the names of 'for'");
    // disjunction() and not expression(): the `if` behind it is a condition of the clause, not `a if b else c`.
    c.iterable = disjunction();
    while (take(Tok::kIf)) {
      bool walrus = at(Tok::kIdentifier) && ahead(1).kind == Tok::kWalrus;
      c.conditions.push_back(walrus ? named_expression() : disjunction());
    }
    clauses.push_back(std::move(c));
  }
  return clauses;
}

ExprPtr Parser::comprehension(Comprehension::Form form, ExprPtr element, ExprPtr value, uint32_t begin) {
  if (element->kind == ExprKind::kStarred)
    fail(error_at(element->range, ErrorKind::kSyntax, "a comprehension's element cannot be starred"));
  auto node = std::make_unique<Comprehension>(SourceRange{});
  node->form = form;
  node->element = std::move(element);
  node->value = std::move(value);
  node->clauses = for_clauses();
  node->range = since(begin);
  return node;
}

}  // namespace kiln::parse
