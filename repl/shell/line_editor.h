// Lines from a terminal, with history, completion and pasted blocks; and lines from anything else.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln::repl {

/// What could replace the end of a line: the candidates, and how many characters before the cursor they replace.
struct Completion {
  std::vector<std::string> candidates;
  size_t replaced = 0;
};

class LineSource {
 public:
  enum class Event { kLine, kPasted, kInterrupted, kEnd };
  struct Input {
    Event event = Event::kEnd;
    std::string text;  // without its end of line; kPasted: several lines at once
  };
  virtual ~LineSource() = default;
  /// `indent` blanks stand at the start of the line already.
  virtual Input read(const std::string& prompt, int indent) = 0;
};

/// libedit on the terminal. `history_file` may be empty.
std::unique_ptr<LineSource> make_line_editor(std::string history_file,
                                             std::function<Completion(std::string_view before_cursor)> complete);

}  // namespace kiln::repl
