// A table as text: as wide as it is, or in the width of a terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiler/report/table.h"
#include "support/text_width.h"

namespace kiln::report {

namespace {

constexpr int kGap = 2;
/// Texts are not wrapped to less than this while there is another way.
constexpr int kLeastWrapped = 24;
/// Texts are wrapped to a quarter of their length, but need no more than this.
constexpr int kEnoughWrapped = 40;
constexpr int kLeastTerminal = 20;
constexpr int kLeastLead = 10;
/// A table of more rows is not continued below: nobody would find the row again.
constexpr size_t kMostFolded = 25;

struct TextColumn {
  std::string head;
  Align align = Align::kRight;
  int rank = 0;
  std::vector<std::string> cells;
  int natural = 0, least = 0, word = 0;  // widths: on one line, wrapped, and of what cannot be wrapped
  int of_cells = 0;                      // on one line, without the head
  enum class Words { kWhole, kCut, kBroken } words = Words::kWhole;  // longer than its width: stay, end in an ellipsis…
};

int longest_word(std::string_view text) {
  int longest = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    longest = std::max(longest, text_width(text.substr(at, end - at)));
    at = end + 1;
  }
  return longest;
}

void measure(TextColumn& c) {
  c.natural = text_width(c.head);
  c.least = longest_word(c.head);
  for (const std::string& cell : c.cells) {
    const int width = text_width(cell);
    c.natural = std::max(c.natural, width);
    c.of_cells = std::max(c.of_cells, width);
    const int wrapped = std::min(width, std::clamp(width / 4, kLeastWrapped, kEnoughWrapped));
    const int unbroken = c.align == Align::kRight ? width : longest_word(cell);
    c.word = std::max(c.word, unbroken);
    c.least = std::max({c.least, unbroken, c.align == Align::kRight ? 0 : wrapped});
  }
  c.word = std::max(c.word, longest_word(c.head));
}

// --- units -----------------------------------------------------------------------------------------------------------

struct TimeUnit {
  double us;
  const char* name;
};
constexpr TimeUnit kTimeUnits[] = {{1, "us"}, {1e3, "ms"}, {1e6, "s"}};

std::string time_text(double value) {
  const double size = std::fabs(value);
  return fmt::format("{:.{}f}", value,
                     size == 0     ? 0
                     : size < 0.1  ? 4
                     : size < 1    ? 3
                     : size < 10   ? 2
                     : size < 1000 ? 1
                                   : 0);
}

/// Whether all numbers of a column are microseconds that are shown as such: bare, or each with its own unit.
bool is_time(const Table& table, size_t column, bool own_units) {
  for (const auto& row : table.rows()) {
    const Cell& cell = row[column];
    if (!cell.number) continue;
    if (own_units ? cell.text != human_time(*cell.number)
                  : cell.text.find_first_not_of("0123456789.-") != std::string::npos)
      return false;
  }
  return true;
}

/// One unit for a column of times, so that its numbers can be compared at a glance: the one in which the median is at
/// least 1.
void choose_time_unit(const Table& table, size_t column, TextColumn& out) {
  const Column& c = table.columns()[column];
  const bool own_units = c.unit.empty() && key_of(c).ends_with("_us");
  if ((!own_units && c.unit != "us") || !is_time(table, column, own_units)) return;
  std::vector<double> sizes;
  for (const auto& row : table.rows())
    if (row[column].number && *row[column].number != 0) sizes.push_back(std::fabs(*row[column].number));
  if (sizes.empty()) return;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2), sizes.end());
  const double median = sizes[sizes.size() / 2];
  const TimeUnit* unit = kTimeUnits;
  for (const TimeUnit& u : kTimeUnits)
    if (median >= u.us) unit = &u;
  if (!own_units && unit == kTimeUnits) return;  // as it is, with the digits that its maker chose
  out.head = c.name + " " + unit->name;
  for (size_t i = 0; i < out.cells.size(); ++i)
    if (const auto& number = table.rows()[i][column].number) out.cells[i] = time_text(*number / unit->us);
}

std::vector<TextColumn> text_columns(const Table& table, bool choose_units) {
  std::vector<TextColumn> out;
  for (size_t i = 0; i < table.columns().size(); ++i) {
    const Column& c = table.columns()[i];
    TextColumn& text = out.emplace_back();
    text.head = heading(c), text.align = c.align, text.rank = c.rank;
    for (const auto& row : table.rows()) text.cells.push_back(printable(row[i].text));
    if (choose_units) choose_time_unit(table, i, text);
    measure(text);
  }
  return out;
}

// --- lines -----------------------------------------------------------------------------------------------------------

std::string cut(std::string_view text, int width) { return std::string(beginning_of_width(text, width - 1)) + "…"; }

/// As many bytes of a word as a line has room for, at least one character.
size_t part_of_word(std::string_view word, int width) {
  return std::max(beginning_of_width(word, width).size(), cluster_length(word));
}

/// At blanks; a longer word gets a line of its own. All lines are as far in as the text, as of source code.
std::vector<std::string> wrap(std::string_view text, int width, TextColumn::Words words) {
  if (text_width(text) <= width) return {std::string(text)};
  if (const size_t blanks = std::min(text.find_first_not_of(' '), text.size()); blanks > 0) {
    const auto room = static_cast<size_t>(std::max(0, width - longest_word(text)));
    const std::string indent(std::min(blanks, room), ' ');
    std::vector<std::string> lines = wrap(text.substr(blanks), width - static_cast<int>(indent.size()), words);
    for (std::string& line : lines) line.insert(0, indent);
    return lines;
  }
  std::vector<std::string> lines(1);
  int used = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    std::string word(text.substr(at, end - at));
    at = end + 1;
    if (words == TextColumn::Words::kCut && text_width(word) > width) word = cut(word, width);
    while (words == TextColumn::Words::kBroken && text_width(word) > width) {
      const size_t part = part_of_word(word, width);
      if (used > 0) lines.emplace_back();
      lines.back() = word.substr(0, part);
      word.erase(0, part);
      used = width;
    }
    const int more = text_width(word);
    if (used > 0 && used + 1 + more > width) {
      lines.emplace_back();
      used = 0;
    }
    if (used > 0) lines.back() += ' ', ++used;
    lines.back() += word;
    used += more;
  }
  return lines;
}

std::string padded(std::string_view text, int width, Align align) {
  const std::string blanks(static_cast<size_t>(std::max(0, width - text_width(text))), ' ');
  return align == Align::kLeft ? std::string(text) + blanks : blanks + std::string(text);
}

/// Some columns side by side.
struct Block {
  std::vector<size_t> columns;
  std::vector<int> widths;
};

enum class Side { kTop, kBottom };  // where the lines of a cell stand that has fewer than others

void append_row(const std::vector<TextColumn>& all, const Block& block, Side side, const std::string& style,
                std::string& out, const auto& text_of) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  for (size_t i = 0; i < block.columns.size(); ++i) {
    const TextColumn& c = all[block.columns[i]];
    cells.push_back(wrap(text_of(c), block.widths[i], c.words));
    height = std::max(height, cells.back().size());
  }
  for (size_t l = 0; l < height; ++l) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t above = side == Side::kBottom ? height - cells[i].size() : 0;
      line += (i ? std::string(kGap, ' ') : "") +
              padded(l >= above && l - above < cells[i].size() ? cells[i][l - above] : "", block.widths[i],
                     all[block.columns[i]].align);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += style.empty() ? line + "\n" : style + line + "\033[0m\n";
  }
}

/// `first`: the block above, null for it itself. A row that has nothing to add to it is left out.
void append_block(const std::vector<TextColumn>& all, const Block& block, const Block* first, bool color, size_t rows,
                  std::string& out) {
  const auto says_something = [&](size_t row) {
    return !first || std::ranges::any_of(block.columns, [&](size_t c) {
      return !all[c].cells[row].empty() && std::ranges::find(first->columns, c) == first->columns.end();
    });
  };
  // Heads stand on what they are of.
  append_row(all, block, Side::kBottom, color ? "\033[1m" : "", out,
             [](const TextColumn& c) -> const std::string& { return c.head; });
  for (size_t r = 0; r < rows; ++r)
    if (says_something(r))
      append_row(all, block, Side::kTop, "", out,
                 [&](const TextColumn& c) -> const std::string& { return c.cells[r]; });
}

// --- what fits -------------------------------------------------------------------------------------------------------

/// Widths for these columns within `width`, the texts that are wrapped getting what the others leave; nullopt when that
/// is not possible. 0: as wide as they are. `tight`: texts may get a word per line.
std::optional<std::vector<int>> widths_of(const std::vector<TextColumn>& all, const std::vector<size_t>& columns,
                                          int width, bool tight = false) {
  std::vector<int> natural, widths;
  for (size_t c : columns) natural.push_back(all[c].natural), widths.push_back(tight ? all[c].word : all[c].least);
  auto total = [](const std::vector<int>& w) {
    int sum = kGap * (static_cast<int>(w.size()) - 1);
    for (int x : w) sum += x;
    return sum;
  };
  if (width == 0 || total(natural) <= width) return natural;
  int left = width - total(widths);
  if (left < 0) return std::nullopt;
  // A head that is one blank short is broken all the same, so as few of them as possible: those that need least first.
  std::vector<size_t> heads;
  for (size_t i = 0; i < widths.size(); ++i)
    if (all[columns[i]].of_cells <= widths[i] && widths[i] < natural[i]) heads.push_back(i);
  std::ranges::stable_sort(heads, {}, [&](size_t i) { return natural[i] - widths[i]; });
  for (size_t i : heads) {
    if (natural[i] - widths[i] > left) break;
    left -= natural[i] - std::exchange(widths[i], natural[i]);
  }
  auto is_wrapped = [&](size_t i) { return widths[i] < std::min(natural[i], all[columns[i]].of_cells); };
  while (left > 0) {
    int wanting = 0;
    for (size_t i = 0; i < widths.size(); ++i) wanting += is_wrapped(i);
    if (wanting == 0) break;
    const int share = std::max(1, left / wanting);
    for (size_t i = 0; i < widths.size() && left > 0; ++i) {
      if (!is_wrapped(i)) continue;
      const int more = std::min({share, natural[i] - widths[i], left});
      widths[i] += more;
      left -= more;
    }
  }
  return widths;
}

/// The columns in one block, or where they do not fit in several, each headed by the first column: what a row is of.
std::vector<Block> blocks_of(std::vector<TextColumn>& all, int width, size_t rows) {
  std::vector<size_t> columns(all.size());
  for (size_t i = 0; i < all.size(); ++i) columns[i] = i;
  // That few columns are rather wrapped than separated, and those of long tables than left out.
  constexpr size_t kFew = 3;
  if (auto widths = widths_of(all, columns, width)) return {{columns, *std::move(widths)}};
  if (columns.size() <= kFew || rows > kMostFolded)
    if (auto widths = widths_of(all, columns, width, true)) return {{columns, *std::move(widths)}};
  if (rows > kMostFolded) {
    std::vector<TextColumn> broken = all;
    for (size_t i = 1; i < broken.size(); ++i)
      if (broken[i].align == Align::kLeft && broken[i].word > kLeastWrapped)
        broken[i].word = kLeastWrapped, broken[i].words = TextColumn::Words::kBroken;
    if (auto widths = widths_of(broken, columns, width, true)) {
      all = std::move(broken);
      return {{columns, *std::move(widths)}};
    }
  }
  // A mark without a heading does not tell a row.
  const size_t leads = all[0].head.empty() && all.size() > 2 ? 2 : 1;
  TextColumn& lead = all[leads - 1];
  if (const int most = std::max(width / 2, kLeastLead); lead.least > most)
    lead.least = lead.word = most, lead.natural = std::min(lead.natural, most), lead.words = TextColumn::Words::kCut;
  std::vector<size_t> rest(columns.begin() + static_cast<ptrdiff_t>(leads), columns.end());
  std::stable_sort(rest.begin(), rest.end(), [&](size_t a, size_t b) { return all[a].rank > all[b].rank; });
  std::vector<Block> blocks;
  while (!rest.empty()) {
    std::vector<size_t> chosen(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(leads)), later;
    for (size_t c : rest) {
      chosen.push_back(c);
      if (chosen.size() == leads + 1 || widths_of(all, chosen, width)) continue;
      chosen.pop_back();
      later.push_back(c);
    }
    std::sort(chosen.begin(), chosen.end());
    Block block{chosen, {}};
    auto widths = widths_of(all, chosen, width);
    if (!widths) widths = widths_of(all, chosen, width, true);
    if (widths)
      block.widths = *std::move(widths);
    else  // one column that is wider than the terminal
      for (size_t c : chosen) block.widths.push_back(all[c].word);
    blocks.push_back(std::move(block));
    rest = std::move(later);
  }
  return blocks;
}

std::string left_out(const std::vector<TextColumn>& all, const std::vector<Block>& blocks, const TextStyle& style) {
  std::vector<bool> is_shown(all.size());
  for (size_t c : blocks[0].columns) is_shown[c] = true;
  std::vector<std::string> names;
  for (size_t i = 0; i < all.size(); ++i)
    if (!is_shown[i]) names.push_back(all[i].head);
  return fmt::format("left out at {} columns: {}{}", style.width, fmt::join(names, ", "),
                     style.whole.empty() ? "" : fmt::format("; {} has all", style.whole));
}

}  // namespace

std::string to_text(const Table& whole, const TextStyle& style) {
  const Table table = whole.printed();
  const int width = style.width > 0 ? std::max(style.width, kLeastTerminal) : 0;
  std::vector<TextColumn> columns = text_columns(table, width > 0);
  std::vector<Block> blocks = blocks_of(columns, width, table.rows().size());
  std::vector<std::string> notes = table.notes();
  if (blocks.size() > 1 && table.rows().size() > kMostFolded) {
    notes.push_back(left_out(columns, blocks, style));
    blocks.resize(1);
  }
  std::string out;
  if (!table.title().empty()) out += table.title() + "\n";
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (b > 0) out += "\n";
    append_block(columns, blocks[b], b > 0 ? blocks.data() : nullptr, style.color, table.rows().size(), out);
  }
  for (const std::string& note : notes)
    for (const std::string& line :
         width > 0 ? wrap(note, width, TextColumn::Words::kWhole) : std::vector<std::string>{note})
      out += style.color ? "\033[2m" + line + "\033[0m\n" : line + "\n";
  return out;
}

}  // namespace kiln::report
