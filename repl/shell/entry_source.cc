#include "repl/shell/entry_source.h"

#include <unistd.h>

#include <cstdio>

#include "profiler/report/table.h"
#include "repl/shell/entry_text.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

class EditorSource : public EntrySource {
 public:
  EditorSource(editor::Language language, const std::string& state_folder)
      : terminal_(STDIN_FILENO, STDOUT_FILENO),
        editor_(terminal_, std::move(language),
                {.file = state_folder.empty() ? "" : state_folder + "/prompt_history",
                 .old_file = state_folder.empty() ? "" : state_folder + "/history"},
                report::wants_color(STDOUT_FILENO)) {}

  Input read(const std::string& first_prompt, const std::string& next_prompt) override {
    std::fflush(stdout);
    Input input = editor_.read(first_prompt, next_prompt);
    if (auto problem = editor_.take_problem())
      print_error(with_note(std::move(*problem), "the history of this session is not kept"), false);
    return input;
  }

 private:
  editor::Terminal terminal_;
  editor::Editor editor_;
};

class LineEntries : public EntrySource {
 public:
  using ReadLine = std::function<std::optional<std::string>(const std::string&)>;
  explicit LineEntries(ReadLine read_line) : read_line_(std::move(read_line)) {}

  Input read(const std::string& first_prompt, const std::string& next_prompt) override {
    std::string text;
    for (;;) {
      auto line = read_line_(text.empty() ? first_prompt : next_prompt);
      if (!line) return text.empty() ? Input{} : Input{Event::kEntry, text + "\n"};
      text += trimmed(*line).empty() ? "\n" : *line + "\n";
      if (!entry_is_incomplete(text)) return {Event::kEntry, std::move(text)};
    }
  }

 private:
  ReadLine read_line_;
};

std::optional<std::string> read_plain_line(const std::string& prompt) {
  put(stdout, prompt);
  std::fflush(stdout);
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t n = getline(&line, &capacity, stdin);
  std::optional<std::string> text;
  if (n >= 0) text.emplace(line, static_cast<size_t>(n));
  std::free(line);
  while (text && !text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return text;
}

}  // namespace

std::unique_ptr<EntrySource> make_editor_source(editor::Language language, const std::string& state_folder) {
  return std::make_unique<EditorSource>(std::move(language), state_folder);
}

std::unique_ptr<EntrySource> make_line_source(
    std::function<std::optional<std::string>(const std::string& prompt)> read_line) {
  return std::make_unique<LineEntries>(std::move(read_line));
}

std::unique_ptr<EntrySource> make_plain_source() { return make_line_source(read_plain_line); }

}  // namespace kiln::repl
