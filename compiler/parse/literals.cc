#include "compiler/parse/literals.h"

#include <cctype>
#include <cstdlib>

namespace kiln::parse {
namespace {

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | (c >> (6 * more)));
  while (more-- > 0) out += static_cast<char>(0x80 | ((c >> (6 * more)) & 0x3F));
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

}  // namespace

Result<ast::Int> int_value(SourceRange token) {
  std::string_view text = token.str();
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && !std::isdigit(static_cast<uint8_t>(text[1])) && text[1] != '_') {
    char mark = static_cast<char>(std::tolower(static_cast<uint8_t>(text[1])));
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
    text.remove_prefix(2);
  }
  ast::Int value = 0;
  for (char c : text) {
    // The lexer has checked that a digit follows.
    if (c == '_') continue;
    if (__builtin_mul_overflow(value, static_cast<ast::Int>(base), &value) ||
        __builtin_add_overflow(value, static_cast<ast::Int>(digit_of(c)), &value))
      return error_at(token, ErrorKind::kUnsupported,
                      "this integer needs more than 128 bits, which Kiln's integers have");
  }
  return value;
}

double float_value(SourceRange token) {
  std::string digits;
  for (char c : token.str())
    if (c != '_') digits += c;
  return std::strtod(digits.c_str(), nullptr);
}

Result<std::string> unescape(SourceRange piece, bool raw, bool braces) {
  std::string_view text = piece.str();
  std::string out;
  out.reserve(text.size());
  auto range = [&](size_t begin, size_t end) {
    return SourceRange{piece.text, piece.begin + static_cast<uint32_t>(begin),
                       piece.begin + static_cast<uint32_t>(end)};
  };
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (braces && (c == '{' || c == '}')) {
      if (i + 1 >= text.size() || text[i + 1] != c)
        return error_at(range(i, i + 1), ErrorKind::kSyntax, "a single '{}' in an f-string is written '{}{}'", c, c, c);
      out += c;
      i += 2;
      continue;
    }
    // Python reads source files with universal newlines, so "\r\n" in a string literal is one newline.
    if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      continue;
    }
    if (c != '\\' || raw) {
      out += c;
      ++i;
      continue;
    }
    // A backslash escapes no brace: one stands before the braces of \{{ and of \{field}.
    const bool before_field = i + 1 == text.size();
    if (before_field || (braces && (text[i + 1] == '{' || text[i + 1] == '}'))) {
      out += c;
      ++i;
      continue;
    }
    char e = text[++i];
    size_t escape = i - 1;
    ++i;
    auto hex = [&](size_t count) -> Result<uint32_t> {
      uint32_t value = 0;
      size_t stop = std::min(i + count, text.size());
      size_t from = i;
      for (; i < stop && digit_of(text[i]) < 16; ++i) value = value * 16 + static_cast<uint32_t>(digit_of(text[i]));
      if (i - from != count)
        return error_at(range(escape, i), ErrorKind::kSyntax, "'\\{}' takes {} hexadecimal digits", e, count);
      return value;
    };
    // Unknown escapes keep their backslash, as in Python.
    switch (e) {
      case '\n':
        break;
      case '\r':
        if (i < text.size() && text[i] == '\n') ++i;
        break;
      case '\\':
      case '\'':
      case '"':
        out += e;
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case 'x':
      case 'u':
      case 'U': {
        KILN_TRY(uint32_t value, hex(e == 'x' ? 2 : e == 'u' ? 4 : 8));
        // Surrogates cannot be encoded in UTF-8.
        if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
          return error_at(range(escape, i), value < 0xE000 ? ErrorKind::kUnsupported : ErrorKind::kSyntax,
                          "U+{:X} is no character", value);
        append_utf8(out, value);
        break;
      }
      case 'N':
        return error_at(range(escape, i), ErrorKind::kUnsupported, "characters by name are not supported: use \\uXXXX");
      default:
        if (e >= '0' && e <= '7') {
          uint32_t value = static_cast<uint32_t>(e - '0');
          // Octal escapes have up to three digits, as in C and Python.
          for (int n = 1; n < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++n)
            value = value * 8 + static_cast<uint32_t>(text[i++] - '0');
          append_utf8(out, value);
        } else {
          out += '\\';
          out += e;
        }
    }
  }
  return out;
}

}  // namespace kiln::parse
