// Where the prompt's entries come from: the editor on a terminal, or lines one at a time.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "repl/editor/editor.h"

namespace kiln::repl {

class EntrySource {
 public:
  using Event = editor::Editor::Event;
  using Input = editor::Editor::Input;
  virtual ~EntrySource() = default;
  /// One whole entry. `next_prompt` stands before its further lines.
  virtual Input read(const std::string& first_prompt, const std::string& next_prompt) = 0;
  virtual void set_color(bool) {}
};

/// The editor on standard input and output. `state_folder` holds the history; empty: it is not kept.
std::unique_ptr<EntrySource> make_editor_source(editor::Language language, const std::string& state_folder);

enum class LineRead {
  kLine,
  kInterrupted,  // what was typed of the entry is dropped
  kEnd,          // of the input, which also ends a block
};
using ReadLine = std::function<LineRead(const std::string& prompt, std::string& line)>;
/// Reads lines until they make a whole entry.
std::unique_ptr<EntrySource> make_line_source(ReadLine read_line);
/// Lines of standard input as the terminal edits them, for terminals without cursor movement and output that goes
/// elsewhere.
std::unique_ptr<EntrySource> make_plain_source();

}  // namespace kiln::repl
