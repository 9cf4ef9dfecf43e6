// What follows a % command that takes one statement: the statement as it stands, and in front of it or behind it words
// that are options: `shapes`, rows=20, --json FILE. An assignment in the statement is no option: y = f(x).
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kiln/result.h"
#include "repl/magics/magic_arguments.h"

namespace kiln::repl {

struct StatementForm {
  bool (*is_operand)(std::string_view word) = nullptr;  // of the words behind the statement, beside options
  bool needs_statement = true;
};

/// `expressions` holds the one statement. kSyntax: no statement, an option without its value or given twice.
Result<MagicArguments> parse_statement_arguments(std::string_view text, std::span<const MagicOption> options,
                                                 StatementForm form = {});

/// When a statement does not parse and ends in NAME=VALUE: the error that NAME is no option; else what was given.
Diagnostic explain_statement(Diagnostic problem, const std::string& statement, std::span<const MagicOption> options);

/// A whole number from `least` up.
Result<int64_t> count_of(std::string_view text, std::string_view what, int64_t least);

}  // namespace kiln::repl
