// `match` and its patterns. Both words are names elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/parse/parser_impl.h"

namespace kiln::parse {

using namespace ast;

namespace {

constexpr std::string_view kMatch = "match", kCase = "case";

/// Matches whatever it is given.
bool is_irrefutable(const Pattern& p) {
  if (p.kind == Pattern::Kind::kOr) return is_irrefutable(p.parts.back());
  return p.kind == Pattern::Kind::kAny;
}

using Names = std::set<std::string>;

}  // namespace

bool Parser::at_match() const {
  if (now().kind != Tok::kIdentifier || range(now()).str() != kMatch) return false;
  // The line ends with the colon in front of the cases, and something stands between.
  size_t n = 1;
  while (ahead(n).kind != Tok::kNewline && ahead(n).kind != Tok::kEnd && ahead(n).kind != Tok::kError) ++n;
  if (n < 3 || ahead(n - 1).kind != Tok::kColon || ahead(n).kind != Tok::kNewline) return false;
  const Tok next = ahead(1).kind;
  return next != Tok::kAssign && next != Tok::kDot && next != Tok::kColon && next != Tok::kComma;
}

StmtPtr Parser::match_statement() {
  Level level(*this);
  const Token word = advance();
  auto node = std::make_unique<Match>(SourceRange{});
  height_ = 0;
  node->subject = expressions(true);
  node->range = since(word.begin);
  if (!take(Tok::kColon)) fail_expected("':' after 'match'");
  take(Tok::kNewline);
  if (!at(Tok::kIndent))
    fail(error_at(now().kind == Tok::kEnd || now().kind == Tok::kDedent ? here() : range(now()), ErrorKind::kSyntax,
                  "expected indented cases after 'match' on line {}", source_.line_of(word.begin)));
  advance();
  while (!take(Tok::kDedent)) {
    if (at(Tok::kEnd)) break;
    if (take(Tok::kNewline)) continue;
    if (!at(Tok::kIdentifier) || range(now()).str() != kCase) fail_expected("'case'");
    if (!node->cases.empty()) check_case(node->cases.back(), false);
    node->cases.push_back(match_case());
  }
  if (node->cases.empty()) fail_expected("'case'");
  check_case(node->cases.back(), true);
  return node;
}

Match::Case Parser::match_case() {
  const Token word = advance();
  Match::Case c;
  height_ = 0;
  c.pattern = open_pattern();
  if (take(Tok::kIf)) c.guard = named_expression();
  c.range = since(word.begin);
  c.body = block(word);
  return c;
}

void Parser::check_case(const Match::Case& c, bool last) {
  if (!last && !c.guard && is_irrefutable(c.pattern))
    fail(error_at(c.pattern.range, ErrorKind::kSyntax,
                  "this pattern matches everything: the cases behind it never run"));
  // Names of one pattern differ, and alternatives bind the same ones.
  auto names_in = [&](auto& self, const Pattern& p) -> Names {
    Names names;
    auto add = [&](const std::string& name) {
      if (!name.empty() && !names.insert(name).second)
        fail(error_at(p.range, ErrorKind::kSyntax, "the pattern binds the name '{}' twice", name));
    };
    for (size_t i = 0; i < p.parts.size(); ++i) {
      const Names of_part = self(self, p.parts[i]);
      if (p.kind != Pattern::Kind::kOr) {
        for (const std::string& name : of_part) add(name);
        continue;
      }
      if (i > 0 && of_part != names)
        fail(error_at(p.range, ErrorKind::kSyntax, "the alternatives of a pattern must bind the same names"));
      names = of_part;
      if (i + 1 < p.parts.size() && is_irrefutable(p.parts[i]))
        fail(error_at(p.parts[i].range, ErrorKind::kSyntax,
                      "this pattern matches everything: the alternatives behind it are never tried"));
    }
    const auto stars = std::count_if(p.parts.begin(), p.parts.end(),
                                     [](const Pattern& part) { return part.kind == Pattern::Kind::kStar; });
    if (stars > 1) fail(error_at(p.range, ErrorKind::kSyntax, "a sequence has one '*' at most"));
    add(p.name), add(p.rest);
    return names;
  };
  names_in(names_in, c.pattern);
}

Pattern Parser::open_pattern() {
  const Token first = now();
  Pattern one = sequence_part();
  if (!at(Tok::kComma) && one.kind != Pattern::Kind::kStar) return one;
  Pattern all;
  all.kind = Pattern::Kind::kSequence;
  all.parts.push_back(std::move(one));
  while (take(Tok::kComma)) {
    if (at(Tok::kColon) || at(Tok::kIf)) break;
    all.parts.push_back(sequence_part());
  }
  all.range = since(first.begin);
  return all;
}

Pattern Parser::sequence_part() {
  if (!at(Tok::kStar)) return whole_pattern();
  const Token star = advance();
  Pattern p;
  p.kind = Pattern::Kind::kStar;
  p.name = captured_name(expect_identifier("a name after '*'"));
  p.range = since(star.begin);
  return p;
}

Pattern Parser::whole_pattern() {
  const Token first = now();
  Pattern p = or_pattern();
  if (!take(Tok::kAs)) return p;
  const Token word = expect_identifier("a name after 'as'");
  const std::string name = captured_name(word);
  if (name.empty()) fail(error_at(range(word), ErrorKind::kSyntax, "'_' binds nothing: leave 'as _' out"));
  // A name of its own stays: `(x as y)` has both.
  if (!p.name.empty()) {
    Pattern around;
    around.kind = Pattern::Kind::kOr;
    around.parts.push_back(std::move(p));
    p = std::move(around);
  }
  p.name = name;
  p.range = since(first.begin);
  return p;
}

Pattern Parser::or_pattern() {
  Level level(*this);
  const Token first = now();
  Pattern p = closed_pattern();
  if (!at(Tok::kPipe)) return p;
  Pattern all;
  all.kind = Pattern::Kind::kOr;
  all.parts.push_back(std::move(p));
  while (take(Tok::kPipe)) all.parts.push_back(closed_pattern());
  all.range = since(first.begin);
  return all;
}

std::string Parser::captured_name(const Token& name) {
  const std::string text = name_of(range(name));
  return text == "_" ? "" : text;
}

Pattern Parser::closed_pattern() {
  Level level(*this);
  check_token();
  switch (now().kind) {
    case Tok::kLParen:
    case Tok::kLBracket:
      return bracketed_pattern();
    case Tok::kLBrace:
      return mapping_pattern();
    default:
      return value_pattern();
  }
}

/// A number with its sign and perhaps an imaginary part, a text, None, True or False.
ExprPtr Parser::pattern_constant() {
  const Token first = now();
  ExprPtr e = at(Tok::kMinus) ? unary() : atom();
  if (at(Tok::kPlus) || at(Tok::kMinus)) {
    auto sum = std::make_unique<Binary>(SourceRange{});
    sum->op = at(Tok::kPlus) ? BinaryOp::kAdd : BinaryOp::kSub;
    sum->op_range = range(advance());
    sum->left = std::move(e);
    if (!at(Tok::kImaginary)) fail_expected("an imaginary number");
    sum->right = atom();
    sum->range = since(first.begin);
    e = std::move(sum);
  }
  return e;
}

Pattern Parser::value_pattern() {
  const Token first = now();
  Pattern p;
  auto done = [&](Pattern::Kind kind) {
    p.kind = kind;
    p.range = since(first.begin);
    return std::move(p);
  };
  if (at(Tok::kNone) || at(Tok::kTrue) || at(Tok::kFalse)) {
    p.value = atom();
    return done(Pattern::Kind::kSingleton);
  }
  if (at(Tok::kString)) {
    p.value = strings();
    if (p.value->kind == ExprKind::kJoinedStr)
      fail(error_at(p.value->range, ErrorKind::kSyntax,
                    "an f-string cannot be a pattern: use a guard (case x if x == f'…')"));
    return done(Pattern::Kind::kValue);
  }
  if (at(Tok::kInt) || at(Tok::kFloat) || at(Tok::kImaginary) || at(Tok::kMinus)) {
    if (at(Tok::kMinus) && ahead(1).kind != Tok::kInt && ahead(1).kind != Tok::kFloat &&
        ahead(1).kind != Tok::kImaginary)
      fail_expected("a pattern");
    p.value = pattern_constant();
    return done(Pattern::Kind::kValue);
  }
  if (!at(Tok::kIdentifier)) fail_expected("a pattern");
  const Token word = advance();
  // One name captures; with a dot it is a value, with brackets a class.
  if (!at(Tok::kDot) && !at(Tok::kLParen)) {
    p.name = captured_name(word);
    return done(Pattern::Kind::kAny);
  }
  auto name = std::make_unique<Name>(range(word));
  name->id = name_of(range(word));
  ExprPtr value = std::move(name);
  while (take(Tok::kDot)) {
    const Token part = expect_identifier("a name after '.'");
    auto attribute = std::make_unique<Attribute>(SourceRange{});
    attribute->base = std::move(value);
    attribute->name = name_of(range(part));
    attribute->name_range = range(part);
    attribute->range = since(first.begin);
    value = std::move(attribute);
    grow_chain();
  }
  if (at(Tok::kLParen)) return class_pattern(std::move(value));
  p.value = std::move(value);
  return done(Pattern::Kind::kValue);
}

/// (pattern), or a sequence in round or square brackets.
Pattern Parser::bracketed_pattern() {
  const Token open = advance();
  const Tok close = open.kind == Tok::kLParen ? Tok::kRParen : Tok::kRBracket;
  Pattern all;
  all.kind = Pattern::Kind::kSequence;
  bool comma = false;
  while (!at(close)) {
    all.parts.push_back(sequence_part());
    comma = take(Tok::kComma);
    if (!comma) break;
  }
  expect_close(close, open);
  // Round brackets around one pattern only group.
  if (open.kind == Tok::kLParen && all.parts.size() == 1 && !comma && all.parts[0].kind != Pattern::Kind::kStar) {
    Pattern inner = std::move(all.parts[0]);
    return inner;
  }
  all.range = since(open.begin);
  return all;
}

Pattern Parser::mapping_pattern() {
  const Token open = advance();
  Pattern p;
  p.kind = Pattern::Kind::kMapping;
  while (!at(Tok::kRBrace)) {
    if (take(Tok::kPow)) {
      const Token word = expect_identifier("a name after '**'");
      p.rest = captured_name(word);
      if (p.rest.empty()) fail(error_at(range(word), ErrorKind::kSyntax, "'_' binds nothing: leave '**_' out"));
      take(Tok::kComma);
      break;
    }
    Pattern key = value_pattern();
    if (key.kind != Pattern::Kind::kValue && key.kind != Pattern::Kind::kSingleton)
      fail(error_at(key.range, ErrorKind::kSyntax, "a key in a pattern is a constant or a name with a dot"));
    p.keys.push_back(std::move(key.value));
    if (!take(Tok::kColon)) fail_expected("':' behind the key");
    p.parts.push_back(whole_pattern());
    if (!take(Tok::kComma)) break;
  }
  expect_close(Tok::kRBrace, open);
  p.range = since(open.begin);
  return p;
}

Pattern Parser::class_pattern(ExprPtr type) {
  Pattern p;
  p.kind = Pattern::Kind::kClass;
  const uint32_t begin = type->range.begin;
  p.value = std::move(type);
  const Token open = advance();
  while (!at(Tok::kRParen)) {
    if (at(Tok::kIdentifier) && ahead(1).kind == Tok::kAssign) {
      const Token word = advance();
      advance();
      const std::string name = name_of(range(word));
      if (std::find(p.attributes.begin(), p.attributes.end(), name) != p.attributes.end())
        fail(error_at(range(word), ErrorKind::kSyntax, "the attribute '{}' is given twice", name));
      p.attributes.push_back(name);
    } else if (!p.attributes.empty()) {
      fail(error_at(here(), ErrorKind::kSyntax, "patterns without a name stand before those with one"));
    }
    p.parts.push_back(whole_pattern());
    if (!take(Tok::kComma)) break;
  }
  expect_close(Tok::kRParen, open);
  p.range = since(begin);
  return p;
}

}  // namespace kiln::parse
