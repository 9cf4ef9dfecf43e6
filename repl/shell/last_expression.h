// The value that a program ends with, for --json.
#pragma once
#include <string>

namespace kiln::repl {

/// Takes the last statement out of a program if it is an expression: gives it behind as many newlines as are before it,
/// so that places stay. Empty: there is none, or the text has errors, which a run reports.
std::string take_last_expression(std::string& program);

}  // namespace kiln::repl
