// Error output of the program, and its exit codes.
#pragma once
#include <string>

#include "kiln/result.h"

namespace kiln::repl {

/// {"kind": …, "message": …, "file": …, "line": …, "column": …, "notes": […]} on one line, without its end. In a
/// notebook the line is that of a cell, which "cell" says.
std::string error_json(const Diagnostic& d);

/// To stderr: rendered with its caret, or as a JSON line.
/// Without `color` as standard error has it.
void print_error(const Diagnostic& d, bool json, std::optional<bool> color = {});

/// kExitMismatch for a failed assert or comparison, else kExitError.
int exit_code_of(const Diagnostic& d);

}  // namespace kiln::repl
