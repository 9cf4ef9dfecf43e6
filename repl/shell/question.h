// x?, ?x, x??, help(x) and %name? at the prompt.
#pragma once
#include <optional>
#include <string_view>

#include "repl/magics/magics.h"

namespace kiln::repl {

struct Question {
  std::string_view about;  // "x", "a.b", "%bench"; empty: of everything
  bool source = false;     // two marks
};
/// nullopt when a line asks nothing.
std::optional<Question> question_of(std::string_view line);

/// Prints the answer: for a tensor its statistics too, for a kernel its registers, occupancy and last timing.
Status answer(MagicContext& context, const Question& question);

}  // namespace kiln::repl
