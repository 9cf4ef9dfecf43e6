#include <fmt/format.h>

#include <algorithm>

#include "compiler/parse/parser_impl.h"

namespace kiln::parse {

using namespace ast;

namespace {

struct AugOp {
  Tok token;
  BinaryOp op;
};
constexpr AugOp kAugOps[] = {
    {Tok::kAddAssign, BinaryOp::kAdd}, {Tok::kSubAssign, BinaryOp::kSub},           {Tok::kMulAssign, BinaryOp::kMul},
    {Tok::kDivAssign, BinaryOp::kDiv}, {Tok::kFloorDivAssign, BinaryOp::kFloorDiv}, {Tok::kModAssign, BinaryOp::kMod},
    {Tok::kPowAssign, BinaryOp::kPow}, {Tok::kMatMulAssign, BinaryOp::kMatMul},     {Tok::kAndAssign, BinaryOp::kAnd},
    {Tok::kOrAssign, BinaryOp::kOr},   {Tok::kXorAssign, BinaryOp::kXor},           {Tok::kShlAssign, BinaryOp::kShl},
    {Tok::kShrAssign, BinaryOp::kShr},
};

constexpr std::string_view kNoTypeParameters = "type parameters are not supported: leave them out";

}  // namespace

Body Parser::file() {
  Body body;
  while (!at(Tok::kEnd)) {
    if (take(Tok::kNewline)) continue;
    statement(body);
  }
  return body;
}

void Parser::statement(Body& out) {
  if (!keep_unsupported) return supported_statement(out);
  const size_t begin = at_, made = out.size();
  const bool in_function = in_function_, yields = yields_;
  const int loops = loops_;
  const std::string around = class_;
  try {
    supported_statement(out);
  } catch (SyntaxFailure& f) {
    if (f.diagnostic.kind != ErrorKind::kUnsupported) throw;
    out.resize(made);
    at_ = begin, in_function_ = in_function, yields_ = yields, loops_ = loops, class_ = around;
    const Token first = now();
    skip_statement();
    auto node = std::make_unique<Unsupported>(since(first.begin));
    node->why = std::move(f.diagnostic);
    out.push_back(std::move(node));
  }
}

void Parser::skip_statement() {
  auto skip_line = [&] {
    while (!at(Tok::kNewline) && !at(Tok::kEnd)) advance();
    while (take(Tok::kNewline)) {
    }
  };
  while (at(Tok::kAt)) skip_line();  // decorators
  do {
    skip_line();
    int blocks = 0;
    while (at(Tok::kIndent) || (blocks > 0 && !at(Tok::kEnd))) {
      const Token t = advance();
      blocks += t.kind == Tok::kIndent ? 1 : t.kind == Tok::kDedent ? -1 : 0;
      if (blocks == 0) break;
    }
  } while (at(Tok::kElse) || at(Tok::kElif) || at(Tok::kExcept) || at(Tok::kFinally));
}

void Parser::supported_statement(Body& out) {
  Level level(*this);
  height_ = 0;
  check_token();
  switch (now().kind) {
    case Tok::kIndent:
      fail(error_at(range(ahead(1)), ErrorKind::kSyntax, "this line is indented, but no block is open here"));
    case Tok::kIf:
      out.push_back(if_statement());
      return;
    case Tok::kWhile:
      out.push_back(while_statement());
      return;
    case Tok::kFor:
      out.push_back(for_statement());
      return;
    case Tok::kTry:
      out.push_back(try_statement());
      return;
    case Tok::kWith:
      out.push_back(with_statement());
      return;
    case Tok::kDef:
      out.push_back(function({}, now().begin));
      return;
    case Tok::kClass:
      out.push_back(class_def({}));
      return;
    case Tok::kAt:
      out.push_back(decorated());
      return;
    case Tok::kElse:
    case Tok::kElif:
    case Tok::kExcept:
    case Tok::kFinally: {
      std::string_view word = spelling(now().kind);
      // Clauses are consumed by the statement that they belong to, so one that is met here has lost it.
      std::string_view owner = now().kind == Tok::kElif   ? "'if'"
                               : now().kind == Tok::kElse ? "'if', 'for', 'while' or 'try'"
                                                          : "'try'";
      fail(error_at(here(), ErrorKind::kSyntax, "'{}' has no {} before it at this indentation", word, owner));
    }
    case Tok::kAsync:
      fail(error_at(here(), ErrorKind::kUnsupported, "'async' is not supported: use plain functions"));
    default:
      if (at_match())
        out.push_back(match_statement());
      else
        simple_line(out);
  }
}

void Parser::simple_line(Body& out) {
  do {
    if (at(Tok::kNewline) || at(Tok::kEnd)) break;
    height_ = 0;
    out.push_back(simple());
  } while (take(Tok::kSemicolon));
  if (at(Tok::kEnd) || take(Tok::kNewline)) return;
  if (at(Tok::kColon)) fail(error_at(here(), ErrorKind::kSyntax, "expected the end of the statement, found ':'"));
  // `print x` is Python 2's statement and a common mistake.
  const auto* call = out.empty() ? nullptr : dyn_as<ExprStmt>(out.back().get());
  const auto* name = call ? dyn_as<Name>(call->value.get()) : nullptr;
  if (name && name->id == "print")
    fail(with_note(error_at(here(), ErrorKind::kSyntax, "expected '(' after 'print'"), "help: print(…) is a function"));
  if (name && name->id == "type" && at(Tok::kIdentifier))
    fail(error_at(here(), ErrorKind::kUnsupported, "a 'type' statement is not supported: assign the type to a name"));
  fail_expected("the end of the statement");
}

StmtPtr Parser::simple() {
  check_token();
  Token first = now();
  auto finish = [&](auto node) -> StmtPtr {
    node->range = since(first.begin);
    return node;
  };
  switch (first.kind) {
    case Tok::kPass:
      advance();
      return std::make_unique<Pass>(range(first));
    case Tok::kBreak:
    case Tok::kContinue:
      advance();
      if (loops_ == 0)
        fail(error_at(range(first), ErrorKind::kSyntax, "'{}' is outside of a loop", spelling(first.kind)));
      if (first.kind == Tok::kBreak) return std::make_unique<Break>(range(first));
      return std::make_unique<Continue>(range(first));
    case Tok::kReturn: {
      advance();
      if (!in_function_) fail(error_at(range(first), ErrorKind::kSyntax, "'return' is outside of a function"));
      auto node = std::make_unique<Return>(range(first));
      if (!at(Tok::kNewline) && !at(Tok::kSemicolon) && !at(Tok::kEnd)) node->value = expressions(true);
      return finish(std::move(node));
    }
    case Tok::kRaise: {
      advance();
      auto node = std::make_unique<Raise>(range(first));
      if (!at(Tok::kNewline) && !at(Tok::kSemicolon) && !at(Tok::kEnd)) node->value = expression();
      if (at(Tok::kFrom)) {
        advance();
        node->cause = expression();
      }
      return finish(std::move(node));
    }
    case Tok::kAssert: {
      advance();
      auto node = std::make_unique<Assert>(range(first));
      node->condition = expression();
      if (take(Tok::kComma)) node->message = expression();
      return finish(std::move(node));
    }
    case Tok::kDel: {
      advance();
      auto node = std::make_unique<Del>(range(first));
      // `del (a, b)` and `del [a, b]` are those of the parts.
      auto add = [&](auto& self, ExprPtr target) -> void {
        const ExprKind kind = target->kind;
        if (kind == ExprKind::kTuple || kind == ExprKind::kList) {
          auto& items =
              kind == ExprKind::kTuple ? static_cast<Tuple&>(*target).items : static_cast<List&>(*target).items;
          for (ExprPtr& item : items) self(self, std::move(item));
          return;
        }
        if (kind != ExprKind::kName && kind != ExprKind::kAttribute && kind != ExprKind::kSubscript)
          fail(error_at(target->range, ErrorKind::kSyntax, "'del' takes names, attributes and elements"));
        node->targets.push_back(std::move(target));
      };
      bool any = false;
      do {
        // A comma may end the list, as in `del a,`.
        if (at(Tok::kNewline) && any) break;
        any = true;
        // postfix() and not expression(): a target has no operators.
        add(add, postfix());
      } while (take(Tok::kComma));
      return finish(std::move(node));
    }
    case Tok::kGlobal:
    case Tok::kNonlocal: {
      advance();
      auto node = std::make_unique<Global>(range(first));
      node->nonlocal = first.kind == Tok::kNonlocal;
      if (node->nonlocal && !in_function_)
        fail(error_at(range(first), ErrorKind::kSyntax, "'nonlocal' is outside of a function"));
      do {
        node->names.push_back(name_of(range(expect_identifier("a name"))));
      } while (take(Tok::kComma));
      return finish(std::move(node));
    }
    case Tok::kImport:
      return import_statement();
    case Tok::kFrom:
      return from_statement();
    default:
      return expression_statement();
  }
}

StmtPtr Parser::expression_statement() {
  Token first = now();
  auto value = [&](bool starred) { return at(Tok::kYield) ? yield() : expressions(starred); };
  ExprPtr left = value(true);
  for (const AugOp& a : kAugOps) {
    if (!at(a.token)) continue;
    if (left->kind != ExprKind::kName && left->kind != ExprKind::kAttribute && left->kind != ExprKind::kSubscript)
      fail(error_at(left->range, ErrorKind::kSyntax, "'{}' needs a name, an attribute or an element on its left",
                    spelling(a.token)));
    advance();
    auto node = std::make_unique<AugAssign>(SourceRange{});
    node->op = a.op;
    node->target = std::move(left);
    node->value = value(false);
    node->range = since(first.begin);
    return node;
  }
  if (take(Tok::kColon)) {
    if (left->kind != ExprKind::kName && left->kind != ExprKind::kAttribute && left->kind != ExprKind::kSubscript)
      fail(error_at(left->range, ErrorKind::kSyntax, "only a name, an attribute or an element can be annotated"));
    auto node = std::make_unique<AnnAssign>(SourceRange{});
    node->target = std::move(left);
    node->annotation = expression();
    if (take(Tok::kAssign)) node->value = value(true);
    node->range = since(first.begin);
    return node;
  }
  if (!at(Tok::kAssign)) {
    if (left->kind == ExprKind::kStarred)
      fail(error_at(left->range, ErrorKind::kSyntax, "'*' can only stand in a call, a tuple, a list or a set"));
    auto node = std::make_unique<ExprStmt>(left->range);
    node->value = std::move(left);
    return node;
  }
  auto node = std::make_unique<Assign>(SourceRange{});
  // `a = b = 1`: whatever stands left of an '=' turns out to be a target, and the last one is the value.
  while (take(Tok::kAssign)) {
    check_target(*left);
    node->targets.push_back(std::move(left));
    left = value(true);
  }
  if (left->kind == ExprKind::kStarred)
    fail(error_at(left->range, ErrorKind::kSyntax, "'*' can only stand in a call, a tuple, a list or a set"));
  node->value = std::move(left);
  node->range = since(first.begin);
  return node;
}

std::string Parser::dotted_name(std::string_view what) {
  std::string name(range(expect_identifier(what)).str());
  while (take(Tok::kDot)) {
    name += '.';
    name += range(expect_identifier("a name after '.'")).str();
  }
  return name;
}

StmtPtr Parser::import_statement() {
  Token first = advance();
  auto node = std::make_unique<Import>(SourceRange{});
  do {
    Token begin = now();
    Import::Alias alias;
    alias.name = dotted_name("a module's name");
    if (take(Tok::kAs)) alias.as = name_of(range(expect_identifier("a name after 'as'")));
    alias.range = since(begin.begin);
    node->names.push_back(std::move(alias));
  } while (take(Tok::kComma));
  node->range = since(first.begin);
  return node;
}

StmtPtr Parser::from_statement() {
  Token first = advance();
  auto node = std::make_unique<Import>(SourceRange{});
  while (at(Tok::kDot) || at(Tok::kEllipsis)) node->from_module += range(advance()).str();
  if (node->from_module.empty() || !at(Tok::kImport)) node->from_module += dotted_name("a module's name");
  if (!take(Tok::kImport)) fail_expected("'import' after the module's name");
  Token open = now();
  bool bracket = take(Tok::kLParen);
  if (!bracket && at(Tok::kStar)) {
    Token star = advance();
    node->names.push_back({"*", "", range(star)});
  } else {
    do {
      if (bracket && at(Tok::kRParen) && !node->names.empty()) break;
      Token name = expect_identifier("a name to import");
      Import::Alias alias;
      alias.name = range(name).str();
      if (take(Tok::kAs)) alias.as = name_of(range(expect_identifier("a name after 'as'")));
      alias.range = since(name.begin);
      node->names.push_back(std::move(alias));
    } while (take(Tok::kComma));
  }
  if (bracket) expect_close(Tok::kRParen, open);
  node->range = since(first.begin);
  return node;
}

void Parser::expect_colon(const Token& owner) {
  if (take(Tok::kColon)) return;
  check_token();
  std::string_view word = range(owner).str();
  if (at(Tok::kAssign)) {
    fail(with_note(error_at(here(), ErrorKind::kSyntax, "expected ':' after '{}', found '='", word),
                   "help: '==' compares, '=' assigns"));
  }
  if (owner.kind == Tok::kElse && at(Tok::kIf))
    fail(with_note(error_at(here(), ErrorKind::kSyntax, "expected ':' after 'else', found 'if'"),
                   "help: 'else if' is written 'elif'"));
  fail(error_at(here(), ErrorKind::kSyntax, "expected ':' after '{}', found {}", word, describe(now())));
}

Body Parser::block(const Token& owner) {
  expect_colon(owner);
  Body body;
  if (!take(Tok::kNewline)) {
    if (at(Tok::kEnd)) fail_expected(fmt::format("a statement after '{}'", range(owner).str()));
    simple_line(body);
    return body;
  }
  if (!at(Tok::kIndent)) {
    // Without a body the next token may be the first of a far line; then the place is the end of this one.
    SourceRange place = now().kind == Tok::kEnd || now().kind == Tok::kDedent ? here() : range(now());
    fail(error_at(place, ErrorKind::kSyntax, "expected an indented block after '{}' on line {}", range(owner).str(),
                  source_.line_of(owner.begin)));
  }
  advance();
  while (!take(Tok::kDedent)) {
    if (at(Tok::kEnd)) break;
    if (take(Tok::kNewline)) continue;
    statement(body);
  }
  return body;
}

Body Parser::loop_block(const Token& owner) {
  ++loops_;
  Body body = block(owner);
  --loops_;
  return body;
}

StmtPtr Parser::if_statement() {
  Level level(*this);
  Body whole;  // the one statement
  Body* into = &whole;
  // `elif` is an `if` in the else branch, so the tree needs no chain of conditions. Written, it is no level, but later
  // passes recurse over the tree.
  for (int branches = 0; branches == 0 || at(Tok::kElif); ++branches) {
    if (branches > kMaxElifs)
      fail(error_at(here(), ErrorKind::kSyntax, "there are more than {} 'elif' in a row", kMaxElifs));
    Token word = advance();
    auto node = std::make_unique<If>(SourceRange{});
    height_ = 0;
    node->condition = named_expression();
    node->range = since(word.begin);
    node->body = block(word);
    If& made = *node;
    into->push_back(std::move(node));
    into = &made.else_body;
  }
  if (at(Tok::kElse)) {
    Token word = advance();
    *into = block(word);
  }
  return std::move(whole.front());
}

StmtPtr Parser::while_statement() {
  Token first = advance();
  auto node = std::make_unique<While>(SourceRange{});
  node->condition = named_expression();
  node->range = since(first.begin);
  node->body = loop_block(first);
  if (at(Tok::kElse)) {
    Token word = advance();
    node->else_body = block(word);
  }
  return node;
}

StmtPtr Parser::for_statement() {
  Token first = advance();
  auto node = std::make_unique<For>(SourceRange{});
  node->target = target_list();
  check_target(*node->target);
  if (!take(Tok::kIn)) fail_expected("'in' after the names of 'for'");
  node->iterable = expressions(true);
  node->range = since(first.begin);
  node->body = loop_block(first);
  if (at(Tok::kElse)) {
    Token word = advance();
    node->else_body = block(word);
  }
  return node;
}

StmtPtr Parser::try_statement() {
  Token first = advance();
  auto node = std::make_unique<Try>(range(first));
  node->body = block(first);
  while (at(Tok::kExcept)) {
    Token word = advance();
    Try::Handler handler;
    if (at(Tok::kStar)) fail(error_at(here(), ErrorKind::kUnsupported, "'except*' is not supported: use 'except'"));
    // Handlers are tried in order, so one that takes everything hides those after it. CPython refuses it too.
    if (!node->handlers.empty() && !node->handlers.back().type)
      fail(error_at(node->handlers.back().range, ErrorKind::kSyntax, "only the last 'except' can be without a type"));
    if (!at(Tok::kColon)) {
      handler.type = expression();
      if (take(Tok::kAs)) handler.name = name_of(range(expect_identifier("a name after 'as'")));
    }
    handler.range = since(word.begin);
    handler.body = block(word);
    node->handlers.push_back(std::move(handler));
  }
  if (at(Tok::kElse) && !node->handlers.empty()) {
    Token word = advance();
    node->else_body = block(word);
  }
  if (at(Tok::kFinally)) {
    Token word = advance();
    node->finally_body = block(word);
  } else if (node->handlers.empty()) {
    fail(error_at(here(), ErrorKind::kSyntax, "expected 'except' or 'finally' after the block of 'try' on line {}",
                  source_.line_of(first.begin)));
  }
  return node;
}

StmtPtr Parser::with_statement() {
  Token first = advance();
  auto node = std::make_unique<With>(SourceRange{});
  // `with (a as b, c as d):` — a bracket that holds an `as` belongs to the statement, not to the expression.
  bool bracket = false;
  if (at(Tok::kLParen)) {
    int depth = 0;
    for (size_t i = at_; i < stream_.tokens.size(); ++i) {
      Tok k = stream_.tokens[i].kind;
      if (k == Tok::kLParen || k == Tok::kLBracket || k == Tok::kLBrace) ++depth;
      if (k == Tok::kAs && depth == 1) bracket = true;
      if ((k == Tok::kRParen || k == Tok::kRBracket || k == Tok::kRBrace) && --depth == 0) break;
    }
  }
  Token open = now();
  if (bracket) advance();
  do {
    if (bracket && at(Tok::kRParen)) break;
    With::Item item;
    item.context = expression();
    if (take(Tok::kAs)) {
      item.target = postfix();
      check_target(*item.target);
    }
    node->items.push_back(std::move(item));
  } while (take(Tok::kComma));
  if (bracket) expect_close(Tok::kRParen, open);
  node->range = since(first.begin);
  node->body = block(first);
  return node;
}

StmtPtr Parser::decorated() {
  uint32_t begin = now().begin;
  std::vector<ExprPtr> decorators;
  while (take(Tok::kAt)) {
    decorators.push_back(named_expression());
    if (!take(Tok::kNewline)) fail_expected("the end of the line after a decorator");
    while (take(Tok::kNewline)) {
    }
  }
  // The decorators belong to full_range, which is the text that a kernel is compiled from again.
  if (at(Tok::kDef)) return function(std::move(decorators), begin);
  if (at(Tok::kClass)) return class_def(std::move(decorators));
  if (at(Tok::kAsync)) fail(error_at(here(), ErrorKind::kUnsupported, "'async' is not supported: use plain functions"));
  fail_expected("'def' or 'class' after a decorator");
}

StmtPtr Parser::function(std::vector<ExprPtr> decorators, uint32_t begin) {
  Token first = advance();
  auto node = std::make_unique<FunctionDef>(SourceRange{});
  node->decorators = std::move(decorators);
  Token name = expect_identifier("a function's name after 'def'");
  node->name = name_of(range(name));
  node->name_range = range(name);
  Token open = now();
  if (at(Tok::kLBracket)) fail(error_at(here(), ErrorKind::kUnsupported, kNoTypeParameters));
  if (!take(Tok::kLParen)) fail_expected("'(' after the function's name");
  node->params = parameters(Tok::kRParen, true);
  expect_close(Tok::kRParen, open);
  if (take(Tok::kArrow)) node->returns = expression();
  node->range = since(first.begin);
  // A nested function starts outside of the loops around it.
  bool outer_function = std::exchange(in_function_, true);
  int outer_loops = std::exchange(loops_, 0);
  bool outer_yields = std::exchange(yields_, false);
  node->body = block(first);
  in_function_ = outer_function;
  loops_ = outer_loops;
  node->is_generator = std::exchange(yields_, outer_yields);
  node->full_range = since(begin);
  return node;
}

StmtPtr Parser::class_def(std::vector<ExprPtr> decorators) {
  Token first = advance();
  auto node = std::make_unique<ClassDef>(SourceRange{});
  node->decorators = std::move(decorators);
  const SourceRange name = range(expect_identifier("a class's name after 'class'"));
  node->name = name_of(name);
  Token open = now();
  if (at(Tok::kLBracket)) fail(error_at(here(), ErrorKind::kUnsupported, kNoTypeParameters));
  if (take(Tok::kLParen)) {
    while (!at(Tok::kRParen)) {
      Token begin = now();
      if (at(Tok::kPow) || at(Tok::kStar))
        fail(error_at(here(), ErrorKind::kUnsupported, "'{}' in the bases of a class is not supported",
                      spelling(now().kind)));
      if (begin.kind == Tok::kIdentifier && ahead(1).kind == Tok::kAssign) {
        Keyword k;
        k.name = range(advance()).str();
        advance();
        k.value = expression();
        k.range = since(begin.begin);
        node->keywords.push_back(std::move(k));
      } else {
        node->bases.push_back(expression());
      }
      if (!take(Tok::kComma)) break;
    }
    expect_close(Tok::kRParen, open);
  }
  node->range = since(first.begin);
  // A class's body runs at once and is neither function nor loop, so `return` and `break` have nothing to leave.
  bool outer_function = std::exchange(in_function_, false);
  int outer_loops = std::exchange(loops_, 0);
  const std::string_view bare = name.str();
  std::string outer_class =
      std::exchange(class_, std::string(bare.substr(std::min(bare.find_first_not_of('_'), bare.size()))));
  node->body = block(first);
  class_ = std::move(outer_class);
  in_function_ = outer_function;
  loops_ = outer_loops;
  return node;
}

}  // namespace kiln::parse
