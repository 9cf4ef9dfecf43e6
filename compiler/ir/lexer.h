// Tokens of the IR's text form; used by parser.cc alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "support/diag.h"

namespace kiln::ir {

enum class TokenKind : uint8_t { kWord, kValue, kSymbol, kNumber, kString, kPunctuation, kEnd };

/// `text` has no sigil: "x" of %x, "add" of @add, the unescaped characters of a string; "->" and one-character marks.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  SourceRange range;

  bool is(std::string_view mark) const { return kind == TokenKind::kPunctuation && text == mark; }
  bool is_word(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
};

/// Ends with a kEnd token. `//` starts a comment.
Result<std::vector<Token>> lex(const SourceText& source);

}  // namespace kiln::ir
