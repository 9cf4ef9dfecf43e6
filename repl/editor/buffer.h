// The text that is edited: several lines, a cursor between characters, undo, and what was cut. No terminal, no Python.
#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::editor {

class Buffer {
 public:
  static constexpr int kIndent = 4;

  const std::string& text() const { return text_; }
  /// In bytes; always at the start of a character.
  size_t cursor() const { return cursor_; }
  std::string_view before_cursor() const { return std::string_view(text_).substr(0, cursor_); }
  std::string_view after_cursor() const { return std::string_view(text_).substr(cursor_); }
  std::string_view current_line() const;
  bool on_first_line() const { return before_cursor().find('\n') == std::string_view::npos; }
  bool on_last_line() const { return after_cursor().find('\n') == std::string_view::npos; }

  /// A new text that undo does not lead out of.
  void reset(std::string text = {});
  /// Another text in place of all: one step for undo. The cursor goes to its end.
  void replace_all(std::string text);
  void set_cursor(size_t offset);

  void insert(std::string_view text);
  /// A typed character: a run of them is one step for undo.
  void type(std::string_view character);
  /// Replaces that many bytes before the cursor.
  void replace_before(size_t bytes, std::string_view text);

  void left();
  void right();
  void word_left();
  void word_right();
  void line_start();
  /// The first character of the line that is no blank; from there, and from before it, the start of the line or back.
  void smart_home();
  void line_end();
  void text_start() { move(0); }
  void text_end() { move(text_.size()); }
  /// To the line above or below, as near to the column as it can be; the column of the first of several such steps
  /// counts.
  void up();
  void down();

  void erase_left();  // of leading blanks, to the last multiple of four
  void erase_right();

  // What these cut can be put back by yank(); what several cut in a row is put back as one.
  void kill_line_end();
  void kill_line_start();
  void kill_word_left();        // letters, digits and _
  void kill_blank_word_left();  // anything but blanks
  void kill_word_right();
  void yank();
  /// After yank(): what was cut before that instead.
  void yank_previous();

  void transpose();
  void upper_word();
  void lower_word();
  void capitalize_word();
  /// Adds or takes one level of indentation on the cursor's line.
  void indent_line(bool in);

  bool undo();
  bool redo();

 private:
  struct State {
    std::string text;
    size_t cursor;
  };
  enum class Step { kOther, kTyped, kKilled, kYanked, kVertical };

  size_t word_start(size_t from) const;
  size_t word_end(size_t from) const;
  size_t line_start_of(size_t offset) const;
  size_t line_end_of(size_t offset) const;
  void move(size_t offset);
  void vertical(bool up);
  /// Remembers the present state for undo, once for a run of equal steps when `joins`.
  void remember(Step step, bool joins = false);
  void erase(size_t begin, size_t end);
  void kill(size_t begin, size_t end, bool in_front);
  template <class F>
  void change_word(F&& change);

  static constexpr size_t kMostUndo = 1000;
  static constexpr size_t kMostUndoBytes = size_t{64} << 20;
  static constexpr size_t kMostKills = 32;

  std::string text_;
  size_t cursor_ = 0;
  Step last_ = Step::kOther;
  int column_ = 0;  // wanted by up and down
  std::deque<State> undo_;
  std::vector<State> redo_;
  size_t undo_bytes_ = 0;
  std::deque<std::string> kills_;  // the latest first
  size_t yanked_ = 0;              // which of them
  size_t yank_begin_ = 0;
};

}  // namespace kiln::editor
