#include "repl/shell/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace kiln::repl {

namespace {

constexpr int kHistorySize = 5000;
constexpr const char* kPasteOn = "\033[?2004h";  // the terminal marks pasted text
constexpr const char* kPasteOff = "\033[?2004l";
constexpr std::string_view kPasteEnd = "\033[201~";

class LineEditor : public LineSource {
 public:
  LineEditor(std::string history_file, std::function<Completion(std::string_view)> complete)
      : history_file_(std::move(history_file)), complete_(std::move(complete)) {
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistorySize);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());

    editor_ = el_init("kiln", stdin, stdout, stderr);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_PROMPT, &LineEditor::prompt_text);
    el_set(editor_, EL_SIGNAL, 0);
    // Ctrl-C is a key while a line is edited, so that it can drop the line without ending the program.
    el_set(editor_, EL_SETTY, "-d", "-isig", nullptr);
    el_set(editor_, EL_ADDFN, "kiln-complete", "complete the word", &LineEditor::on_tab);
    el_set(editor_, EL_ADDFN, "kiln-interrupt", "drop the line", &LineEditor::on_interrupt);
    el_set(editor_, EL_ADDFN, "kiln-paste", "take a pasted block", &LineEditor::on_paste);
    el_source(editor_, nullptr);  // ~/.editrc
    el_set(editor_, EL_BIND, "^I", "kiln-complete", nullptr);
    el_set(editor_, EL_BIND, "^C", "kiln-interrupt", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(editor_, EL_BIND, "\\e[200~", "kiln-paste", nullptr);
    std::fputs(kPasteOn, stdout);
  }

  ~LineEditor() override {
    std::fputs(kPasteOff, stdout);
    std::fflush(stdout);
    HistEvent event;
    if (!history_file_.empty()) history(history_, &event, H_SAVE, history_file_.c_str());
    el_end(editor_);
    history_end(history_);
  }

  Input read(const std::string& prompt, int indent) override {
    prompt_ = prompt;
    interrupted_ = false;
    pasted_.clear();
    // Text that is already waiting was pasted by a terminal without bracketed paste: it has its own indentation.
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (indent > 0 && poll(&waiting, 1, 0) == 0)
      el_push(editor_, std::string(static_cast<size_t>(indent), ' ').c_str());
    int count = 0;
    const char* line = el_gets(editor_, &count);
    if (interrupted_) {
      std::fputs("^C\n", stdout);
      return {Event::kInterrupted, {}};
    }
    if ((!line || count <= 0) && pasted_.empty()) return {Event::kEnd, {}};
    std::string text(line ? line : "", static_cast<size_t>(std::max(count, 0)));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    HistEvent event;
    if (!pasted_.empty()) {
      std::string all = text + pasted_;
      for (size_t at = 0; at < all.size();) {
        size_t end = std::min(all.find('\n', at), all.size());
        if (end > at) history(history_, &event, H_ENTER, all.substr(at, end - at).c_str());
        at = end + 1;
      }
      return {Event::kPasted, std::move(all)};
    }
    if (text.find_first_not_of(" \t") != std::string::npos) history(history_, &event, H_ENTER, text.c_str());
    return {Event::kLine, std::move(text)};
  }

 private:
  static LineEditor& self(EditLine* e) {
    void* data = nullptr;
    el_get(e, EL_CLIENTDATA, &data);
    return *static_cast<LineEditor*>(data);
  }

  static const char* prompt_text(EditLine* e) { return self(e).prompt_.c_str(); }

  static unsigned char on_interrupt(EditLine* e, int) {
    self(e).interrupted_ = true;
    return CC_NEWLINE;
  }

  static unsigned char on_paste(EditLine* e, int) {
    std::string text;
    char c = 0;
    while (el_getc(e, &c) == 1) {
      text += c == '\r' ? '\n' : c;
      if (text.ends_with(kPasteEnd)) break;
    }
    if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
    if (text.find('\n') == std::string::npos) {
      el_insertstr(e, text.c_str());
      return CC_REFRESH;
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    self(e).pasted_ = std::move(text);
    return CC_NEWLINE;
  }

  static unsigned char on_tab(EditLine* e, int) {
    const LineInfo* line = el_line(e);
    std::string_view before(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
    if (before.find_first_not_of(' ') == std::string_view::npos) {
      el_insertstr(e, "    ");
      return CC_REFRESH;
    }
    Completion c = self(e).complete_(before);
    if (c.candidates.empty()) return CC_REFRESH_BEEP;
    std::string common = c.candidates[0];
    for (const std::string& s : c.candidates)
      common.resize(
          static_cast<size_t>(std::mismatch(common.begin(), common.end(), s.begin(), s.end()).first - common.begin()));
    std::string_view typed = before.substr(before.size() - std::min(c.replaced, before.size()));
    if (common.size() > typed.size() || c.candidates.size() == 1) {
      el_deletestr(e, static_cast<int>(typed.size()));
      el_insertstr(e, common.c_str());
      return CC_REFRESH;
    }
    std::fputc('\n', stdout);
    constexpr size_t kMost = 200;
    for (size_t i = 0; i < std::min(kMost, c.candidates.size()); ++i)
      std::printf("%s%s", i ? "  " : "", c.candidates[i].c_str());
    std::printf(c.candidates.size() > kMost ? "  … %zu more\n" : "\n", c.candidates.size() - kMost);
    return CC_REDISPLAY;
  }

  std::string history_file_, prompt_, pasted_;
  std::function<Completion(std::string_view)> complete_;
  bool interrupted_ = false;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineSource> make_line_editor(std::string history_file,
                                             std::function<Completion(std::string_view)> complete) {
  return std::make_unique<LineEditor>(std::move(history_file), std::move(complete));
}

}  // namespace kiln::repl
