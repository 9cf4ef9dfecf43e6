// A block of text with prompts, drawn on a terminal: what changed since the last drawing, and nothing else.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "repl/editor/terminal.h"

namespace kiln::editor {

enum class Style : uint8_t {
  kPlain,
  kPrompt,
  kKeyword,
  kDecorator,
  kString,
  kNumber,
  kComment,
  kCommand,  // % lines
  kMatch,    // the bracket at the cursor and its other half
  kControl,  // a character that cannot be shown as itself
  kSelected,
  kFaint,
};

/// A stretch [begin, end) of a text, in bytes. Of several that overlap the last counts.
struct Styled {
  size_t begin = 0, end = 0;
  Style style = Style::kPlain;
};

/// One place on a row: a character with its combining marks. The second half of a wide one has an empty text.
struct Cell {
  std::string text;
  Style style = Style::kPlain;
  bool operator==(const Cell&) const = default;
};
using Row = std::vector<Cell>;

/// Rows of cells, none wider than the terminal, and where the cursor is among them.
struct Frame {
  std::vector<Row> rows;
  int cursor_row = 0, cursor_column = 0;
  std::vector<Row> footer;  // below them, always shown; less than the screen's rows
};

/// Appends a text to the last row, which continues on further rows at the terminal's width. Tabs go to multiples of
/// eight of the text's own columns, control characters are shown as ^[ or \x9b.
void append_text(Frame& frame, std::string_view text, Style style, int columns);

struct BlockView {
  std::string_view text;
  size_t cursor = 0;
  std::string_view first_prompt, next_prompt;
  std::vector<Styled> styles;  // sorted by begin
};
/// The block at that width.
Frame layout_block(const BlockView& block, int columns);

/// Draws frames in place: each below the other's top left corner, with the cursor in column 0 before the first.
class Renderer {
 public:
  explicit Renderer(bool color) : color_(color) {}
  void set_color(bool color) { color_ = color; }

  /// Bytes that make what is on the screen the frame; of one that is higher than the screen the rows around the cursor.
  std::string draw(const Frame& frame, TerminalSize size);
  /// Bytes that leave the whole frame on the screen, `after` behind it, and the cursor in column 0 below.
  std::string finish(const Frame& frame, TerminalSize size, std::string_view after = {});
  /// Bytes that clear the screen; the next drawing starts at its top.
  std::string clear_screen();
  /// Bytes that take the last drawing away, as the terminal may have folded it when its width changed.
  std::string erase(TerminalSize now);
  /// The next drawing starts where the cursor is.
  void forget() { shown_ = {}, is_drawn_ = false; }

 private:
  void move_to(std::string& out, int row, int column);
  void write_cells(std::string& out, const Row& row, size_t from) const;
  Frame visible(const Frame& frame, int rows);

  bool color_;
  Frame shown_;  // what is on the screen
  bool is_drawn_ = false;
  int first_row_ = 0;  // of the frame that is drawn
};

}  // namespace kiln::editor
