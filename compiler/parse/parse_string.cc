#include "compiler/parse/literals.h"
#include "compiler/parse/parser_impl.h"
#include "support/text_width.h"

namespace kiln::parse {

using namespace ast;

/// Adjacent literals are one string; it is an f-string as soon as one of them is.
ExprPtr Parser::strings() {
  uint32_t begin = now().begin;
  auto joined = std::make_unique<JoinedStr>(SourceRange{});
  bool is_format = false, first = true;
  while (at(Tok::kString)) {
    Token t = now();
    StringHead head = *string_head(source_.text(), t.begin, t.end);
    if (first && head.bytes) return bytes(begin);
    if (head.bytes) fail(error_at(range(t), ErrorKind::kSyntax, "bytes and strings cannot be joined"));
    first = false;
    uint32_t body_end = t.end - (head.triple ? 3 : 1);
    if (head.format) {
      is_format = true;
      Level level(*this);
      format_pieces(head.body, body_end, head, *joined, 0);
    } else {
      auto text = unescape({&source_, head.body, body_end}, head.raw, false);
      if (!text.ok()) fail(std::move(text.error()));
      // Text is appended to the piece before it unless that has a value already, so that neighbours need one piece.
      if (joined->pieces.empty() || joined->pieces.back().value) joined->pieces.emplace_back();
      joined->pieces.back().literal += *text;
    }
    advance();
  }
  if (!is_format)
    return std::make_unique<ConstantExpr>(
        since(begin), joined->pieces.empty() ? std::string() : std::move(joined->pieces[0].literal));
  joined->range = since(begin);
  return joined;
}

ExprPtr Parser::bytes(uint32_t begin) {
  std::string data;
  while (at(Tok::kString)) {
    const Token t = now();
    const StringHead head = *string_head(source_.text(), t.begin, t.end);
    if (!head.bytes) fail(error_at(range(t), ErrorKind::kSyntax, "bytes and strings cannot be joined"));
    const SourceRange body{&source_, head.body, t.end - (head.triple ? 3 : 1)};
    for (char c : body.str())
      if (static_cast<uint8_t>(c) > 0x7F)
        fail(error_at(range(t), ErrorKind::kSyntax, "bytes hold ASCII characters only: write others as \\x.."));
    auto text = unescape(body, head.raw, false);
    if (!text.ok()) fail(std::move(text.error()));
    // \xff is the character U+00FF in a string, and one byte here.
    for (size_t i = 0; i < text->size();) {
      const Character c = first_character(std::string_view(*text).substr(i));
      if (c.code > 0xFF) fail(error_at(range(t), ErrorKind::kSyntax, "a byte is at most \\xff"));
      data += static_cast<char>(c.code);
      i += c.bytes;
    }
    advance();
  }
  auto out = std::make_unique<ConstantExpr>(since(begin), std::move(data));
  out->is_bytes = true;
  return out;
}

void Parser::format_pieces(uint32_t begin, uint32_t end, const StringHead& head, JoinedStr& out, int level) {
  std::string_view text = source_.text();
  uint32_t literal_begin = begin;
  auto flush = [&](uint32_t stop) {
    if (stop == literal_begin) return;
    // Inside a format spec there are no doubled braces: every brace there is a field.
    auto piece = unescape({&source_, literal_begin, stop}, head.raw, level == 0);
    if (!piece.ok()) fail(std::move(piece.error()));
    if (out.pieces.empty() || out.pieces.back().value) out.pieces.emplace_back();
    out.pieces.back().literal += *piece;
  };
  for (uint32_t i = begin; i < end;) {
    if (text[i] == '\\' && !head.raw) {
      i = past_backslash(text, i, end, head);
    } else if (text[i] == '{' && level == 0 && i + 1 < end && text[i + 1] == '{') {
      i += 2;
    } else if (text[i] == '{') {
      flush(i);
      auto f = scan_field(text, i, end, head.quote, head.triple, level);
      if (!f)
        fail(error_at(SourceRange{&source_, i, i + 1}, ErrorKind::kSyntax, "this '{{' of the f-string has no '}}'"));
      out.pieces.push_back(field(*f, head, level));
      i = literal_begin = f->end;
    } else {
      ++i;
    }
  }
  flush(end);
}

JoinedStr::Piece Parser::field(const FieldLayout& f, const StringHead& head, int level) {
  JoinedStr::Piece piece;
  SourceRange whole{&source_, f.value_begin - 1, f.end};
  if (level > 1) fail(error_at(whole, ErrorKind::kSyntax, "format specs are nested too deeply"));
  piece.value = piece_expression(f.value_begin, f.value_end);
  if (f.conversion && f.conversion != 'r' && f.conversion != 's' && f.conversion != 'a')
    fail(error_at(whole, ErrorKind::kSyntax, "'!{}' is no conversion: use !r, !s or !a", f.conversion));
  piece.conversion = f.conversion;
  if (f.debug_end) {
    piece.debug_text = source_.text().substr(f.value_begin, f.debug_end - f.value_begin);
    // As Python: `{x=}` shows repr(x) unless a conversion or a spec says otherwise.
    if (!f.conversion && !f.has_spec) piece.conversion = 'r';
  }
  if (f.has_spec) {
    auto spec = std::make_unique<JoinedStr>(SourceRange{&source_, f.spec_begin, f.spec_end});
    format_pieces(f.spec_begin, f.spec_end, head, *spec, level + 1);
    piece.spec = std::move(spec);
  }
  return piece;
}

ExprPtr Parser::piece_expression(uint32_t begin, uint32_t end) {
  if (source_.text().substr(begin, end - begin).find_first_not_of(" \t\r\n") == std::string_view::npos)
    fail(error_at(SourceRange{&source_, begin - 1, end + 1}, ErrorKind::kSyntax,
                  "expected an expression between '{{' and '}}'"));
  // The field is a text of its own inside this one: lex it, parse it, and come back to the tokens around the string.
  TokenStream outer = std::exchange(stream_, lex(source_, begin, end, true));
  size_t outer_at = std::exchange(at_, 0);
  uint32_t outer_end = std::exchange(last_end_, begin);
  ExprPtr value = expressions(true);
  if (!at(Tok::kEnd)) fail_expected("the end of the f-string's field");
  stream_ = std::move(outer);
  at_ = outer_at;
  last_end_ = outer_end;
  return value;
}

}  // namespace kiln::parse
