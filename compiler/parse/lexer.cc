#include "compiler/parse/lexer.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "support/escape.h"

namespace kiln::parse {
namespace {

struct Spelling {
  Tok kind;
  std::string_view text;
};
constexpr Spelling kPunct[] = {
#define KILN_PUNCT(e, s) {Tok::k##e, s},
#include "compiler/parse/token.def"
};
constexpr Spelling kKeywords[] = {
#define KILN_KEYWORD(e, s) {Tok::k##e, s},
#include "compiler/parse/token.def"
};

// Limits for hostile input: the parser recurses once per level.
constexpr int kMaxIndents = 100;
constexpr int kMaxBrackets = 200;
constexpr int kMaxNestedStrings = 8;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\f'; }

/// Decodes the character at `at`, of a text that is UTF-8.
struct CodePoint {
  uint32_t value = 0;
  uint32_t length = 0;
};
CodePoint code_point(std::string_view text, uint32_t at) {
  auto byte = [&](uint32_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  const uint32_t n = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  uint32_t value = n == 1 ? lead : lead & (0x7F >> n);
  for (uint32_t i = 1; i < n; ++i) value = value << 6 | (byte(at + i) & 0x3F);
  return {value, n};
}

/// Letters of other scripts may stand in names; signs, quotes and spaces of Unicode may not.
bool is_letter(uint32_t c) {
  if (c < 0xAA || c == 0xD7 || c == 0xF7) return false;
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  bool sign = (c >= 0x2000 && c <= 0x206F) || (c >= 0x2190 && c <= 0x2BFF) || (c >= 0x3000 && c <= 0x3004) ||
              (c >= 0x3008 && c <= 0x3020) || (c >= 0xE000 && c <= 0xF8FF) || (c >= 0xFE30 && c <= 0xFF20) ||
              c >= 0x1F000;
  return !sign;
}

/// One past the closing quote of the literal whose body starts at head.body; 0 when it is not closed.
uint32_t string_end(std::string_view text, const StringHead& head, uint32_t end, int level) {
  uint32_t i = head.body;
  while (i < end) {
    char c = text[i];
    if (c == '\\') {
      i = past_backslash(text, i, end, head);
    } else if (c == head.quote && (!head.triple || (i + 2 < end && text[i + 1] == c && text[i + 2] == c))) {
      return i + (head.triple ? 3 : 1);
    } else if (c == '\n' && !head.triple) {
      return 0;
    } else if (c == '{' && head.format) {
      if (i + 1 < end && text[i + 1] == '{') {
        i += 2;
        continue;
      }
      auto field = scan_field(text, i, end, head.quote, head.triple, level);
      if (!field) return 0;
      i = field->end;
    } else {
      ++i;
    }
  }
  return 0;
}

class Lexer {
 public:
  Lexer(const SourceText& source, uint32_t begin, uint32_t end, bool nested)
      : source_(source), text_(source.text()), at_(begin), end_(end), nested_(nested) {}

  TokenStream run() {
    // About four bytes per token.
    out_.tokens.reserve((end_ - at_) / 4 + 4);
    check_encoding();
    bool line_start = !nested_;
    while (!out_.error) {
      if (line_start && !indentation()) break;
      line_start = false;
      skip_spaces();
      if (at_ >= end_) break;
      char c = text_[at_];
      if (c == '\n') {
        ++at_;
        // Line ends inside brackets and in f-string fields mean nothing.
        if (nested_ || !brackets_.empty()) continue;
        push(Tok::kNewline, at_ - 1, at_);
        line_start = true;
      } else if (c == '\\') {
        backslash();
      } else {
        token(c);
      }
    }
    finish();
    return std::move(out_);
  }

 private:
  /// In strings and comments too: texts are cut at characters, and shown.
  void check_encoding() {
    for (uint32_t i = at_; i < end_ && !out_.error;) {
      const size_t length = static_cast<uint8_t>(text_[i]) < 0x80 ? 1 : utf8_length(text_.substr(i, end_ - i));
      if (length == 0) fail(i, i + 1, "the text is not valid UTF-8");
      i += static_cast<uint32_t>(length);
    }
  }

  struct Bracket {
    char open;
    uint32_t at;
  };

  void push(Tok kind, uint32_t begin, uint32_t end) { out_.tokens.push_back({kind, begin, end}); }

  template <class... Args>
  void fail(uint32_t begin, uint32_t end, fmt::format_string<Args...> f, Args&&... args) {
    out_.error = error_at(SourceRange{&source_, begin, end}, ErrorKind::kSyntax, f, std::forward<Args>(args)...);
    push(Tok::kError, begin, end);
  }

  void skip_spaces() {
    while (at_ < end_) {
      char c = text_[at_];
      if (is_space(c) || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < end_ && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  void backslash() {
    uint32_t next = at_ + 1;
    if (next < end_ && text_[next] == '\r') ++next;
    if (next >= end_) {
      out_.open = Open::kBackslash;
      return fail(at_, at_ + 1, "the text ends after a '\\' that continues the line");
    }
    if (text_[next] != '\n') return fail(next, next + 1, "expected the end of the line after '\\'");
    at_ = next + 1;
  }

  /// Reads the indentation of the next line that has a token; false when there is none.
  bool indentation() {
    for (;;) {
      uint32_t start = at_;
      // As CPython: tabs go to multiples of 8, and the depth must be the same when a tab counts as one column.
      // Otherwise it depends on the reader's tab width.
      int column = 0, tab_as_one = 0;
      for (; at_ < end_ && is_space(text_[at_]); ++at_) {
        column = text_[at_] == '\t' ? (column / 8 + 1) * 8 : text_[at_] == '\f' ? 0 : column + 1;
        tab_as_one = text_[at_] == '\f' ? 0 : tab_as_one + 1;
      }
      uint32_t content = at_;
      skip_spaces();
      if (at_ >= end_) return false;
      // Lines with nothing but blanks or a comment have no indentation in Python.
      if (text_[at_] == '\n') {
        ++at_;
        continue;
      }
      return indent_to(start, content, {column, tab_as_one});
    }
  }

  struct Indent {
    int column, tab_as_one;
  };

  bool indent_to(uint32_t start, uint32_t content, Indent now) {
    auto inconsistent = [&] {
      fail(start, content,
           "tabs and spaces are mixed in this line's indentation, so that its depth depends on the tab width");
      return false;
    };
    Indent top = indents_.back();
    if (now.column == top.column) return now.tab_as_one == top.tab_as_one || inconsistent();
    if (now.column > top.column) {
      if (now.tab_as_one <= top.tab_as_one) return inconsistent();
      if (indents_.size() > kMaxIndents) {
        fail(start, content, "blocks are nested more than {} levels deep", kMaxIndents);
        return false;
      }
      indents_.push_back(now);
      push(Tok::kIndent, start, content);
      return true;
    }
    // indents_ always holds {0, 0} at the bottom, and a column is never negative, so this ends.
    while (now.column < indents_.back().column) {
      indents_.pop_back();
      push(Tok::kDedent, content, content);
    }
    if (now.column != indents_.back().column) {
      fail(start, content, "this line's indentation fits no block around it");
      return false;
    }
    return now.tab_as_one == indents_.back().tab_as_one || inconsistent();
  }

  void token(char c) {
    if (auto head = string_head(text_, at_, end_)) return string(*head);
    // Strings were asked first because their prefixes (r, b, f, u) look like words.
    if (is_digit(c) || (c == '.' && at_ + 1 < end_ && is_digit(text_[at_ + 1]))) return number();
    if (is_word(c) || static_cast<uint8_t>(c) >= 0x80) return word();
    for (const Spelling& p : kPunct)
      if (text_.substr(at_, std::min<size_t>(p.text.size(), end_ - at_)) == p.text) return punct(p);
    // From here on: characters that a reader of C would try.
    if (c == '!') return fail(at_, at_ + 1, "'!' is no operator: negate with 'not'");
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F)
      return fail(at_, at_ + 1, "the control character \\x{:02x} cannot stand here", static_cast<unsigned>(c));
    fail(at_, at_ + 1, "the character '{}' cannot stand here", c);
  }

  void punct(const Spelling& p) {
    uint32_t begin = at_, after = at_ + static_cast<uint32_t>(p.text.size());
    auto doubled = [&](char c) { return after < end_ && p.text[0] == c && text_[after] == c; };
    if (p.text.size() == 1 && doubled('&')) return fail(begin, after + 1, "'&&' is no operator: use 'and'");
    if (p.text.size() == 1 && doubled('|')) return fail(begin, after + 1, "'||' is no operator: use 'or'");
    char c = p.text[0];
    if (p.text.size() == 1 && (c == '(' || c == '[' || c == '{')) {
      if (brackets_.size() >= kMaxBrackets)
        return fail(begin, after, "brackets are nested more than {} levels deep", kMaxBrackets);
      brackets_.push_back({c, begin});
    } else if (p.text.size() == 1 && (c == ')' || c == ']' || c == '}')) {
      if (brackets_.empty()) return fail(begin, after, "'{}' closes nothing", c);
      Bracket open = brackets_.back();
      char want = open.open == '(' ? ')' : open.open == '[' ? ']' : '}';
      if (c != want) {
        fail(begin, after, "'{}' does not close '{}'", c, open.open);
        out_.error = with_note(std::move(*out_.error), fmt::format("'{}' is opened here", open.open),
                               {&source_, open.at, open.at + 1});
        return;
      }
      brackets_.pop_back();
    }
    at_ = after;
    push(p.kind, begin, after);
  }

  void word() {
    uint32_t begin = at_;
    while (at_ < end_) {
      if (is_word(text_[at_])) {
        ++at_;
        continue;
      }
      if (static_cast<uint8_t>(text_[at_]) < 0x80) break;
      CodePoint c = code_point(text_, at_);
      if (!is_letter(c.value)) {
        if (at_ > begin) break;
        return fail(at_, at_ + c.length, "the character '{}' (U+{:04X}) cannot stand here", text_.substr(at_, c.length),
                    c.value);
      }
      at_ += c.length;
    }
    std::string_view text = text_.substr(begin, at_ - begin);
    for (const Spelling& k : kKeywords)
      if (k.text == text) return push(k.kind, begin, at_);
    push(Tok::kIdentifier, begin, at_);
  }

  void digits(bool (*accept)(char)) {
    while (at_ < end_ && (accept(text_[at_]) || (text_[at_] == '_' && at_ + 1 < end_ && accept(text_[at_ + 1])))) ++at_;
  }

  void number() {
    uint32_t begin = at_;
    char second = at_ + 1 < end_ ? static_cast<char>(std::tolower(text_[at_ + 1])) : '\0';
    bool is_float = false, is_decimal = true;
    if (text_[at_] == '0' && (second == 'x' || second == 'o' || second == 'b')) {
      at_ += 2;
      is_decimal = false;
      digits(second == 'x'   ? [](char c) { return std::isxdigit(static_cast<uint8_t>(c)) != 0; }
             : second == 'o' ? [](char c) { return c >= '0' && c <= '7'; }
                             : [](char c) { return c == '0' || c == '1'; });
      if (at_ == begin + 2) return fail(begin, at_, "expected digits after '{}'", text_.substr(begin, 2));
    } else {
      digits(is_digit);
      uint32_t int_end = at_;
      if (at_ < end_ && text_[at_] == '.') {
        is_float = true;
        ++at_;
        digits(is_digit);
      }
      if (at_ < end_ && (text_[at_] == 'e' || text_[at_] == 'E')) {
        uint32_t mark = at_++;
        if (at_ < end_ && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
        uint32_t exponent = at_;
        digits(is_digit);
        // No digits: `1else` and `1e` leave the 'e' to the check of the suffix below.
        if (at_ == exponent) {
          at_ = mark;
        } else {
          is_float = true;
        }
      }
      std::string_view whole = text_.substr(begin, int_end - begin);
      if (!is_float && whole.size() > 1 && whole[0] == '0' && whole.find_first_not_of("0_") != std::string_view::npos)
        return fail(begin, at_, "an integer cannot start with 0: octal numbers are written 0o{}", whole.substr(1));
    }
    if (at_ < end_ && (is_word(text_[at_]) || static_cast<uint8_t>(text_[at_]) >= 0x80)) {
      uint32_t stop = at_;
      while (stop < end_ && is_word(text_[stop])) ++stop;
      std::string_view suffix = text_.substr(at_, stop - at_);
      // `1if x else 2` is Python, though nobody should write it.
      bool keyword =
          suffix == "if" || suffix == "else" || suffix == "and" || suffix == "or" || suffix == "in" || suffix == "for";
      if (!keyword) {
        if (is_decimal && (suffix == "j" || suffix == "J")) {
          at_ = stop;
          return push(Tok::kImaginary, begin, at_);
        }
        return fail(begin, std::max(stop, at_ + 1), "'{}' is not a number",
                    text_.substr(begin, std::max(stop, at_ + 1) - begin));
      }
    }
    push(is_float ? Tok::kFloat : Tok::kInt, begin, at_);
  }

  void string(const StringHead& head) {
    uint32_t begin = at_;
    uint32_t close = string_end(text_, head, end_, 0);
    if (close == 0) {
      if (head.triple) out_.open = Open::kTripleString;
      // An unclosed brace hides the closing quote; lexing it as a plain string tells which of the two is missing.
      if (!head.triple && head.format) {
        StringHead plain = head;
        plain.format = false;
        if (string_end(text_, plain, end_, 0))
          return fail(begin, begin + 1, "a '{{' of this f-string has no '}}' (a plain brace is written '{{{{')");
      }
      return fail(begin, head.body, "{}",
                  head.triple ? "this triple-quoted string is never closed" : "this string is not closed on its line");
    }
    at_ = close;
    push(Tok::kString, begin, close);
  }

  void finish() {
    // What is open decides whether the prompt asks for another line or reports the error.
    if (!brackets_.empty() && !out_.error) {
      out_.open = Open::kBracket;
    }
    if (!brackets_.empty()) out_.open_at = brackets_.back().at;
    if (out_.error) return;
    bool line_open =
        !out_.tokens.empty() && out_.tokens.back().kind != Tok::kNewline && out_.tokens.back().kind != Tok::kDedent;
    // As CPython: a last line without an end gets one, and the blocks that are open are closed, so that the parser has
    // no case of its own for the end of the text.
    if (!nested_ && line_open && brackets_.empty()) push(Tok::kNewline, end_, end_);
    if (!nested_ && brackets_.empty())
      for (size_t i = 1; i < indents_.size(); ++i) push(Tok::kDedent, end_, end_);
    push(Tok::kEnd, end_, end_);
  }

  const SourceText& source_;
  std::string_view text_;
  uint32_t at_, end_;
  bool nested_;
  std::vector<Bracket> brackets_;
  std::vector<Indent> indents_{{0, 0}};
  TokenStream out_;
};

}  // namespace

std::string_view spelling(Tok t) {
  for (const Spelling& p : kPunct)
    if (p.kind == t) return p.text;
  for (const Spelling& k : kKeywords)
    if (k.kind == t) return k.text;
  return {};
}

// token.def declares keywords after everything else.
bool is_keyword(Tok t) { return t >= kKeywords[0].kind; }

uint32_t past_backslash(std::string_view text, uint32_t i, uint32_t end, const StringHead& head) {
  if (!head.format || i + 1 >= end) return i + 2;
  if (text[i + 1] == '{' || text[i + 1] == '}') return i + 1;
  const bool named = !head.raw && text[i + 1] == 'N' && i + 2 < end && text[i + 2] == '{';
  const size_t close = named ? text.find('}', i) : std::string_view::npos;
  return close < end ? static_cast<uint32_t>(close) + 1 : i + 2;
}

std::optional<StringHead> string_head(std::string_view text, uint32_t at, uint32_t end) {
  StringHead head;
  uint32_t i = at;
  for (; i < end && i < at + 2; ++i) {
    char c = static_cast<char>(std::tolower(static_cast<uint8_t>(text[i])));
    bool& flag = c == 'r' ? head.raw : c == 'b' ? head.bytes : head.format;
    if (c == 'u' && i == at && i + 1 < end && (text[i + 1] == '"' || text[i + 1] == '\'')) {
      ++i;
      break;
    }
    if ((c != 'r' && c != 'b' && c != 'f') || flag) break;
    flag = true;
  }
  if (i >= end || (text[i] != '"' && text[i] != '\'') || (head.bytes && head.format)) return std::nullopt;
  head.quote = text[i];
  head.triple = i + 2 < end && text[i + 1] == head.quote && text[i + 2] == head.quote;
  head.body = i + (head.triple ? 3 : 1);
  return head;
}

std::optional<FieldLayout> scan_field(std::string_view text, uint32_t at, uint32_t end, char quote, bool triple,
                                      int level) {
  if (level > kMaxNestedStrings) return std::nullopt;
  FieldLayout f;
  f.value_begin = at + 1;
  int depth = 0;
  uint32_t i = at + 1;
  // The value: up to a '!', ':', '=' or '}' outside of brackets and strings.
  for (;; ++i) {
    if (i >= end || (text[i] == '\n' && !triple)) return std::nullopt;
    char c = text[i];
    // In `{buf"x"}` the f is the end of a word, no prefix of the string.
    bool word_before = is_word(c) && i > f.value_begin && is_word(text[i - 1]);
    if (auto head = word_before ? std::nullopt : string_head(text, i, end)) {
      uint32_t close = string_end(text, *head, end, level + 1);
      if (!close) return std::nullopt;
      i = close - 1;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth-- == 0) break;
    if (depth > 0) continue;
    char next = i + 1 < end ? text[i + 1] : '\0';
    // `==`, `!=`, `<=` and `>=` are operators of the value; a lone `=` or `!` ends it (`{x=}`, `{x!r}`).
    if ((c == '=' || c == '!' || c == '<' || c == '>') && next == '=') {
      ++i;
      continue;
    }
    if (c == '!' || c == ':' || c == '=') break;
  }
  f.value_end = i;
  if (text[i] == '=') {
    for (++i; i < end && is_space(text[i]);) ++i;
    f.debug_end = i;
  }
  if (i < end && text[i] == '!') {
    if (i + 1 >= end) return std::nullopt;
    f.conversion = text[i + 1];
    i += 2;
  }
  if (i < end && text[i] == ':') {
    f.has_spec = true;
    f.spec_begin = ++i;
    while (i < end && text[i] != '}') {
      // A spec is text: its only syntax is a nested field.
      if ((text[i] == '\n' || text[i] == quote) && !triple) return std::nullopt;
      if (text[i] == '{') {
        auto inner = scan_field(text, i, end, quote, triple, level + 1);
        if (!inner) return std::nullopt;
        i = inner->end;
      } else {
        ++i;
      }
    }
    f.spec_end = i;
  }
  if (i >= end || text[i] != '}') return std::nullopt;
  f.end = i + 1;
  return f;
}

TokenStream lex(const SourceText& source, uint32_t begin, uint32_t end, bool nested) {
  return Lexer(source, begin, end, nested).run();
}

}  // namespace kiln::parse
