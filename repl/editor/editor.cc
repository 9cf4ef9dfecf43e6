#include "repl/editor/editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "repl/editor/python_lines.h"
#include "support/text_width.h"

namespace kiln::editor {

namespace {

bool is_blank_text(std::string_view text) { return text.find_first_not_of(" \t\n") == std::string_view::npos; }

constexpr int kMostMenuRows = 10;

}  // namespace

Editor::Editor(Terminal& terminal, Language language, History::Options history, bool color)
    : terminal_(terminal), language_(std::move(language)), history_(std::move(history)), renderer_(color) {}

void Editor::note(const Status& status) {
  if (!status.ok() && !problem_ && !told_) problem_ = status.error();
}

std::optional<Diagnostic> Editor::take_problem() {
  if (!problem_) return std::nullopt;
  told_ = true;
  return std::exchange(problem_, std::nullopt);
}

void Editor::begin() {
  buffer_.reset();
  menu_.reset(), search_.reset();
  transcript_.clear();
  unmarked_paste_ = indented_ = false;
  entry_ = history_.size();
  prefix_.clear(), recalled_.clear(), edited_.clear();
  size_ = terminal_.size();
  renderer_.forget();
}

Editor::Input Editor::read(std::string first_prompt, std::string next_prompt) {
  first_prompt_ = std::move(first_prompt), next_prompt_ = std::move(next_prompt);
  if (Status s = terminal_.enter(); !s.ok()) return {};
  note(history_.refresh());
  begin();
  for (;;) {
    while (auto event = decoder_.next()) {
      auto done = handle(*event);
      if (!done) continue;
      menu_.reset(), search_.reset();
      finish(*done == Done::kDropped ? "^C" : "");
      if (*done == Done::kDropped || (*done == Done::kEntry && is_blank_text(buffer_.text()))) {
        note(history_.refresh());
        begin();
        continue;
      }
      // Kept before anything can see that it runs: whatever ends the process then, the entry is in the file.
      if (*done == Done::kEntry) note(history_.add(buffer_.text()));
      terminal_.leave();
      if (*done == Done::kEnd) return {};
      return entered();
    }
    if (!draw()) break;
    std::string bytes;
    switch (terminal_.wait(decoder_.is_waiting() ? KeyDecoder::kEscapeMs : -1, bytes)) {
      case Terminal::Wake::kInput:
        decoder_.feed(bytes);
        break;
      case Terminal::Wake::kTimeout:
        // An Escape that nothing followed is the key itself.
        decoder_.give_up();
        break;
      case Terminal::Wake::kInterrupt:
        decoder_.feed("\003");
        break;
      case Terminal::Wake::kResize:
        size_ = terminal_.size();
        // Drawn for the old width, so erased by the new one: the terminal has wrapped its rows.
        terminal_.write(renderer_.erase(size_));
        break;
      case Terminal::Wake::kSuspend:
        act(Action::kSuspend);
        break;
      case Terminal::Wake::kResume:
        terminal_.leave();
        if (!terminal_.enter().ok()) return {};
        // Another program may have drawn in between.
        renderer_.forget();
        break;
      case Terminal::Wake::kClosed:
        terminal_.leave();
        return {};
    }
  }
  terminal_.leave();
  return {};
}

Editor::Input Editor::entered() const {
  Input input = Input::entry(buffer_.text());
  // As it was pasted, but for blank lines that ended its last block.
  const std::string pasted = joined(transcript_);
  const std::string_view rest = std::string_view(input.text).substr(std::min(pasted.size(), input.text.size()));
  if (!transcript_.empty() && input.text.starts_with(pasted) && is_blank_text(rest)) input.entries = transcript_;
  return input;
}

std::optional<Editor::Done> Editor::handle(KeyEvent& event) {
  const bool indented = std::exchange(indented_, false);
  if (event.is_paste) {
    menu_.reset();
    if (search_)
      // A search has one line.
      search_->query += event.paste.substr(0, event.paste.find('\n')), search_again(history_.size(), false);
    else
      paste(std::move(event.paste));
    return std::nullopt;
  }
  const std::optional<Action> action = action_of(event.key);
  if (search_ && handle_in_search(event, action)) return std::nullopt;
  if (menu_ && handle_in_menu(action)) return std::nullopt;
  if (action) return act(*action);
  const Key& key = event.key;
  if (key.special != Special::kNone || key.ctrl || key.alt) return std::nullopt;
  // A program that types, and many a person, begins a line with its own blanks: they take the place of Enter's.
  if (indented && key.character == U' ') {
    const std::string_view before = buffer_.before_cursor();
    buffer_.replace_before(before.size() - (before.rfind('\n') + 1), "");
  }
  insert_character(key.character);
  return std::nullopt;
}

void Editor::insert_character(char32_t c) {
  std::string text;
  append_utf8(text, c);
  buffer_.type(text);
  if (c != ':' || unmarked_paste_) return;
  // `else:` and its like go back to the statement that they continue.
  const int blanks =
      // On the last line only: elsewhere the lines around it have their indentation.
      buffer_.on_last_line() ? indent_of_clause(buffer_.before_cursor().substr(0, buffer_.cursor() - 1)) : -1;
  if (blanks < 0 || is_blank_text(buffer_.before_cursor())) return;
  const std::string_view before = buffer_.before_cursor();
  const std::string line(before.substr(before.rfind('\n') + 1));
  buffer_.replace_before(line.size(),
                         std::string(static_cast<size_t>(blanks), ' ') + line.substr(line.find_first_not_of(' ')));
}

std::optional<Editor::Done> Editor::act(Action action) {
  switch (action) {
    case Action::kEnter:
      return enter();
    case Action::kNewLine:
      buffer_.insert("\n");
      break;
    case Action::kRun:
      return Done::kEntry;
    case Action::kInterrupt:
      return Done::kDropped;
    case Action::kEndOfInput:
      // As a shell: Ctrl-D ends an empty entry, and erases in another.
      if (buffer_.text().empty()) return Done::kEnd;
      buffer_.erase_right();
      break;
    case Action::kSuspend:
      // What is on the screen stays as a record, and the entry is drawn anew below.
      finish();
      note(terminal_.suspend());
      size_ = terminal_.size();
      break;
    case Action::kComplete:
      tab();
      break;
    case Action::kCompleteBack:
      buffer_.indent_line(false);
      break;
    case Action::kSearch:
      refresh_history();
      // The text comes back when the search is given up.
      search_ = Search{{}, std::nullopt, buffer_.text(), buffer_.cursor()};
      break;
    case Action::kSearchForward:
    case Action::kCancel:
      break;
    case Action::kUp:
      buffer_.on_first_line() ? earlier() : buffer_.up();
      break;
    case Action::kDown:
      buffer_.on_last_line() ? later() : buffer_.down();
      break;
    case Action::kEarlier:
      earlier();
      break;
    case Action::kLater:
      later();
      break;
    case Action::kLeft:
      buffer_.left();
      break;
    case Action::kRight:
      buffer_.right();
      break;
    case Action::kWordLeft:
      buffer_.word_left();
      break;
    case Action::kWordRight:
      buffer_.word_right();
      break;
    case Action::kLineStart:
      buffer_.smart_home();
      break;
    case Action::kLineEnd:
      buffer_.line_end();
      break;
    case Action::kTextStart:
      buffer_.text_start();
      break;
    case Action::kTextEnd:
      buffer_.text_end();
      break;
    case Action::kEraseLeft:
      buffer_.erase_left();
      break;
    case Action::kEraseRight:
      buffer_.erase_right();
      break;
    case Action::kKillLineEnd:
      buffer_.kill_line_end();
      break;
    case Action::kKillLineStart:
      buffer_.kill_line_start();
      break;
    case Action::kKillBlankWordLeft:
      buffer_.kill_blank_word_left();
      break;
    case Action::kKillWordLeft:
      buffer_.kill_word_left();
      break;
    case Action::kKillWordRight:
      buffer_.kill_word_right();
      break;
    case Action::kYank:
      buffer_.yank();
      break;
    case Action::kYankPrevious:
      buffer_.yank_previous();
      break;
    case Action::kTranspose:
      buffer_.transpose();
      break;
    case Action::kUpperWord:
      buffer_.upper_word();
      break;
    case Action::kLowerWord:
      buffer_.lower_word();
      break;
    case Action::kCapitalizeWord:
      buffer_.capitalize_word();
      break;
    case Action::kUndo:
      buffer_.undo();
      break;
    case Action::kRedo:
      buffer_.redo();
      break;
    case Action::kClearScreen:
      terminal_.write(renderer_.clear_screen());
      break;
  }
  return std::nullopt;
}

std::optional<Editor::Done> Editor::enter() {
  const std::string& text = buffer_.text();
  const bool one_line = text.find('\n') == std::string::npos;
  const bool inside = !one_line && !is_blank_text(buffer_.after_cursor());
  // Enter within several lines goes on with them, wherever the last one is complete.
  if (!inside && !(language_.is_incomplete && language_.is_incomplete(text + "\n"))) return Done::kEntry;
  insert_line();
  return std::nullopt;
}

/// A new line at the cursor, indented; what stands behind the cursor loses its leading blanks to that.
void Editor::insert_line() {
  // A terminal that does not mark what is pasted: its lines come at once, with blanks of their own.
  const KeyEvent* next = decoder_.peek();
  const bool own_blanks = next && !next->is_paste && next->key == Key{Special::kNone, U' '};
  unmarked_paste_ = next && (unmarked_paste_ || own_blanks);
  std::string line = "\n";
  if (!unmarked_paste_) {
    line.append(static_cast<size_t>(indent_after(buffer_.before_cursor())), ' ');
    indented_ = line.size() > 1;
    while (!buffer_.after_cursor().empty() && buffer_.after_cursor()[0] == ' ') buffer_.erase_right();
  }
  buffer_.insert(line);
}

void Editor::paste(std::string text) {
  if (buffer_.text().empty()) transcript_ = entries_of_transcript(text);
  text = cleaned_paste(std::move(text));
  if (text.empty()) return;
  if (text.find('\n') == text.size() - 1) text.pop_back();  // one line: Enter runs it
  // Behind blanks, the further lines go as far in, unless they already do.
  const std::string_view before = buffer_.before_cursor();
  const std::string_view lead = before.substr(before.rfind('\n') + 1);
  const size_t first_end = text.find('\n');
  if (first_end != std::string::npos && !lead.empty() && is_blank_text(lead)) {
    size_t least = std::string::npos;
    for (size_t at = first_end; at != std::string::npos; at = text.find('\n', at + 1)) {
      const size_t content = text.find_first_not_of(' ', at + 1);
      if (content != std::string::npos && text[content] != '\n') least = std::min(least, content - at - 1);
    }
    // An opening line asks for a deeper block, whatever the pasted lines bring along.
    const bool opens = first_end > 0 && text[first_end - 1] == ':';
    if (opens || least < lead.size()) {
      std::string indented;
      for (size_t i = 0; i < text.size(); ++i) {
        indented += text[i];
        if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n') indented += lead;
      }
      text = std::move(indented);
    }
  }
  buffer_.insert(text);
}

// --- completion ------------------------------------------------------------------------------------------------------

void Editor::tab() {
  const std::string_view before = buffer_.before_cursor();
  const std::string_view lead = before.substr(before.rfind('\n') + 1);
  if (is_blank_text(lead)) {
    buffer_.insert(std::string(Buffer::kIndent - lead.size() % Buffer::kIndent, ' '));
    return;
  }
  if (!language_.complete) return;
  Completion found = language_.complete(before);
  if (found.candidates.empty()) return;
  const auto rest = found.candidates.begin() + static_cast<std::ptrdiff_t>(found.leading);
  for (const auto& part :
       {std::ranges::subrange(found.candidates.begin(), rest), std::ranges::subrange(rest, found.candidates.end())})
    // Names that were used before come first, in each of the two groups.
    std::ranges::stable_sort(part, std::greater(), [&](const std::string& c) { return history_.uses(c); });
  const std::string common = common_prefix(found.candidates);
  const std::string_view typed = before.substr(before.size() - std::min(found.replaced, before.size()));
  if (common.size() > typed.size() || found.candidates.size() == 1) {
    buffer_.replace_before(typed.size(), common);
    found.replaced = common.size();
  }
  if (found.candidates.size() > 1) menu_.emplace(std::move(found));
}

void Editor::step_menu(int by, bool rows) {
  size_t replaced = menu_->replaced();
  if (menu_->selected()) buffer_.undo();  // one step for undo, however many candidates were tried
  rows ? menu_->step_row(by) : menu_->step(by);
  buffer_.replace_before(replaced, *menu_->selected());
}

/// Whether the key was for the menu; any other closes it and does what it does.
bool Editor::handle_in_menu(std::optional<Action> action) {
  const bool chosen = menu_->selected() != nullptr;
  if (action == Action::kComplete || (chosen && action == Action::kRight)) return step_menu(1, false), true;
  if (action == Action::kCompleteBack || (chosen && action == Action::kLeft)) return step_menu(-1, false), true;
  if (chosen && action == Action::kDown) return step_menu(1, true), true;
  if (chosen && action == Action::kUp) return step_menu(-1, true), true;
  if (action == Action::kCancel && chosen) buffer_.undo();
  menu_.reset();
  // Enter takes the candidate; without one it runs the entry.
  return action == Action::kCancel || (chosen && action == Action::kEnter);
}

// --- history ---------------------------------------------------------------------------------------------------------

/// An entry that was changed stays so until the end of this one, and what it begins with is what is looked for.
void Editor::keep_edit() {
  if (buffer_.text() == recalled_) return;
  // Until the entry is run, since history itself does not change.
  edited_[entry_] = buffer_.text();
  prefix_ = std::string(buffer_.before_cursor().substr(0, buffer_.before_cursor().find('\n')));
}

void Editor::recall(size_t index, bool to_end) {
  entry_ = index;
  auto edited = edited_.find(index);
  recalled_ = edited != edited_.end() ? edited->second : index < history_.size() ? history_[index] : std::string();
  // What the new entry begins with is what is looked for, when it comes back.
  if (index == history_.size()) prefix_ = recalled_.substr(0, recalled_.find('\n'));
  buffer_.reset(recalled_);
  // Going down, the cursor stays on the first line, where the next Down leaves the entry.
  if (!to_end) buffer_.set_cursor(std::min(recalled_.find('\n'), recalled_.size()));
}

/// Entries of other sessions since the last look; they shift the numbers of this session's.
void Editor::refresh_history() {
  const size_t before = history_.size();
  // Only from the new entry: numbers of others would shift below the cursor.
  if (entry_ != before) return;
  note(history_.refresh());
  if (history_.size() == before) return;
  edited_.clear();
  entry_ = history_.size();
}

void Editor::earlier() {
  refresh_history();
  keep_edit();
  if (auto found = history_.find_before(entry_, prefix_, true, buffer_.text())) recall(*found, true);
}

void Editor::later() {
  if (entry_ >= history_.size()) return;
  keep_edit();
  auto found = history_.find_after(entry_, prefix_, true, buffer_.text());
  recall(found.value_or(history_.size()), !found);
}

bool Editor::handle_in_search(const KeyEvent& event, std::optional<Action> action) {
  const size_t newest = history_.size();
  if (action == Action::kSearch) {
    search_again(search_->match.value_or(newest), false);
  } else if (action == Action::kSearchForward) {
    search_again(search_->match.value_or(newest), true);
  } else if (action == Action::kCancel || action == Action::kInterrupt) {
    end_search(event.key == Key{Special::kEscape});
  } else if (action == Action::kEnter) {
    end_search(true);
  } else if (action == Action::kEraseLeft) {
    search_->query.resize(search_->query.size() - last_cluster_length(search_->query));
    search_again(newest, false);
  } else if (!action && event.key.special == Special::kNone && !event.key.ctrl && !event.key.alt) {
    append_utf8(search_->query, event.key.character);
    // Looks at the same entry first, which may hold the longer text, too.
    search_again(search_->match ? *search_->match + 1 : newest, false);
  } else {
    // Any other key takes the entry that was found, and then does what it does.
    end_search(true);
    return false;
  }
  return true;
}

void Editor::search_again(size_t from, bool forward) {
  Search& s = *search_;
  if (s.query.empty()) {
    s.match.reset();
    buffer_.reset(s.text);
    buffer_.set_cursor(s.cursor);
    return;
  }
  // A further match shows something else; a longer query may keep the entry.
  const bool again = s.match && (forward || from == *s.match);
  const std::string but = again ? buffer_.text() : std::string();
  auto found =
      forward ? history_.find_after(from, s.query, false, but) : history_.find_before(from, s.query, false, but);
  if (!found && again) return;  // stays at the last one
  s.match = found;
  if (!found) return;
  const std::string& entry = history_[*found];
  buffer_.reset(entry);
  buffer_.set_cursor(entry.find(s.query));
}

void Editor::end_search(bool keep) {
  Search s = std::move(*search_);
  search_.reset();
  if (keep && s.match) {
    entry_ = *s.match;
    recalled_ = buffer_.text();
    prefix_.clear();
    buffer_.text_end();
  } else {
    buffer_.reset(s.text);
    buffer_.set_cursor(s.cursor);
  }
}

// --- drawing ---------------------------------------------------------------------------------------------------------

Frame Editor::frame(bool final) {
  const std::string& text = buffer_.text();
  // Highlighting parses the text, which most keys leave alone.
  if (language_.highlight && styled_text_ != text) {
    styles_ = language_.highlight(text);
    styled_text_ = text;
  }
  BlockView block{text, final ? text.size() : buffer_.cursor(), first_prompt_, next_prompt_, styles_};
  if (!final)
    if (const BracketPair pair = matching_brackets(text, buffer_.cursor()); pair.open != std::string_view::npos) {
      block.styles.push_back({pair.open, pair.open + 1, Style::kMatch});
      block.styles.push_back({pair.close, pair.close + 1, Style::kMatch});
    }
  Frame out = layout_block(block, size_.columns);
  if (final) return out;
  // Half of the screen for what stands below, at most.
  const int room = std::min(size_.rows - 1, std::max(size_.rows / 2, 1));
  if (search_ && room > 0) {
    Frame line;
    line.rows.emplace_back();
    const bool failed = !search_->query.empty() && !search_->match;
    append_text(line, failed ? "no match: " : "search: ", Style::kPrompt, size_.columns);
    append_text(line, search_->query, Style::kPlain, size_.columns);
    out.footer.push_back(std::move(line.rows[0]));
  } else if (menu_) {
    std::string about;
    if (const std::string* note = menu_->note())
      about = *note;
    else if (const std::string* chosen = menu_->selected(); chosen && language_.preview)
      about = language_.preview(*chosen);
    out.footer = menu_->rows(size_.columns, std::min(room, kMostMenuRows), about);
  }
  return out;
}

bool Editor::draw() { return terminal_.write(renderer_.draw(frame(false), size_)); }

bool Editor::finish(std::string_view after) { return terminal_.write(renderer_.finish(frame(true), size_, after)); }

}  // namespace kiln::editor
