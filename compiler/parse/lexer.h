// Source text → tokens, with Python's NEWLINE / INDENT / DEDENT and its joining of lines.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "support/diag.h"
#include "support/source.h"

namespace kiln::parse {

enum class Tok : uint8_t {
  kEnd,
  kError,  // TokenStream::error says what; always the last token
  kNewline,
  kIndent,
  kDedent,
  kIdentifier,
  kInt,
  kFloat,
  kImaginary,  // `2j`
  kString,     // with prefix and quotes; f-strings too
#define KILN_PUNCT(e, s) k##e,
#define KILN_KEYWORD(e, s) k##e,
#include "compiler/parse/token.def"
};

/// The text of a punctuation mark or keyword; "" for the other kinds.
std::string_view spelling(Tok t);
bool is_keyword(Tok t);

struct Token {
  Tok kind = Tok::kEnd;
  uint32_t begin = 0, end = 0;
};

/// Why a text cannot be a whole program yet, though more lines could make it one.
enum class Open : uint8_t { kNothing, kBracket, kTripleString, kBackslash };

struct TokenStream {
  std::vector<Token> tokens;        // ends with kEnd or kError
  std::optional<Diagnostic> error;  // of the kError token
  Open open = Open::kNothing;
  uint32_t open_at = 0;  // offset of the innermost bracket that is still open at the end
};

/// Lexes [begin, end) of the text. `nested`: the piece stands inside brackets (an f-string's field), so that newlines
/// and indentation mean nothing.
TokenStream lex(const SourceText& source, uint32_t begin, uint32_t end, bool nested = false);

/// Where the parts of an f-string's `{field}` lie.
struct FieldLayout {
  uint32_t value_begin = 0, value_end = 0;
  uint32_t debug_end = 0;  // `{x = }`: the text [value_begin, debug_end) is printed before the value; 0 otherwise
  char conversion = 0;     // r, s or a
  bool has_spec = false;
  uint32_t spec_begin = 0, spec_end = 0;
  uint32_t end = 0;  // one past '}'
};

/// Lays out the field whose '{' is at `at`; nullopt when it is not closed before `end`, or before the string's `quote`
/// or end of line where those cut it off. `level` counts the f-strings around it.
std::optional<FieldLayout> scan_field(std::string_view text, uint32_t at, uint32_t end, char quote, bool triple,
                                      int level);

/// What opens a string literal: its prefix letters and quotes.
struct StringHead {
  bool raw = false, bytes = false, format = false, triple = false;
  char quote = 0;
  uint32_t body = 0;  // offset of the first character after the opening quotes
};

/// Where a string goes on behind the backslash at `i` and what it escapes. It escapes no brace of an f-string, but for
/// `\N{NAME}`.
uint32_t past_backslash(std::string_view text, uint32_t i, uint32_t end, const StringHead& head);

/// The head of a string literal at `at`, or nullopt when no literal starts there.
std::optional<StringHead> string_head(std::string_view text, uint32_t at, uint32_t end);

}  // namespace kiln::parse
