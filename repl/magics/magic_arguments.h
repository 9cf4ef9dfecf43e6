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
#include "repl/magics/line_parts.h"
#include "repl/magics/magic_options.h"

namespace kiln::repl {

struct MagicArguments {
  std::vector<std::string> expressions;
  std::vector<std::string> operands;                        // words behind a statement that are its operands
  std::vector<std::pair<std::string, std::string>> values;  // in the order given: options, and names that are none

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of an option, empty for a flag; nullptr when it was not given.
  const std::string* find(std::string_view name) const;
  std::string text(std::string_view name, const std::string& otherwise = {}) const;
};

struct ArgumentForm {
  bool other_names = false;  // NAME=VALUE of any name will do
  bool needs_expression = true;
};

/// NAME=VALUE (without blanks around the '=') outside of brackets and strings is an option. kName, with the nearest: no
/// option is so called. kSyntax: an open bracket or string, an option without its value or given twice.
Result<MagicArguments> parse_magic_arguments(std::string_view text, std::span<const MagicOption> options,
                                             ArgumentForm form = {});

/// The same for a command line of the shell, whose quotes are gone: each word is NAME=VALUE or an expression.
Result<MagicArguments> magic_arguments_of(std::span<const std::string> words);

/// The values whose names are no options, as "NAME=VALUE NAME=VALUE": what a kernel is shown for.
std::string other_values(const MagicArguments& arguments, std::span<const MagicOption> options);

/// kName, with the nearest.
Diagnostic no_such_option(std::string_view word, std::span<const MagicOption> options);
/// kSyntax, for an option that nothing follows.
Diagnostic lacks_value(const MagicOption& option);

/// "[-v] [--json FILE] [budget=]": for the synopsis, and for messages.
std::string option_summary(std::span<const MagicOption> options);

}  // namespace kiln::repl
