#include "compiler/ir/lexer.h"

#include <cctype>
#include <cstdlib>

namespace kiln::ir {

namespace {

bool is_word_char(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalnum(u) || c == '_' || c == '.' || u >= 0x80;
}
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

}  // namespace

Result<std::vector<Token>> lex(const SourceText& source) {
  const std::string_view text = source.text();
  std::vector<Token> tokens;
  size_t at = 0;
  auto range = [&](size_t begin, size_t end) {
    return SourceRange{&source, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  };
  auto push = [&](TokenKind kind, std::string token, size_t begin) {
    tokens.push_back({kind, std::move(token), range(begin, at)});
  };
  while (at < text.size()) {
    const size_t begin = at;
    const char c = text[at];
    const char following = at + 1 < text.size() ? text[at + 1] : '\0';
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '/' && following == '/') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (c == '"') {
      std::string value;
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at) {
        if (text[at] != '\\' || at + 1 >= text.size()) {
          value += text[at];
          continue;
        }
        const char escape = text[++at];
        if (escape == 'x' && at + 2 < text.size()) {
          value += static_cast<char>(std::strtol(std::string(text.substr(at + 1, 2)).c_str(), nullptr, 16));
          at += 2;
        } else {
          value += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
        }
      }
      if (at >= text.size() || text[at] != '"')
        return error_at(range(begin, at), ErrorKind::kSyntax, "this string has no closing quote on its line");
      ++at;
      push(TokenKind::kString, std::move(value), begin);
    } else if ((c == '%' || c == '@') && is_word_char(following)) {
      for (++at; at < text.size() && is_word_char(text[at]);) ++at;
      push(c == '%' ? TokenKind::kValue : TokenKind::kSymbol, std::string(text.substr(begin + 1, at - begin - 1)),
           begin);
    } else if (is_digit(c) || (c == '-' && is_digit(following)) || text.substr(at).starts_with("-inf")) {
      // "1e-05": a sign belongs to the number after an e.
      for (++at; at < text.size() &&
                 (is_word_char(text[at]) || ((text[at] == '-' || text[at] == '+') && text[at - 1] == 'e'));)
        ++at;
      push(TokenKind::kNumber, std::string(text.substr(begin, at - begin)), begin);
    } else if (is_word_char(c)) {
      while (at < text.size() && is_word_char(text[at])) ++at;
      push(TokenKind::kWord, std::string(text.substr(begin, at - begin)), begin);
    } else if (c == '-' && following == '>') {
      at += 2;
      push(TokenKind::kPunctuation, "->", begin);
    } else if (std::string_view("(){}[],:=*").find(c) != std::string_view::npos) {
      ++at;
      push(TokenKind::kPunctuation, std::string(1, c), begin);
    } else {
      return error_at(range(begin, begin + 1), ErrorKind::kSyntax, "'{}' does not start any token of tile IR", c);
    }
  }
  push(TokenKind::kEnd, "the end of the text", at);
  return tokens;
}

}  // namespace kiln::ir
