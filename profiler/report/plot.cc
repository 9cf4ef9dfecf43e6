#include "profiler/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "profiler/report/table.h"

namespace kiln::report {

namespace {

constexpr std::array kColors = {34, 31, 32, 35, 36, 33};  // of terminals
constexpr std::array kSvgColors = {"#1f5fbf", "#c0392b", "#2d8a4e", "#8e44ad", "#0097a7", "#b9770e"};
constexpr size_t kMostTicks = 8;

// One axis: values to [0, 1].
struct Scale {
  double low = 0, high = 1;
  bool log = false;

  double at(double v) const { return (value(v) - low) / (high - low); }
  double from(double share) const {
    const double v = low + share * (high - low);
    return log ? std::pow(10.0, v) : v;
  }
  double value(double v) const { return log ? std::log10(v) : v; }
};

bool usable(const Plot& plot, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && (!plot.x_log || x > 0) && (!plot.y_log || y > 0);
}

std::vector<PlotLine> usable_lines(const Plot& plot) {
  std::vector<PlotLine> lines;
  for (const PlotLine& l : plot.lines) {
    PlotLine kept{l.name, {}, l.form};
    for (auto [x, y] : l.points)
      if (usable(plot, x, y)) kept.points.emplace_back(x, y);
    lines.push_back(std::move(kept));
  }
  return lines;
}

template <class Get>
Scale scale_of(const std::vector<PlotLine>& lines, bool log, bool from_zero, Get get) {
  Scale s;
  s.log = log;
  bool first = true;
  for (const PlotLine& l : lines)
    for (const auto& p : l.points) {
      const double v = s.value(get(p));
      s.low = first ? v : std::min(s.low, v);
      s.high = first ? v : std::max(s.high, v);
      first = false;
    }
  if (from_zero && !log) s.low = std::min(s.low, 0.0);
  if (s.high <= s.low) s.low -= 0.5, s.high += 0.5;
  return s;
}

std::string number(double v) {
  const double size = std::abs(v);
  if (size != 0 && (size >= 1e6 || size < 1e-2)) return fmt::format("{:.2e}", v);
  if (size >= 1000) return fmt::format("{:.0f}", v);
  std::string text = fmt::format("{:.3g}", v);
  return text;
}

struct Tick {
  double value;
  std::string text;
};

std::vector<Tick> x_ticks(const Plot& plot, const std::vector<PlotLine>& lines, const Scale& scale) {
  std::vector<Tick> ticks;
  if (!plot.x_names.empty()) {
    for (size_t i = 0; i < plot.x_names.size(); ++i) ticks.push_back({static_cast<double>(i), plot.x_names[i]});
    return ticks;
  }
  std::vector<double> values;
  for (const PlotLine& l : lines)
    for (const auto& p : l.points) values.push_back(p.first);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() > kMostTicks) {
    values.clear();
    for (int i = 0; i <= 4; ++i) values.push_back(scale.from(i / 4.0));
  }
  for (double v : values) ticks.push_back({v, number(v)});
  return ticks;
}

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

std::string escape_xml(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

bool wants_log(const std::vector<double>& values) {
  if (values.empty()) return false;
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low > 0 && *high > 8 * *low;
}

std::string to_terminal(const Plot& plot, PlotStyle style, int width, int height) {
  const std::vector<PlotLine> lines = usable_lines(plot);
  if (std::all_of(lines.begin(), lines.end(), [](const PlotLine& l) { return l.points.empty(); })) return {};
  const Scale xs = scale_of(lines, plot.x_log, false, [](const auto& p) { return p.first; });
  const Scale ys = scale_of(lines, plot.y_log, true, [](const auto& p) { return p.second; });

  std::vector<std::string> labels(static_cast<size_t>(height));
  for (int row : {0, height / 2, height - 1})
    labels[static_cast<size_t>(row)] = number(ys.from(1 - double(row) / (height - 1)));
  int margin = 0;
  for (const std::string& l : labels) margin = std::max(margin, display_width(l));
  const int inner = std::max(16, width - margin - 2);

  Canvas canvas(inner, height, style);
  auto place = [&](const std::pair<double, double>& p) {
    return std::pair(static_cast<int>(std::lround(xs.at(p.first) * (canvas.dots_x() - 1))),
                     static_cast<int>(std::lround(ys.at(p.second) * (canvas.dots_y() - 1))));
  };
  for (size_t i = 0; i < lines.size(); ++i)
    for (size_t k = 1; k < lines[i].points.size() && lines[i].form != PlotForm::kPoints; ++k) {
      auto [x0, y0] = place(lines[i].points[k - 1]);
      auto [x1, y1] = place(lines[i].points[k]);
      canvas.segment(x0, y0, x1, y1, static_cast<int>(i));
    }
  for (size_t i = 0; i < lines.size(); ++i)
    for (const auto& p : lines[i].points) {
      auto [x, y] = place(p);
      if (lines[i].form == PlotForm::kPoints)
        canvas.blob(x, y, static_cast<int>(i));
      else
        canvas.dot(x, y, static_cast<int>(i), true);
    }

  const bool plain = style == PlotStyle::kPlain;
  std::string out = plot.title.empty() ? "" : plot.title + "\n";
  out += plot.y_label + "\n";
  for (int row = 0; row < height; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    out += std::string(static_cast<size_t>(margin - display_width(label)), ' ') + label + (plain ? " |" : " │") +
           canvas.row(row) + "\n";
  }
  out += std::string(static_cast<size_t>(margin) + 1, ' ') + (plain ? "+" : "└");
  for (int i = 0; i < inner; ++i) out += plain ? "-" : "─";
  out += "\n";
  std::string ticks(static_cast<size_t>(inner + margin + 2), ' ');
  size_t free_from = 0;
  for (const Tick& t : x_ticks(plot, lines, xs)) {
    const auto length = static_cast<int>(t.text.size());
    const int at = std::clamp(margin + 2 + static_cast<int>(std::lround(xs.at(t.value) * (inner - 1))) - length / 2, 0,
                              std::max(0, margin + 2 + inner - length));
    if (static_cast<size_t>(at) < free_from) continue;  // no room
    ticks.replace(static_cast<size_t>(at), t.text.size(), t.text);
    free_from = static_cast<size_t>(at + length) + 1;
  }
  while (ticks.ends_with(' ')) ticks.pop_back();
  out += ticks + "  " + plot.x_label + "\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string mark = plain ? std::string(1, static_cast<char>('a' + i % 26)) : "━━";
    out += style == PlotStyle::kColor ? "  " + Canvas::color_code(static_cast<int>(i)) + mark + "\033[0m" : "  " + mark;
    out += " " + lines[i].name + "\n";
  }
  return out;
}

std::string to_svg(const Plot& plot) {
  constexpr double kWidth = 760, kHeight = 440, kLeft = 80, kTop = 40, kBottom = 60;
  const std::vector<PlotLine> lines = usable_lines(plot);
  size_t longest = 0;
  for (const PlotLine& l : lines) longest = std::max(longest, l.name.size());
  const double right = std::min(280.0, 50 + 7.0 * static_cast<double>(longest));
  const double inner_width = kWidth - kLeft - right, inner_height = kHeight - kTop - kBottom;
  const Scale xs = scale_of(lines, plot.x_log, false, [](const auto& p) { return p.first; });
  const Scale ys = scale_of(lines, plot.y_log, true, [](const auto& p) { return p.second; });
  auto px = [&](double x) { return kLeft + xs.at(x) * inner_width; };
  auto py = [&](double y) { return kTop + (1 - ys.at(y)) * inner_height; };

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  auto text = [&](double x, double y, std::string_view anchor, const std::string& what) {
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escape_xml(what));
  };
  if (!plot.title.empty()) text(kLeft, 14, "start", plot.title);
  text(kLeft - 60, kTop - 8, "start", plot.y_label);
  text(kLeft + inner_width / 2, kHeight - 15, "middle", plot.x_label);
  for (int i = 0; i <= 4; ++i) {
    const double y = kTop + inner_height * i / 4;
    out += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", kLeft, y,
                       kLeft + inner_width, y);
    text(kLeft - 8, y + 4, "end", number(ys.from(1 - i / 4.0)));
  }
  double free_from = 0;
  for (const Tick& t : x_ticks(plot, lines, xs)) {
    const double half = 4.0 * static_cast<double>(t.text.size());
    if (px(t.value) - half < free_from) continue;  // no room
    text(px(t.value), kTop + inner_height + 20, "middle", t.text);
    free_from = px(t.value) + half;
  }
  out += fmt::format("<path d=\"M{0} {1}V{2}H{3:.1f}\" fill=\"none\" stroke=\"black\"/>\n", kLeft, kTop,
                     kTop + inner_height, kLeft + inner_width);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* color = kSvgColors[i % kSvgColors.size()];
    const PlotForm form = lines[i].form;
    std::string path;
    for (auto [x, y] : lines[i].points) path += fmt::format("{:.1f},{:.1f} ", px(x), py(y));
    if (form != PlotForm::kPoints)
      out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path, color);
    for (auto [x, y] : lines[i].points)
      if (form != PlotForm::kLine)
        out += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}: {}, {}</title></circle>\n", px(x),
            py(y), form == PlotForm::kPoints ? 5 : 3, color, escape_xml(lines[i].name), number(x), number(y));
    const double legend = kTop + 16 * static_cast<double>(i);
    if (form == PlotForm::kPoints)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"/>\n", kLeft + inner_width + 24,
                         legend, color);
    else
      out += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"{3}\" "
          "stroke-width=\"2\"/>\n",
          kLeft + inner_width + 14, legend, kLeft + inner_width + 34, color);
    text(kLeft + inner_width + 40, legend + 4, "start", lines[i].name);
  }
  return out + "</svg>\n";
}

}  // namespace kiln::report
