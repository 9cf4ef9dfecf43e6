// The prompt's editor: reads entries of one or more lines from a terminal.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "repl/editor/bindings.h"
#include "repl/editor/buffer.h"
#include "repl/editor/completion_menu.h"
#include "repl/editor/history.h"
#include "repl/editor/keys.h"
#include "repl/editor/render.h"
#include "repl/editor/terminal.h"

namespace kiln::editor {

/// What the editor asks about the language; each may be null.
struct Language {
  std::function<Completion(std::string_view before_cursor)> complete;
  /// One line about a candidate of the last completion.
  std::function<std::string(const std::string& candidate)> preview;
  /// Whether Enter behind this text, which ends with an end of line, begins another line.
  std::function<bool(std::string_view text)> is_incomplete;
  std::function<std::vector<Styled>(std::string_view text)> highlight;
};

class Editor {
 public:
  enum class Event { kEntry, kEnd };
  struct Input {
    Event event = Event::kEnd;
    std::string text;
    std::vector<std::string> entries;  // that run one after another: the text, or those of a pasted transcript

    static Input entry(std::string text) { return {Event::kEntry, text, {text}}; }
  };

  Editor(Terminal& terminal, Language language, History::Options history, bool color);
  /// From the next entry on.
  void set_color(bool color) { renderer_.set_color(color); }

  /// Edits one entry, which is not blank. The terminal is as it was before when this returns, and not sooner: keys
  /// that are typed ahead of a new prompt, Ctrl-D behind Ctrl-C say, stay keys.
  Input read(std::string first_prompt, std::string next_prompt);

  /// Why the history is not kept, told once.
  std::optional<Diagnostic> take_problem();

 private:
  struct Search {
    std::string query;
    std::optional<size_t> match;
    std::string text;  // to go back to
    size_t cursor = 0;
  };

  void begin();
  enum class Done { kEntry, kDropped, kEnd };

  Input entered() const;
  std::optional<Done> handle(KeyEvent& event);
  std::optional<Done> act(Action action);
  std::optional<Done> enter();
  void insert_line();
  void insert_character(char32_t c);
  void paste(std::string text);
  void tab();
  void step_menu(int by, bool rows);
  bool handle_in_menu(std::optional<Action> action);
  bool handle_in_search(const KeyEvent& event, std::optional<Action> action);
  void search_again(size_t from, bool forward);
  void end_search(bool keep);
  void refresh_history();
  void earlier();
  void later();
  void keep_edit();
  void recall(size_t index, bool to_end);
  void note(const Status& status);

  Frame frame(bool final);
  bool draw();
  bool finish(std::string_view after = {});

  Terminal& terminal_;
  Language language_;
  History history_;
  std::optional<Diagnostic> problem_;
  bool told_ = false;

  KeyDecoder decoder_;
  Renderer renderer_;
  Buffer buffer_;
  TerminalSize size_;
  std::string first_prompt_, next_prompt_;
  std::optional<CompletionMenu> menu_;
  std::optional<Search> search_;
  std::vector<std::string> transcript_;  // whose entries the buffer began with
  bool unmarked_paste_ = false;          // lines come with their own indentation
  bool indented_ = false;                // the cursor is behind blanks that Enter made, and no key came since

  // Going through the history: entry_ of it is shown; history_.size() stands for the entry that is being made.
  size_t entry_ = 0;
  std::string prefix_;                    // what recalled entries begin with
  std::string recalled_;                  // the text as it was recalled
  std::map<size_t, std::string> edited_;  // entries as they were left

  std::string styled_text_;  // what styles_ is of
  std::vector<Styled> styles_;
};

}  // namespace kiln::editor
