// The one scanner of command lines: where a line falls apart outside of brackets and strings.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kiln/result.h"

namespace kiln::repl {

enum class Between { kCommas, kBlanks };
/// What keeps separators together: brackets and strings of code, or the quotes of a shell, which know no backslash.
enum class Groups { kCode, kQuotes };

struct LineParts {
  std::vector<std::string_view> parts;  // views of the text, never none; empty where two separators meet
  Status closed;                        // kSyntax: an open bracket or quote, or a bracket that closes nothing

  /// Without the empty ones.
  std::vector<std::string_view> words() const;
};

/// A part that is open at the end goes on to the end of the text.
LineParts parts_of(std::string_view text, Between separators, Groups groups = Groups::kCode);

/// The parts that stand outside of brackets and strings, trimmed; empty ones are left out. kSyntax: an open bracket or
/// string.
Result<std::vector<std::string>> split_outside_brackets(std::string_view text, Between separators);

/// Words between blanks, of which quotes ('…', "…") may hold more. kSyntax: a quote that is not closed.
Result<std::vector<std::string>> split_words(std::string_view text);

/// The text between the quotes around all of it, or the text itself.
std::string_view unquoted(std::string_view text);

}  // namespace kiln::repl
