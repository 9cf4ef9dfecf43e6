#include "compiler/parse/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/parse/parser_impl.h"

namespace kiln::parse {

using namespace ast;

Parser::Level::Level(Parser& p) : parser_(p) {
  // Counted first: the destructor does not run when a constructor throws.
  if (p.depth_ >= kMaxDepth)
    p.fail(
        error_at(p.here(), ErrorKind::kSyntax, "nested more than {} levels deep: give a part of it a name", kMaxDepth));
  ++p.depth_;
}

void Parser::check_token() {
  if (now().kind == Tok::kError) throw SyntaxFailure{*stream_.error, stream_.open != Open::kNothing};
}

bool Parser::at(Tok kind) {
  check_token();
  return now().kind == kind;
}

Token Parser::advance() {
  check_token();
  Token t = now();
  if (t.kind != Tok::kEnd) ++at_;
  // The end of a node's range is the last token with text, so that a block does not reach into blank lines.
  if (t.kind != Tok::kNewline && t.kind != Tok::kIndent && t.kind != Tok::kDedent && t.kind != Tok::kEnd)
    last_end_ = t.end;
  return t;
}

bool Parser::take(Tok kind) {
  if (!at(kind)) return false;
  advance();
  return true;
}

std::string Parser::describe(const Token& t) const {
  if (t.kind == Tok::kEnd) return "the end of the text";
  if (t.kind == Tok::kNewline) return "the end of the line";
  if (t.kind == Tok::kIndent) return "an indented line";
  if (t.kind == Tok::kDedent) return "the end of the block";
  if (t.kind == Tok::kString) return "a string";
  return fmt::format("'{}'", range(t).str());
}

SourceRange Parser::here() const {
  const Token& t = now();
  // Tokens of the layout have no text to point at: the caret goes just behind the last word.
  bool layout = t.kind == Tok::kEnd || t.kind == Tok::kNewline || t.kind == Tok::kDedent || t.kind == Tok::kIndent;
  if (layout && at_ > 0) return {&source_, last_end_, last_end_ + 1};
  return range(t);
}

void Parser::fail(Diagnostic d) {
  // Nothing but ends of lines and of blocks may follow: a nested block without a body yet also ends too early.
  size_t more = 0;
  while (ahead(more).kind == Tok::kNewline || ahead(more).kind == Tok::kDedent) ++more;
  bool at_end = ahead(more).kind == Tok::kEnd;
  // An open bracket swallows the lines behind it, so what is wrong there says less than the bracket does.
  if (stream_.open == Open::kBracket && stream_.open_at < now().begin) {
    char c = source_.text()[stream_.open_at];
    throw SyntaxFailure{error_at(SourceRange{&source_, stream_.open_at, stream_.open_at + 1}, ErrorKind::kSyntax,
                                 "'{}' is never closed", c),
                        at_end};
  }
  throw SyntaxFailure{std::move(d), at_end};
}

void Parser::fail_expected(std::string what) {
  check_token();
  fail(error_at(here(), ErrorKind::kSyntax, "expected {}, found {}", what, describe(now())));
}

std::string Parser::name_of(SourceRange identifier) const {
  const std::string_view text = identifier.str();
  const bool is_private = !class_.empty() && text.starts_with("__") && !text.ends_with("__");
  return is_private ? fmt::format("_{}{}", class_, text) : std::string(text);
}

Token Parser::expect_identifier(std::string_view what) {
  if (at(Tok::kIdentifier)) return advance();
  if (is_keyword(now().kind))
    fail(error_at(here(), ErrorKind::kSyntax, "expected {}, but '{}' is a keyword", what, range(now()).str()));
  fail_expected(std::string(what));
}

void Parser::expect_close(Tok close, const Token& open) {
  if (take(close)) return;
  check_token();
  std::string message =
      at(Tok::kAssign)
          ? fmt::format("expected ',' or '{}', found '=': compare with '==', bind with ':='", spelling(close))
          : fmt::format("expected ',' or '{}', found {}", spelling(close), describe(now()));
  Diagnostic d = error_at(here(), ErrorKind::kSyntax, "{}", message);
  if (source_.line_of(open.begin) != source_.line_of(now().begin))
    d = with_note(std::move(d), fmt::format("'{}' is opened here", spelling(open.kind)), range(open));
  fail(std::move(d));
}

void Parser::grow_chain() {
  if (++height_ > kMaxHeight)
    fail(error_at(here(), ErrorKind::kSyntax,
                  "this expression has more than {} operators in a row: give a part of it a name", kMaxHeight));
}

namespace {

template <class F>
auto guarded(F&& parse) -> Result<decltype(parse())> {
  try {
    return parse();
  } catch (SyntaxFailure& f) {
    return std::move(f.diagnostic);
  }
}

constexpr Tok kBlockStarts[] = {Tok::kIf,   Tok::kFor, Tok::kWhile, Tok::kDef,  Tok::kClass,  Tok::kTry,
                                Tok::kWith, Tok::kAt,  Tok::kElse,  Tok::kElif, Tok::kExcept, Tok::kFinally};

bool starts_block(Tok t) {
  return std::find(std::begin(kBlockStarts), std::end(kBlockStarts), t) != std::end(kBlockStarts);
}

Result<uint32_t> checked_size(const SourceText& source) {
  if (source.text().size() >= UINT32_MAX)
    return error(ErrorKind::kSyntax, "{} is larger than 4 GB", source.file_name());
  return static_cast<uint32_t>(source.text().size());
}

Result<std::shared_ptr<const Module>> parse_file(std::shared_ptr<const SourceText> source, bool keep_unsupported) {
  KILN_TRY(uint32_t size, checked_size(*source));
  auto module = std::make_shared<Module>();
  module->source = source;
  return guarded([&]() -> std::shared_ptr<const Module> {
    Parser parser(*source, lex(*source, 0, size));
    parser.keep_unsupported = keep_unsupported;
    module->body = parser.file();
    return module;
  });
}

}  // namespace

Result<std::shared_ptr<const Module>> parse_module(std::shared_ptr<const SourceText> source) {
  return parse_file(std::move(source), false);
}

Result<std::shared_ptr<const Module>> parse_kernel_file(std::shared_ptr<const SourceText> source) {
  return parse_file(std::move(source), true);
}

Result<ExprPtr> parse_expression(std::shared_ptr<const SourceText> source) {
  KILN_TRY(uint32_t size, checked_size(*source));
  return guarded([&] { return Parser(*source, lex(*source, 0, size)).whole_expression(); });
}

bool is_incomplete(std::string_view text) {
  auto source = SourceText::make("", std::string(text));
  if (text.size() >= UINT32_MAX) return false;
  TokenStream stream = lex(*source, 0, static_cast<uint32_t>(text.size()));
  Open open = stream.open;
  // A block that began stays open until a blank line, so that it can get further lines.
  bool block = false;
  bool line_start = true, match = false;
  Tok before = Tok::kNewline;
  for (const Token& t : stream.tokens) {
    if (line_start && t.kind != Tok::kIndent && t.kind != Tok::kDedent && t.kind != Tok::kEnd) {
      const bool outermost = source->column_of(t.begin) == 1;
      if (outermost) block = starts_block(t.kind);
      match = outermost && text.substr(t.begin, t.end - t.begin) == "match";
      line_start = false;
    }
    if (t.kind == Tok::kNewline) {
      // A name like others, unless a block follows.
      if (match && before == Tok::kColon) block = true;
      line_start = true;
    }
    before = t.kind;
  }
  try {
    Parser(*source, std::move(stream)).file();
  } catch (SyntaxFailure& f) {
    if (!f.at_end) return false;
    if (open != Open::kNothing) return true;
  }
  if (!block) return false;
  size_t content = text.find_last_not_of(" \t\r\n");
  std::string_view tail = content == std::string_view::npos ? text : text.substr(content + 1);
  // One newline ends the last statement, the second is the blank line, as at Python's prompt.
  return std::count(tail.begin(), tail.end(), '\n') < 2;
}

}  // namespace kiln::parse
