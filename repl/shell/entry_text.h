// Texts with code and % commands in them: where one ends and the next begins, and how they look.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "repl/editor/render.h"

namespace kiln::repl {

/// `target` = %name …; without a target, the command alone.
struct CommandLine {
  std::string_view target, command;
};
/// A line's command that begins with % or !; nullopt when it is none.
std::optional<CommandLine> percent_command(std::string_view line);

/// Code of one or more lines, or a line that is a command: %name …, TARGET = %name …, and at the prompt also name?,
/// name??, ?, help, exit.
struct Piece {
  std::string text;
  bool is_command = false;
  size_t first_line = 0;  // counted from 0
};
enum class Commands { kPercent, kPrompt };
/// % inside a bracket or a string is no command. A `;` ends a command that takes no statements, and what is behind it
/// is a piece of its own. Pieces of blank lines are left out.
std::vector<Piece> split_program(std::string_view text, Commands commands);

/// Whether a text at the prompt, which ends with an end of line, needs further lines.
bool entry_is_incomplete(std::string_view text);

/// Colours for a text that may be unfinished or wrong.
std::vector<editor::Styled> highlight(std::string_view text);

}  // namespace kiln::repl
