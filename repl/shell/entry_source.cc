#include "repl/shell/entry_source.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "profiler/report/table.h"
#include "repl/shell/entry_text.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "repl/shell/interrupts.h"
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
  void set_color(bool color) override { editor_.set_color(color); }

 private:
  editor::Terminal terminal_;
  editor::Editor editor_;
};

class LineEntries : public EntrySource {
 public:
  explicit LineEntries(ReadLine read_line) : read_line_(std::move(read_line)) {}

  Input read(const std::string& first_prompt, const std::string& next_prompt) override {
    std::string text, line;
    for (;;) {
      switch (read_line_(text.empty() ? first_prompt : next_prompt, line)) {
        case LineRead::kEnd:
          return text.empty() ? Input{} : Input::entry(text + "\n");
        case LineRead::kInterrupted:
          text.clear();
          continue;
        case LineRead::kLine:
          text += trimmed(line).empty() ? "\n" : line + "\n";
          if (!entry_is_incomplete(text)) return Input::entry(std::move(text));
      }
    }
  }

 private:
  ReadLine read_line_;
};

/// Lines of standard input. Not through stdio: whatever thread takes the signal, Ctrl-C must end the wait for a line.
class PlainLines {
 public:
  LineRead operator()(const std::string& prompt, std::string& line) {
    put(stdout, prompt);
    std::fflush(stdout);
    for (;;) {
      if (const size_t end = ahead_.find('\n'); end != std::string::npos) return take(end, line);
      pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {IdleInterrupts::descriptor(), POLLIN, 0}};
      if (poll(watched, 2, -1) < 0 && errno != EINTR) return LineRead::kEnd;
      if (watched[1].revents) {
        // The terminal has dropped what was typed of the line.
        IdleInterrupts::forget();
        ahead_.clear();
        put(stdout, "\n");
        return LineRead::kInterrupted;
      }
      if (!watched[0].revents) continue;
      char bytes[4096];
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n > 0) {
        ahead_.append(bytes, static_cast<size_t>(n));
      } else if (ahead_.empty()) {
        return LineRead::kEnd;
      } else {
        return take(ahead_.size(), line);
      }
    }
  }

 private:
  LineRead take(size_t end, std::string& line) {
    line = ahead_.substr(0, end);
    ahead_.erase(0, end + 1);
    while (!line.empty() && line.back() == '\r') line.pop_back();
    return LineRead::kLine;
  }

  std::string ahead_;  // read, and not yet given
};

}  // namespace

std::unique_ptr<EntrySource> make_editor_source(editor::Language language, const std::string& state_folder) {
  return std::make_unique<EditorSource>(std::move(language), state_folder);
}

std::unique_ptr<EntrySource> make_line_source(ReadLine read_line) {
  return std::make_unique<LineEntries>(std::move(read_line));
}

std::unique_ptr<EntrySource> make_plain_source() { return make_line_source(PlainLines()); }

}  // namespace kiln::repl
