#include "support/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/notebook.h"

namespace kiln {

std::shared_ptr<const SourceText> SourceText::make(std::string file_name, std::string text) {
  return std::shared_ptr<const SourceText>(new SourceText(std::move(file_name), std::move(text)));
}

SourceText::SourceText(std::string file_name, std::string text)
    : file_name_(std::move(file_name)), text_(std::move(text)) {
  starts_.push_back(0);
  for (uint32_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') starts_.push_back(i + 1);
}

int SourceText::line_of(uint32_t offset) const {
  return static_cast<int>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin());
}

int SourceText::column_of(uint32_t offset) const { return static_cast<int>(offset - starts_[line_of(offset) - 1]) + 1; }

std::string_view SourceText::line(int number) const {
  if (number < 1 || number > num_lines()) return {};
  uint32_t begin = starts_[number - 1];
  size_t end = number < num_lines() ? starts_[number] : text_.size();
  std::string_view s = std::string_view(text_).substr(begin, end - begin);
  while (!s.empty() && (s.back() == '\n' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

SourceRange cover(SourceRange a, SourceRange b) {
  if (!a.text) return b;
  if (!b.text) return a;
  return {a.text, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

namespace {

/// Of a line in a notebook's text: which cell it is in, and which line of it.
void count_from_cell(Place& p, const SourceText& text) {
  if (!p.file.ends_with(".ipynb")) return;
  for (int at = p.line - 1; at > 0; --at) {
    const std::string_view line = text.line(at);
    if (!line.starts_with(kCellMark)) continue;
    p.file += fmt::format(", cell {}", line.substr(kCellMark.size()));
    p.line -= at;
    return;
  }
}

}  // namespace

Place place_of(SourceRange range) {
  Place p;
  if (!range.text) return p;
  p.file = range.text->file_name();
  p.line = range.text->line_of(range.begin);
  p.column = range.text->column_of(range.begin);
  p.text = range.text->line(p.line);
  int last = static_cast<int>(p.text.size()) + 1;
  p.end_column =
      std::clamp(p.column + static_cast<int>(range.end - range.begin), p.column + 1, std::max(last, p.column + 1));
  count_from_cell(p, *range.text);
  return p;
}

}  // namespace kiln
