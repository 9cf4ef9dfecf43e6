#include "repl/editor/buffer.h"

#include <algorithm>
#include <utility>

#include "support/text_width.h"

namespace kiln::editor {

namespace {

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         // All of UTF-8 beyond ASCII counts as letters, whole characters being what the cursor moves by.
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

std::string_view Buffer::current_line() const {
  const size_t begin = line_start_of(cursor_);
  return std::string_view(text_).substr(begin, line_end_of(cursor_) - begin);
}

void Buffer::reset(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
  last_ = Step::kOther;
  undo_.clear(), redo_.clear();
  undo_bytes_ = 0;
}

void Buffer::replace_all(std::string text) {
  remember(Step::kOther);
  text_ = std::move(text);
  cursor_ = text_.size();
}

void Buffer::set_cursor(size_t offset) {
  last_ = Step::kOther;
  move(std::min(offset, text_.size()));
}

void Buffer::insert(std::string_view text) {
  remember(Step::kOther);
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void Buffer::type(std::string_view character) {
  // A blank begins a new step, so that undo goes word by word.
  remember(Step::kTyped, character != " ");
  text_.insert(cursor_, character);
  cursor_ += character.size();
}

void Buffer::replace_before(size_t bytes, std::string_view text) {
  bytes = std::min(bytes, cursor_);
  remember(Step::kOther);
  text_.replace(cursor_ - bytes, bytes, text);
  cursor_ += text.size() - bytes;
}

void Buffer::move(size_t offset) {
  cursor_ = offset;
  last_ = Step::kOther;
}

void Buffer::left() { move(cursor_ - last_cluster_length(before_cursor())); }
void Buffer::right() { move(cursor_ + cluster_length(after_cursor())); }
void Buffer::word_left() { move(word_start(cursor_)); }
void Buffer::word_right() { move(word_end(cursor_)); }
void Buffer::line_start() { move(line_start_of(cursor_)); }
void Buffer::line_end() { move(line_end_of(cursor_)); }

void Buffer::smart_home() {
  const size_t start = line_start_of(cursor_);
  const size_t content = std::min(text_.find_first_not_of(" \t", start), line_end_of(cursor_));
  // At the first character the line's own start, else the first character.
  move(cursor_ == content ? start : content);
}

size_t Buffer::word_start(size_t from) const {
  while (from > 0 && !is_word(text_[from - 1])) --from;
  while (from > 0 && is_word(text_[from - 1])) --from;
  return from;
}

size_t Buffer::word_end(size_t from) const {
  while (from < text_.size() && !is_word(text_[from])) ++from;
  while (from < text_.size() && is_word(text_[from])) ++from;
  return from;
}

size_t Buffer::line_start_of(size_t offset) const {
  const size_t end = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
  return end == std::string::npos ? 0 : end + 1;
}

size_t Buffer::line_end_of(size_t offset) const { return std::min(text_.find('\n', offset), text_.size()); }

void Buffer::up() { vertical(true); }
void Buffer::down() { vertical(false); }

void Buffer::vertical(bool up) {
  const size_t start = line_start_of(cursor_), end = line_end_of(cursor_);
  // A column to come back to: shorter lines in between do not change it.
  if (last_ != Step::kVertical) column_ = text_width(std::string_view(text_).substr(start, cursor_ - start));
  if (up ? start == 0 : end == text_.size()) return;
  size_t at = up ? line_start_of(start - 1) : end + 1;
  const size_t stop = line_end_of(at);
  for (int width = 0; at < stop;) {
    const size_t length = cluster_length(std::string_view(text_).substr(at));
    width += text_width(std::string_view(text_).substr(at, length));
    if (width > column_) break;
    at += length;
  }
  cursor_ = at;
  last_ = Step::kVertical;
}

void Buffer::erase_left() {
  if (cursor_ == 0) return;
  const size_t start = line_start_of(cursor_);
  const std::string_view lead = std::string_view(text_).substr(start, cursor_ - start);
  size_t length = last_cluster_length(before_cursor());
  // In the indentation one step of it, so that a block is left with one key.
  if (!lead.empty() && lead.find_first_not_of(' ') == std::string_view::npos) length = (lead.size() - 1) % kIndent + 1;
  remember(Step::kOther);
  erase(cursor_ - length, cursor_);
}

void Buffer::erase_right() {
  if (cursor_ == text_.size()) return;
  remember(Step::kOther);
  erase(cursor_, cursor_ + cluster_length(after_cursor()));
}

void Buffer::kill_line_end() {
  const size_t end = line_end_of(cursor_);
  // At the end of a line the line break goes, as in readline.
  kill(cursor_, end == cursor_ ? std::min(end + 1, text_.size()) : end, false);
}

void Buffer::kill_line_start() {
  const size_t start = line_start_of(cursor_);
  kill(start == cursor_ && start > 0 ? start - 1 : start, cursor_, true);
}

void Buffer::kill_word_left() { kill(word_start(cursor_), cursor_, true); }
void Buffer::kill_word_right() { kill(cursor_, word_end(cursor_), false); }

void Buffer::kill_blank_word_left() {
  size_t begin = cursor_;
  while (begin > 0 && is_space(text_[begin - 1])) --begin;
  while (begin > 0 && !is_space(text_[begin - 1])) --begin;
  kill(begin, cursor_, true);
}

void Buffer::kill(size_t begin, size_t end, bool in_front) {
  if (begin == end) return;
  // Kills in a row are one text, in the order of the line.
  const bool joins = last_ == Step::kKilled && !kills_.empty();
  const std::string cut = text_.substr(begin, end - begin);
  remember(Step::kKilled);
  if (!joins)
    kills_.push_front(cut);
  else
    kills_.front() = in_front ? cut + kills_.front() : kills_.front() + cut;
  // The oldest of the ring goes.
  if (kills_.size() > kMostKills) kills_.pop_back();
  erase(begin, end);
}

void Buffer::yank() {
  if (kills_.empty()) return;
  remember(Step::kYanked);
  yanked_ = 0;
  yank_begin_ = cursor_;
  text_.insert(cursor_, kills_[0]);
  cursor_ += kills_[0].size();
}

void Buffer::yank_previous() {
  if (last_ != Step::kYanked) return;
  remember(Step::kYanked);
  yanked_ = (yanked_ + 1) % kills_.size();
  text_.replace(yank_begin_, cursor_ - yank_begin_, kills_[yanked_]);
  cursor_ = yank_begin_ + kills_[yanked_].size();
}

void Buffer::transpose() {
  const size_t start = line_start_of(cursor_);
  size_t at = cursor_;
  // At the end of a line the last two characters change places, as in readline.
  if (at == line_end_of(cursor_)) at -= last_cluster_length(std::string_view(text_).substr(start, at - start));
  if (at <= start) return;
  const size_t one = last_cluster_length(std::string_view(text_).substr(start, at - start));
  const size_t two = cluster_length(std::string_view(text_).substr(at));
  remember(Step::kOther);
  const std::string first = text_.substr(at - one, one), second = text_.substr(at, two);
  text_.replace(at - one, one + two, second + first);
  cursor_ = at + two;
}

template <class F>
void Buffer::change_word(F&& change) {
  const size_t end = word_end(cursor_);
  if (end == cursor_) return;
  remember(Step::kOther);
  bool first = true;
  for (size_t i = cursor_; i < end; ++i)
    if (is_word(text_[i])) text_[i] = change(text_[i], first), first = false;
  cursor_ = end;
}

namespace {
// ASCII alone: other letters may change their length.
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
}  // namespace

void Buffer::upper_word() {
  change_word([](char c, bool) { return upper(c); });
}
void Buffer::lower_word() {
  change_word([](char c, bool) { return lower(c); });
}
void Buffer::capitalize_word() {
  change_word([](char c, bool first) { return first ? upper(c) : lower(c); });
}

void Buffer::indent_line(bool in) {
  const size_t start = line_start_of(cursor_);
  const size_t content = std::min(text_.find_first_not_of(' ', start), text_.size());
  const size_t blanks = content - start;
  const size_t wanted = in ? blanks / kIndent * kIndent + kIndent : blanks == 0 ? 0 : (blanks - 1) / kIndent * kIndent;
  if (wanted == blanks) return;
  remember(Step::kOther);
  // The cursor stays at its character, or at the first one when it stood within the blanks.
  const size_t from_end = cursor_ > content ? cursor_ - content : 0;
  text_.replace(start, blanks, std::string(wanted, ' '));
  cursor_ = start + wanted + from_end;
}

void Buffer::remember(Step step, bool joins) {
  const bool continues = joins && last_ == step && !undo_.empty();
  last_ = step;
  redo_.clear();
  if (continues) return;
  undo_.push_back({text_, cursor_});
  undo_bytes_ += text_.size();
  // Whole texts are kept for each step; an entry of a megabyte would else take them all.
  while (undo_.size() > kMostUndo || (undo_bytes_ > kMostUndoBytes && undo_.size() > 1)) {
    undo_bytes_ -= undo_.front().text.size();
    undo_.pop_front();
  }
}

void Buffer::erase(size_t begin, size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

bool Buffer::undo() {
  if (undo_.empty()) return false;
  redo_.push_back({std::exchange(text_, std::move(undo_.back().text)), std::exchange(cursor_, undo_.back().cursor)});
  undo_.pop_back();
  undo_bytes_ -= text_.size();
  last_ = Step::kOther;
  return true;
}

bool Buffer::redo() {
  if (redo_.empty()) return false;
  undo_bytes_ += text_.size();
  undo_.push_back({std::exchange(text_, std::move(redo_.back().text)), std::exchange(cursor_, redo_.back().cursor)});
  redo_.pop_back();
  last_ = Step::kOther;
  return true;
}

}  // namespace kiln::editor
