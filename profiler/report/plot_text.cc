// Plots in a terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "profiler/report/plot.h"
#include "profiler/report/plot_scale.h"
#include "profiler/report/table.h"
#include "support/text_width.h"

namespace kiln::report {

namespace {

constexpr std::array kColors = {34, 31, 32, 35, 36, 33};  // of terminals

// Characters of a canvas: what stands in each, and the line that was drawn there last.
class Canvas {
 public:
  Canvas(int width, int height, PlotStyle style)
      : width_(width), height_(height), style_(style), cells_(static_cast<size_t>(width * height)) {}

  int dots_x() const { return style_ == PlotStyle::kPlain ? width_ : 2 * width_; }
  int dots_y() const { return style_ == PlotStyle::kPlain ? height_ : 4 * height_; }

  // From the bottom left.
  void dot(int x, int y, int line, bool is_point) {
    if (x < 0 || y < 0 || x >= dots_x() || y >= dots_y()) return;
    y = dots_y() - 1 - y;
    const bool plain = style_ == PlotStyle::kPlain;
    Cell& c = cells_[static_cast<size_t>((plain ? y : y / 4) * width_ + (plain ? x : x / 2))];
    // Bits of the Unicode braille patterns: columns of 1 2 3 7 and 4 5 6 8.
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    c.dots |= kBits[y % 4][x % 2];
    if (is_point || !c.is_point) c.line = line;
    c.is_point = c.is_point || is_point;
  }

  // A point that stands alone: more than one dot where dots are small.
  void blob(int x, int y, int line) {
    const int reach = style_ == PlotStyle::kPlain ? 0 : 1;
    for (int dx = -reach; dx <= reach; ++dx)
      for (int dy = -reach; dy <= reach; ++dy) dot(x + dx, y + dy, line, true);
  }

  void segment(int x0, int y0, int x1, int y1, int line) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i)
      dot(x0 + static_cast<int>(std::lround(double(x1 - x0) * i / steps)),
          y0 + static_cast<int>(std::lround(double(y1 - y0) * i / steps)), line, false);
  }

  std::string row(int y) const {
    std::string out;
    int color = -1;
    for (int x = 0; x < width_; ++x) {
      const Cell& c = cells_[static_cast<size_t>(y * width_ + x)];
      if (style_ == PlotStyle::kPlain) {
        out += c.dots == 0 ? ' ' : c.is_point ? static_cast<char>('a' + c.line % 26) : '.';
        continue;
      }
      const int wanted = style_ == PlotStyle::kColor && c.dots ? c.line : -1;
      if (wanted != color) out += wanted < 0 ? "\033[0m" : color_code(wanted);
      color = wanted;
      if (c.dots == 0) {
        out += ' ';
        continue;
      }
      const unsigned code = 0x2800 + c.dots;
      out += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
              static_cast<char>(0x80 | (code & 0x3F))};
    }
    if (color >= 0) out += "\033[0m";
    while (out.ends_with(' ')) out.pop_back();
    return out;
  }

  static std::string color_code(int line) {
    return fmt::format("\033[{}m", kColors[static_cast<size_t>(line) % kColors.size()]);
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    int line = 0;
    bool is_point = false;
  };
  int width_, height_;
  PlotStyle style_;
  std::vector<Cell> cells_;
};

/// A tick's text; in ASCII 5×10⁶ is 5e6, and 2²⁰ is 2^20.
std::string text_of(const std::string& tick, bool plain) {
  if (!plain) return tick;
  static constexpr std::pair<std::string_view, std::string_view> kAscii[] = {
      {"⁰", "0"}, {"¹", "1"}, {"²", "2"}, {"³", "3"}, {"⁴", "4"}, {"⁵", "5"},
      {"⁶", "6"}, {"⁷", "7"}, {"⁸", "8"}, {"⁹", "9"}, {"⁻", "-"}};
  std::string out;
  bool raised = false;
  for (size_t i = 0; i < tick.size();) {
    const std::string_view rest = std::string_view(tick).substr(i);
    if (rest.starts_with("×")) {
      if (out.empty()) out = "x";
      i += std::string_view("×").size();
      continue;
    }
    const auto* digit = std::ranges::find_if(kAscii, [&](const auto& d) { return rest.starts_with(d.first); });
    if (digit == std::end(kAscii)) {
      out += tick[i++];
      continue;
    }
    if (!std::exchange(raised, true)) {
      // "10" before it is the base; a mantissa before that stays.
      if (out.ends_with("10")) {
        out.resize(out.size() - 2);
        out += out.empty() || out == "x" ? "1e" : "e";
      } else {
        out += "^";
      }
    }
    out += digit->second;
    i += digit->first.size();
  }
  return out;
}

/// As much of a text as there is room for.
std::string fitting(const std::string& text, int columns, bool plain) {
  if (columns <= 0 || display_width(text) <= columns) return text;
  return std::string(beginning_of_width(text, columns - 1)) + (plain ? "~" : "…");
}

/// The rule below the canvas with a mark at each tick, and the line of their texts.
struct XAxis {
  Ticks ticks;
  std::string rule, labels;
};

XAxis x_axis(const Plot& plot, const std::vector<PlotLine>& lines, const Scale& xs, int inner, int margin, bool plain) {
  constexpr int kColumnsPerTick = 11;
  XAxis axis;
  if (plot.x_names.empty())
    axis.ticks = x_ticks(plot, lines, xs, std::max(2, inner / kColumnsPerTick));
  else
    for (size_t i = 0; i < plot.x_names.size(); ++i)
      axis.ticks.major.push_back({static_cast<double>(i), plot.x_names[i]});
  const int left = margin + 2;
  std::vector<bool> marked(static_cast<size_t>(inner));
  int column = 0;  // of the end of the texts so far
  for (const Tick& t : axis.ticks.major) {
    const std::string text = fitting(text_of(t.text, plain), inner, plain);
    const int length = display_width(text), at = static_cast<int>(std::lround(xs.at(t.value) * (inner - 1)));
    if (at < 0 || at >= inner) continue;  // a name without a point
    const int start = std::clamp(left + at - length / 2, 0, std::max(0, left + inner - length));
    if (start < column + (column ? 1 : 0)) continue;  // no room
    axis.labels += std::string(static_cast<size_t>(start - column), ' ') + text;
    column = start + length;
    marked[static_cast<size_t>(at)] = true;
  }
  axis.rule = std::string(static_cast<size_t>(margin) + 1, ' ') + (plain ? "+" : "└");
  for (const bool mark : marked) axis.rule += mark ? (plain ? "+" : "┬") : (plain ? "-" : "─");
  axis.rule += "\n";
  return axis;
}

std::string legend(const std::vector<PlotLine>& lines, PlotStyle style, int columns) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string mark = style == PlotStyle::kPlain ? std::string(1, static_cast<char>('a' + i % 26)) : "━━";
    out += style == PlotStyle::kColor ? "  " + Canvas::color_code(static_cast<int>(i)) + mark + "\033[0m" : "  " + mark;
    const int left = columns - 3 - display_width(mark);
    out += " " + (columns > 0 ? fitting(lines[i].name, std::max(1, left), style == PlotStyle::kPlain) : lines[i].name) +
           "\n";
  }
  return out;
}

}  // namespace

std::string to_terminal(const Plot& plot, PlotStyle style, int columns, int height) {
  constexpr int kWidest = 72, kLeast = 20;
  if (columns <= 0) columns = terminal_columns(STDOUT_FILENO);
  if (columns > 0) columns = std::max(columns, kLeast);
  const int width = columns > 0 ? std::min(columns, kWidest) : kWidest;
  const std::vector<PlotLine> lines = drawable(plot);
  if (!has_points(lines)) return {};
  const Scale xs = x_scale(plot, lines), ys = y_scale(plot, lines);
  const bool plain = style == PlotStyle::kPlain;
  const Ticks y_marks = y_ticks(ys, std::max(2, height / 4));
  auto row_of = [&](double y) { return static_cast<size_t>(std::lround((1 - ys.at(y)) * (height - 1))); };
  std::vector<std::string> labels(static_cast<size_t>(height));
  int margin = 0;
  for (const Tick& t : y_marks.major) {
    labels[row_of(t.value)] = text_of(t.text, plain);
    margin = std::max(margin, display_width(t.text));
  }
  const int inner = std::max(8, width - margin - 2);

  Canvas canvas(inner, height, style);
  auto place = [&](const PlotPoint& p) {
    return std::pair(static_cast<int>(std::lround(xs.at(p.x) * (canvas.dots_x() - 1))),
                     static_cast<int>(std::lround(ys.at(p.y) * (canvas.dots_y() - 1))));
  };
  for (size_t i = 0; i < lines.size(); ++i)
    for (size_t k = 1; k < lines[i].points.size() && lines[i].form != PlotForm::kPoints; ++k) {
      if (!std::isfinite(lines[i].points[k - 1].y) || !std::isfinite(lines[i].points[k].y)) continue;
      auto [x0, y0] = place(lines[i].points[k - 1]);
      auto [x1, y1] = place(lines[i].points[k]);
      canvas.segment(x0, y0, x1, y1, static_cast<int>(i));
    }
  for (size_t i = 0; i < lines.size(); ++i)
    for (const PlotPoint& p : lines[i].points) {
      if (!std::isfinite(p.y)) continue;
      auto [x, y] = place(p);
      if (lines[i].form == PlotForm::kPoints)
        canvas.blob(x, y, static_cast<int>(i));
      else
        canvas.dot(x, y, static_cast<int>(i), true);
    }

  auto named = [&](const std::string& label, const Ticks& ticks) {
    return ticks.factor.empty() ? label : label + " (" + text_of(ticks.factor, plain) + ")";
  };
  std::string out = plot.title.empty() ? "" : fitting(plot.title, columns, plain) + "\n";
  if (const std::string y_name = named(plot.y_label, y_marks); !y_name.empty())
    out += fitting(y_name, columns, plain) + "\n";
  for (int row = 0; row < height; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    const char* bar = label.empty() ? (plain ? " |" : " │") : (plain ? " +" : " ┤");
    out += std::string(static_cast<size_t>(margin - display_width(label)), ' ') + label + bar + canvas.row(row) + "\n";
  }
  const XAxis axis = x_axis(plot, lines, xs, inner, margin, plain);
  // Behind the last tick's text, or where there is no room below it.
  const std::string x_name = fitting(named(plot.x_label, axis.ticks), columns, plain);
  const int length = display_width(x_name);
  const bool fits = columns <= 0 || display_width(axis.labels) + 2 + length <= columns;
  const std::string gap =
      fits ? "  " : "\n" + std::string(static_cast<size_t>(std::max(0, margin + 2 + inner - length)), ' ');
  return out + axis.rule + axis.labels + gap + x_name + "\n" + legend(lines, style, columns);
}

}  // namespace kiln::report
