// A small terminal: what a program writes, as the text that a user would see.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "support/text_width.h"

namespace kiln::editor {

class FakeScreen {
 public:
  FakeScreen(int rows, int columns) : rows_(rows), columns_(columns), cells_(static_cast<size_t>(rows), blank_row()) {}

  void write(std::string_view bytes) {
    pending_ += bytes;
    size_t at = 0;
    while (at < pending_.size()) {
      const size_t used = step(std::string_view(pending_).substr(at));
      if (used == 0) break;
      at += used;
    }
    pending_.erase(0, at);
  }

  /// Rows fold or are filled up, as in most terminals; the cursor stays with its text.
  void resize(int rows, int columns) {
    std::vector<std::vector<std::string>> folded;
    int row = 0, column = 0;
    for (int r = 0; r < rows_; ++r) {
      std::vector<std::string> cells = cells_[static_cast<size_t>(r)];
      while (!cells.empty() && cells.back() == " ") cells.pop_back();
      if (r == row_) cells.resize(std::max(cells.size(), static_cast<size_t>(column_)), " ");
      for (size_t from = 0; from == 0 || from < cells.size(); from += static_cast<size_t>(columns)) {
        if (r == row_ && column_ >= static_cast<int>(from)) {
          row = static_cast<int>(folded.size());
          column = std::min(column_ - static_cast<int>(from), columns - 1);
        }
        folded.emplace_back(
            cells.begin() + static_cast<long>(std::min(from, cells.size())),
            cells.begin() + static_cast<long>(std::min(cells.size(), from + static_cast<size_t>(columns))));
        folded.back().resize(static_cast<size_t>(columns), " ");
      }
    }
    rows_ = rows, columns_ = columns;
    while (!folded.empty() && static_cast<int>(folded.size()) > row + 1 &&
           std::all_of(folded.back().begin(), folded.back().end(), [](auto& c) { return c == " "; }))
      folded.pop_back();
    while (static_cast<int>(folded.size()) > rows_) folded.erase(folded.begin()), --row;
    folded.resize(static_cast<size_t>(rows_), blank_row());
    cells_ = folded;
    row_ = std::max(0, row), column_ = column;
    hangs_ = false;
  }

  /// The rows without blanks at their ends, and without blank rows at the end.
  std::string text() const {
    std::string out;
    for (const auto& row : cells_) {
      for (const std::string& cell : row) out += cell;
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += '\n';
    }
    while (out.ends_with("\n\n")) out.pop_back();
    return out == "\n" ? "" : out;
  }
  int row() const { return row_; }
  int column() const { return column_; }
  bool bracketed_paste() const { return bracketed_paste_; }
  /// What was written and is nothing that this terminal knows.
  const std::string& unknown() const { return unknown_; }

 private:
  std::vector<std::string> blank_row() const { return std::vector<std::string>(static_cast<size_t>(columns_), " "); }
  std::vector<std::string>& line() { return cells_[static_cast<size_t>(row_)]; }

  void line_feed() {
    if (++row_ < rows_) return;
    row_ = rows_ - 1;
    cells_.erase(cells_.begin());
    cells_.push_back(blank_row());
  }

  size_t step(std::string_view bytes) {
    if (bytes[0] == '\r') return column_ = 0, hangs_ = false, 1;
    if (bytes[0] == '\n') return line_feed(), hangs_ = false, 1;
    if (bytes[0] == '\033') return escape(bytes);
    if (static_cast<unsigned char>(bytes[0]) < 0x20) return unknown_ += bytes[0], 1;
    const size_t length = cluster_length(bytes);
    if (length == bytes.size() && static_cast<unsigned char>(bytes[0]) >= 0x80 && first_character(bytes).bytes == 1)
      return 0;
    const int width = text_width(bytes.substr(0, length));
    if (width == 0) {  // a mark that came apart from its character
      if (column_ > 0) line()[static_cast<size_t>(column_ - (hangs_ ? 0 : 1))] += bytes.substr(0, length);
      return length;
    }
    if (hangs_ || column_ + width > columns_) {
      column_ = 0;
      line_feed();
    }
    hangs_ = false;
    line()[static_cast<size_t>(column_)] = bytes.substr(0, length);
    if (width == 2 && column_ + 1 < columns_) line()[static_cast<size_t>(column_) + 1] = "";
    column_ += width;
    if (column_ >= columns_) column_ = columns_ - 1, hangs_ = true;
    return length;
  }

  size_t escape(std::string_view bytes) {
    if (bytes.size() < 2) return 0;
    if (bytes[1] != '[') return unknown_ += bytes.substr(0, 2), 2;
    size_t end = 2;
    while (end < bytes.size() && (bytes[end] < 0x40 || bytes[end] > 0x7E)) ++end;
    if (end == bytes.size()) return 0;
    const std::string parameters(bytes.substr(2, end - 2));
    const int n = std::max(1, std::atoi(parameters.c_str()));
    hangs_ = hangs_ && bytes[end] == 'm';
    auto clear = [](auto begin, auto stop) { std::fill(begin, stop, " "); };
    switch (bytes[end]) {
      case 'A':
        row_ = std::max(0, row_ - n);
        break;
      case 'B':
        row_ = std::min(rows_ - 1, row_ + n);
        break;
      case 'C':
        column_ = std::min(columns_ - 1, column_ + n);
        break;
      case 'H':
        row_ = column_ = 0;
        break;
      case 'J':
        if (parameters == "2") {
          for (auto& row : cells_) clear(row.begin(), row.end());
          break;
        }
        for (int r = row_ + 1; r < rows_; ++r)
          clear(cells_[static_cast<size_t>(r)].begin(), cells_[static_cast<size_t>(r)].end());
        [[fallthrough]];
      case 'K':
        clear(line().begin() + column_, line().end());
        break;
      case 'm':
        break;
      case 'h':
      case 'l':
        if (parameters == "?2004") bracketed_paste_ = bytes[end] == 'h';
        break;
      default:
        unknown_ += bytes.substr(0, end + 1);
    }
    return end + 1;
  }

  int rows_, columns_;
  std::vector<std::vector<std::string>> cells_;
  int row_ = 0, column_ = 0;
  bool hangs_ = false;  // behind the last column, before it is known whether the line goes on
  bool bracketed_paste_ = false;
  std::string pending_, unknown_;
};

}  // namespace kiln::editor
