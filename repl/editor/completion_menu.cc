#include "repl/editor/completion_menu.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/text_width.h"

namespace kiln::editor {

std::string common_prefix(const std::vector<std::string>& candidates) {
  if (candidates.empty()) return {};
  std::string common = candidates[0];
  for (const std::string& c : candidates)
    common.resize(
        static_cast<size_t>(std::mismatch(common.begin(), common.end(), c.begin(), c.end()).first - common.begin()));
  // Not into the middle of a character.
  while (!common.empty() && common.size() < candidates[0].size() &&
         (static_cast<unsigned char>(candidates[0][common.size()]) & 0xC0) == 0x80)
    common.pop_back();
  return common;
}

CompletionMenu::CompletionMenu(Completion completion) : completion_(std::move(completion)) {
  const std::string common = common_prefix(completion_.candidates);
  const size_t part = common.find_last_of("./");
  hidden_ = part == std::string::npos ? 0 : part + 1;
  // "a/" is a candidate of its own: nothing would be left of it.
  for (const std::string& c : completion_.candidates)
    if (c.size() == hidden_) hidden_ = 0;
  for (const std::string& c : completion_.candidates)
    width_ = std::max(width_, text_width(printable(std::string_view(c).substr(hidden_))));
}

const std::string* CompletionMenu::note() const {
  const std::string* chosen = selected();
  const auto it = chosen ? completion_.notes.find(*chosen) : completion_.notes.end();
  return it == completion_.notes.end() ? nullptr : &it->second;
}

void CompletionMenu::step(int by) {
  const int count = static_cast<int>(completion_.candidates.size());
  if (selected_ < 0)
    selected_ = by > 0 ? 0 : count - 1;
  else
    selected_ = ((selected_ + by) % count + count) % count;
  at_ = static_cast<size_t>(selected_);
}

std::vector<Row> CompletionMenu::rows(int columns, int most, const std::string& preview) {
  std::vector<Row> out;
  if (most < 2) return out;
  constexpr int kGap = 2;
  const int count = static_cast<int>(completion_.candidates.size());
  per_row_ = std::max(1, columns / (width_ + kGap));
  const int needed = (count + per_row_ - 1) / per_row_, shown = std::min(needed, most - 1);
  const int row = std::max(0, selected_) / per_row_;
  first_row_ = std::clamp(first_row_, std::max(0, row - shown + 1), row);
  for (int r = first_row_; r < first_row_ + shown; ++r) {
    Frame line;
    line.rows.emplace_back();
    for (int i = r * per_row_; i < std::min(count, (r + 1) * per_row_); ++i) {
      const std::string text =
          printable(std::string_view(completion_.candidates[static_cast<size_t>(i)]).substr(hidden_));
      append_text(line, text, i == selected_ ? Style::kSelected : Style::kPlain, columns);
      const int fill = (i % per_row_ + 1) * (width_ + kGap) - static_cast<int>(line.rows[0].size());
      if (line.rows.size() == 1 && i + 1 < std::min(count, (r + 1) * per_row_))
        append_text(line, std::string(static_cast<size_t>(std::max(0, fill)), ' '), Style::kPlain, columns);
    }
    out.push_back(std::move(line.rows[0]));
  }
  std::string last = preview;
  if (last.empty() && shown < needed) last = fmt::format("{} candidates; Tab goes through them", count);
  if (last.empty()) return out;
  Frame line;
  line.rows.emplace_back();
  append_text(line, printable(last.substr(0, last.find('\n'))), Style::kFaint, columns);
  out.push_back(std::move(line.rows[0]));
  return out;
}

}  // namespace kiln::editor
