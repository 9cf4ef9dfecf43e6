// What follows a % command that takes expressions: the expressions, separated by commas, and between them or behind
// them its options: -v, --json FILE, NAME=VALUE.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/result.h"
#include "repl/magics/magic_options.h"

namespace kiln::repl {

struct MagicArguments {
  std::vector<std::string> expressions;
  std::vector<std::pair<std::string, std::string>> values;  // in the order given: options, and names that are none

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of an option, empty for a flag; nullptr when it was not given.
  const std::string* find(std::string_view name) const;
  std::string text(std::string_view name, const std::string& otherwise = {}) const;
};

/// NAME=VALUE (without blanks around the '=') outside of brackets and strings is an option. With `other_names` any name
/// will do; otherwise kName tells the nearest. kSyntax: an open bracket or string, an option without its value.
Result<MagicArguments> parse_magic_arguments(std::string_view text, std::span<const MagicOption> options,
                                             bool other_names = false);

/// The parts between commas, or between blanks, that stand outside of brackets and strings, trimmed; empty ones are
/// left out. kSyntax: an open bracket or string.
enum class Between { kCommas, kBlanks };
Result<std::vector<std::string>> split_outside_brackets(std::string_view text, Between separators);

/// Words between blanks, of which quotes ('…', "…") may hold more. kSyntax: a quote that is not closed.
Result<std::vector<std::string>> split_words(std::string_view text);

/// "[-v] [--json FILE] [budget=]": for the synopsis, and for messages.
std::string option_summary(std::span<const MagicOption> options);

}  // namespace kiln::repl
