#include "repl/views/text_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <unordered_map>

#include "support/text_width.h"

namespace kiln::repl {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Numbers in the place of keys, which are compared often.
class Numbering {
 public:
  int of(std::string key) {
    return numbers_.try_emplace(std::move(key), static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, int> numbers_;
};

constexpr int kMostEdits = 1000;  // the trace takes the square of this

/// Pairs of lines that are the same, in order (E. Myers, An O(ND) Difference Algorithm and Its Variations, 1986). None
/// beyond kMostEdits.
std::vector<std::pair<int, int>> common_lines(std::span<const int> a, std::span<const int> b) {
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size()), most = std::min(n + m, kMostEdits);
  std::vector<int> furthest(static_cast<size_t>(2 * most + 3), 0);
  auto at = [&](std::vector<int>& v, int k) -> int& { return v[static_cast<size_t>(k + most + 1)]; };
  std::vector<std::vector<int>> trace;
  int edits = 0;
  bool reached = false;
  for (; edits <= most && !reached; ++edits) {
    trace.push_back(furthest);
    for (int k = -edits; k <= edits; k += 2) {
      int x = k == -edits || (k != edits && at(furthest, k - 1) < at(furthest, k + 1)) ? at(furthest, k + 1)
                                                                                       : at(furthest, k - 1) + 1;
      while (x < n && x - k < m && x - k >= 0 && a[static_cast<size_t>(x)] == b[static_cast<size_t>(x - k)]) ++x;
      at(furthest, k) = x;
      if (x >= n && x - k >= m) {
        reached = true;
        break;
      }
    }
  }
  std::vector<std::pair<int, int>> out;
  if (!reached) return out;
  int x = n, y = m;
  for (int d = edits - 1; d >= 0; --d) {
    std::vector<int>& v = trace[static_cast<size_t>(d)];
    const int k = x - y;
    const int from = k == -d || (k != d && at(v, k - 1) < at(v, k + 1)) ? k + 1 : k - 1;
    const int from_x = d == 0 ? 0 : at(v, from), from_y = d == 0 ? 0 : from_x - from;
    while (x > from_x && y > from_y && x > 0 && y > 0 && a[static_cast<size_t>(x - 1)] == b[static_cast<size_t>(y - 1)])
      --x, --y, out.emplace_back(x, y);
    x = from_x, y = from_y;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// A line cut to a number of columns, and filled up to it.
std::string fitted(std::string_view line, int columns) {
  std::string text;
  for (char c : line) c == '\t' ? text += "    " : text += c;
  text = printable(text);
  if (text_width(text) > columns) {
    while (!text.empty() && text_width(text) > columns - 1) {
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
      if (!text.empty()) text.pop_back();
    }
    text += "…";
  }
  return text + std::string(static_cast<size_t>(std::max(0, columns - text_width(text))), ' ');
}

}  // namespace

TextDiff text_diff(std::string_view left, std::string_view right,
                   const std::function<std::string(std::string_view)>& key) {
  TextDiff d;
  d.left = lines_of(left), d.right = lines_of(right);
  Numbering numbering;
  std::vector<int> a, b;
  for (std::string_view line : d.left) a.push_back(numbering.of(key(line)));
  for (std::string_view line : d.right) b.push_back(numbering.of(key(line)));
  // What both begin and end with costs nothing.
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const std::span<const int> middle_a(a.data() + head, a.size() - head - tail),
      middle_b(b.data() + head, b.size() - head - tail);
  int x = 0, y = 0;
  auto change_to = [&](int to_x, int to_y) {
    for (; x < to_x || y < to_y; ++d.changed) d.rows.push_back({x < to_x ? x++ : -1, y < to_y ? y++ : -1, false});
  };
  auto same_at = [&](int at_x, int at_y) {
    change_to(at_x, at_y);
    d.rows.push_back({x++, y++, true});
  };
  for (size_t i = 0; i < head; ++i) same_at(static_cast<int>(i), static_cast<int>(i));
  const int offset = static_cast<int>(head);
  for (const auto& [at_x, at_y] : common_lines(middle_a, middle_b)) same_at(at_x + offset, at_y + offset);
  for (size_t i = tail; i > 0; --i) same_at(static_cast<int>(a.size() - i), static_cast<int>(b.size() - i));
  change_to(static_cast<int>(a.size()), static_cast<int>(b.size()));
  return d;
}

std::string without_numbers(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    out += line[i];
    if (line[i] != '%' && line[i] != '$') continue;
    while (i + 1 < line.size() && std::isalpha(static_cast<unsigned char>(line[i + 1]))) out += line[++i];
    while (i + 1 < line.size() && std::isdigit(static_cast<unsigned char>(line[i + 1]))) ++i;
  }
  return out;
}

std::string side_by_side(const TextDiff& diff, const SideBySide& options) {
  const int column = std::max(10, (options.width - 3) / 2);
  auto row = [&](std::string_view l, char mark, std::string_view r) {
    std::string text = fitted(l, column) + " " + mark + " " + fitted(r, column);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string out = row(options.left_name, '|', options.right_name) + "\n";
  std::vector<bool> shown(diff.rows.size(), false);
  for (size_t i = 0; i < diff.rows.size(); ++i) {
    if (diff.rows[i].is_same) continue;
    const size_t around = static_cast<size_t>(options.around);
    for (size_t k = i - std::min(i, around); k < std::min(diff.rows.size(), i + around + 1); ++k) shown[k] = true;
  }
  for (size_t i = 0; i < diff.rows.size();) {
    if (!shown[i]) {
      const size_t first = i;
      while (i < diff.rows.size() && !shown[i]) ++i;
      out += fmt::format("… {} same line{}\n", i - first, i - first == 1 ? "" : "s");
      continue;
    }
    const TextDiff::Row& r = diff.rows[i++];
    const std::string_view l = r.left < 0 ? "" : diff.left[static_cast<size_t>(r.left)],
                           right = r.right < 0 ? "" : diff.right[static_cast<size_t>(r.right)];
    const char mark = r.is_same ? ' ' : r.left < 0 ? '>' : r.right < 0 ? '<' : '|';
    const std::string_view color = !options.color || r.is_same ? ""
                                   : mark == '>'               ? "\033[32m"
                                   : mark == '<'               ? "\033[31m"
                                                               : "\033[33m";
    out += fmt::format("{}{}{}\n", color, row(l, mark, right), color.empty() ? "" : "\033[0m");
  }
  return out;
}

}  // namespace kiln::repl
