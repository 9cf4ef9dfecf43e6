#include "repl/editor/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/text_width.h"

namespace kiln::editor {

namespace {

struct StyleCode {
  std::string_view color, plain;  // with colours and without
};

StyleCode code_of(Style style) {
  switch (style) {
    case Style::kPlain:
      return {"", ""};
    case Style::kPrompt:
      return {"32", ""};
    case Style::kKeyword:
      return {"35", ""};
    case Style::kDecorator:
      return {"36", ""};
    case Style::kString:
      return {"33", ""};
    case Style::kNumber:
      return {"34", ""};
    case Style::kComment:
      return {"90", ""};
    case Style::kCommand:
      return {"1;36", "1"};
    case Style::kMatch:
      return {"1;4;32", "1;4"};
    case Style::kControl:
      return {"31", "7"};
    case Style::kSelected:
      return {"7", "7"};
    case Style::kFaint:
      return {"90", ""};
  }
  return {};
}

void put_cell(Frame& frame, std::string_view text, int width, Style style, int columns) {
  if (frame.rows.empty()) frame.rows.emplace_back();
  if (static_cast<int>(frame.rows.back().size()) + width > columns && !frame.rows.back().empty())
    frame.rows.emplace_back();
  if (width > columns) {  // a wide character on a terminal of one column
    frame.rows.back().push_back({"?", style});
    return;
  }
  frame.rows.back().push_back({std::string(text), style});
  if (width == 2) frame.rows.back().push_back({"", style});
}

std::string shown_control(char32_t c) {
  if (c < 0x20) return {'^', static_cast<char>('@' + c)};
  if (c == 0x7F) return "^?";
  return printable([&] {
    std::string s;
    append_utf8(s, c);
    return s;
  }());
}

/// Appends one character with its marks; `column` is that of its line's text.
void append_cluster(Frame& frame, std::string_view cluster, int& column, Style style, int columns) {
  const Character c = first_character(cluster);
  constexpr int kTabStop = 8;
  if (c.code == '\t') {
    const int blanks = kTabStop - column % kTabStop;
    for (int i = 0; i < blanks; ++i) put_cell(frame, " ", 1, style, columns);
    column += blanks;
    return;
  }
  if (is_control(c.code)) {
    for (char part : shown_control(c.code)) {
      put_cell(frame, std::string_view(&part, 1), 1, Style::kControl, columns);
      ++column;
    }
    return;
  }
  std::string text;
  if (c.code == 0xFFFD)
    text = "\uFFFD";
  else if (character_width(c.code) == 0)
    text = "\u25CC" + std::string(cluster);  // a mark with nothing to stand on gets a dotted circle
  else
    text = cluster;
  const int width = std::max(1, character_width(c.code));
  put_cell(frame, text, width, style, columns);
  column += width;
}

}  // namespace

void append_text(Frame& frame, std::string_view text, Style style, int columns) {
  int column = 0;
  while (!text.empty()) {
    const size_t length = cluster_length(text);
    append_cluster(frame, text.substr(0, length), column, style, columns);
    text.remove_prefix(length);
  }
}

Frame layout_block(const BlockView& block, int columns) {
  Frame frame;
  frame.rows.emplace_back();
  append_text(frame, block.first_prompt, Style::kPrompt, columns);
  int column = 0;
  auto place_cursor = [&] {
    if (static_cast<int>(frame.rows.back().size()) >= columns) frame.rows.emplace_back();
    frame.cursor_row = static_cast<int>(frame.rows.size()) - 1;
    frame.cursor_column = static_cast<int>(frame.rows.back().size());
  };
  std::vector<Style> styles(block.text.size(), Style::kPlain);
  for (const Styled& s : block.styles)
    for (size_t i = s.begin; i < std::min(s.end, styles.size()); ++i) styles[i] = s.style;
  for (size_t at = 0; at < block.text.size();) {
    const size_t length = cluster_length(block.text.substr(at));
    if (at == block.cursor) {
      // Before a wide character that does not fit, the cursor goes with it to the next row.
      const int width = std::max(1, character_width(first_character(block.text.substr(at)).code));
      if (block.text[at] != '\n' && static_cast<int>(frame.rows.back().size()) + std::min(width, columns) > columns)
        frame.rows.emplace_back();
      place_cursor();
    }
    if (block.text[at] == '\n') {
      frame.rows.emplace_back();
      append_text(frame, block.next_prompt, Style::kPrompt, columns);
      column = 0;
    } else {
      append_cluster(frame, block.text.substr(at, length), column, styles[at], columns);
    }
    at += length;
  }
  if (block.cursor >= block.text.size()) place_cursor();
  return frame;
}

void Renderer::move_to(std::string& out, int row, int column) {
  // Relative moves: where the block is on the screen is not known. From the left edge, as the cursor may hang over the
  // right one.
  out += '\r';
  if (row < shown_.cursor_row) out += fmt::format("\033[{}A", shown_.cursor_row - row);
  if (row > shown_.cursor_row) out += fmt::format("\033[{}B", row - shown_.cursor_row);
  if (column > 0) out += fmt::format("\033[{}C", column);
  shown_.cursor_row = row;
  shown_.cursor_column = column;
}

void Renderer::write_cells(std::string& out, const Row& row, size_t from) const {
  std::string_view current;
  for (size_t i = from; i < row.size(); ++i) {
    const StyleCode codes = code_of(row[i].style);
    const std::string_view code = color_ ? codes.color : codes.plain;
    if (code != current) out += code.empty() ? "\033[0m" : fmt::format("\033[0;{}m", code);
    current = code;
    out += row[i].text;
  }
  if (!current.empty()) out += "\033[0m";
}

Frame Renderer::visible(const Frame& frame, int rows) {
  const int count = static_cast<int>(frame.rows.size());
  rows = std::max(1, rows - static_cast<int>(frame.footer.size()));
  Frame part = frame;
  if (count <= rows) {
    first_row_ = 0;
  } else {
    // As little movement as shows the cursor.
    first_row_ = std::clamp(first_row_, frame.cursor_row - rows + 1, frame.cursor_row);
    first_row_ = std::clamp(first_row_, 0, count - rows);
    part.rows.assign(frame.rows.begin() + first_row_, frame.rows.begin() + first_row_ + rows);
    part.cursor_row -= first_row_;
  }
  part.rows.insert(part.rows.end(), part.footer.begin(), part.footer.end());
  return part;
}

std::string Renderer::draw(const Frame& whole, TerminalSize size) {
  const Frame frame = visible(whole, std::max(1, size.rows));
  std::string out;
  if (!is_drawn_) {
    shown_ = {};
    shown_.rows.emplace_back();
    is_drawn_ = true;
    out += "\r\033[J";
  }
  const size_t old_rows = shown_.rows.size();
  for (size_t r = 0; r < frame.rows.size(); ++r) {
    if (r >= shown_.rows.size()) {  // a new row at the bottom, which may scroll the screen
      move_to(out, static_cast<int>(r) - 1, 0);
      out += "\r\n";
      shown_.cursor_row = static_cast<int>(r);
      shown_.cursor_column = 0;
      shown_.rows.emplace_back();
    }
    const Row &now = frame.rows[r], &before = shown_.rows[r];
    size_t same = 0;
    while (same < now.size() && same < before.size() && now[same] == before[same]) ++same;
    if (same == now.size() && same == before.size()) continue;
    while (same > 0 && same < now.size() && now[same].text.empty()) --same;  // not into the middle of a wide one
    while (same > 0 && same < before.size() && before[same].text.empty()) --same;
    move_to(out, static_cast<int>(r), static_cast<int>(same));
    if (before.size() > now.size()) out += "\033[K";
    write_cells(out, now, same);
  }
  if (old_rows > frame.rows.size()) {
    move_to(out, static_cast<int>(frame.rows.size()), 0);
    out += "\033[J";
  }
  shown_.rows = frame.rows;
  move_to(out, frame.cursor_row, frame.cursor_column);
  return out;
}

std::string Renderer::finish(const Frame& frame, TerminalSize size, std::string_view after) {
  std::string out;
  if (static_cast<int>(frame.rows.size()) > size.rows) {
    // It was seen in part: all of it goes by once, so that it can be read when scrolling back.
    move_to(out, 0, 0);
    out += "\033[J";
    for (size_t r = 0; r < frame.rows.size(); ++r) {
      if (r) out += "\r\n";
      write_cells(out, frame.rows[r], 0);
    }
  } else {
    Frame last = frame;
    last.footer.clear();
    out += draw(last, size);
  }
  out += after;
  out += "\r\n";
  first_row_ = 0;
  forget();
  return out;
}

std::string Renderer::clear_screen() {
  forget();
  return "\033[H\033[2J";
}

std::string Renderer::erase(TerminalSize now) {
  if (!is_drawn_) return {};
  // Most terminals fold rows that no longer fit; the cursor is then further from the top of the block.
  int above = shown_.cursor_column / std::max(1, now.columns);
  for (int r = 0; r < shown_.cursor_row; ++r)
    above +=
        std::max(1, (static_cast<int>(shown_.rows[static_cast<size_t>(r)].size()) + now.columns - 1) / now.columns);
  std::string out = "\r";
  if (above > 0) out += fmt::format("\033[{}A", above);
  out += "\033[J";
  forget();
  return out;
}

}  // namespace kiln::editor
