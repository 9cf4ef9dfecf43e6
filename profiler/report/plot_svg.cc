// Plots as SVG. Everything is measured before it is placed: margins follow from the labels in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numbers>
#include <optional>

#include "profiler/report/plot.h"
#include "profiler/report/plot_scale.h"
#include "profiler/report/svg_text.h"
#include "support/escape.h"

namespace kiln::report {

namespace {

constexpr double kWidth = 760, kPlotHeight = 330, kFont = 12, kTitleFont = 14, kLineHeight = 15;
constexpr double kNameColumn = 240;  // pixels at most for the names of lines
constexpr double kTickLabel = 160;   // pixels at most for a name along the x axis
constexpr double kPadding = 0.03;    // of the axes beyond their points
constexpr size_t kCrowded = 60;      // points of a line from which on they are drawn small
constexpr double kLineEnds = 12;     // pixels before the right end within which a line reaches it

// Told apart also by who does not see all colours: neighbours differ in lightness, and markers in shape.
struct Shade {
  const char *light, *dark;
};
constexpr std::array<Shade, 10> kShades = {{{"#1d5fc4", "#74a9ff"},
                                            {"#d9530b", "#ff9a4d"},
                                            {"#1f8a3d", "#63d186"},
                                            {"#8b35b5", "#cf8df2"},
                                            {"#c2203a", "#ff7d8f"},
                                            {"#0b7f93", "#45c8dd"},
                                            {"#946000", "#dcae4a"},
                                            {"#c7327f", "#f48cc0"},
                                            {"#59656f", "#b3bec8"},
                                            {"#6b7a00", "#c0cc45"}}};

std::string style_sheet() {
  std::string light, dark;
  for (size_t i = 0; i < kShades.size(); ++i) {
    light += fmt::format(".kiln-plot .c{} {{ color: {} }}\n", i, kShades[i].light);
    dark += fmt::format(".kiln-plot .c{} {{ color: {} }}\n", i, kShades[i].dark);
  }
  return "<style>\n.kiln-plot { font: 12px 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif }\n"
         ".kiln-plot .page { fill: #ffffff }\n.kiln-plot text { fill: #3b4552 }\n"
         ".kiln-plot .title { font-size: 14px; font-weight: 600; fill: #1d2430 }\n"
         ".kiln-plot .name { fill: currentColor }\n"
         ".kiln-plot .over { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round }\n"
         ".kiln-plot .grid { stroke: #e3e7ec }\n.kiln-plot .axis { stroke: #7a8694; fill: none }\n"
         ".kiln-plot .rim { stroke: #ffffff }\n" +
         light +
         "@media (prefers-color-scheme: dark) {\n.kiln-plot .page { fill: #14181f }\n"
         ".kiln-plot text { fill: #b4bdc9 }\n.kiln-plot .title { fill: #e4e8ee }\n"
         ".kiln-plot .name { fill: currentColor }\n.kiln-plot .over { stroke: #14181f }\n"
         ".kiln-plot .grid { stroke: #2a323d }\n.kiln-plot .axis { stroke: #7d8896 }\n.kiln-plot .rim { stroke: "
         "#14181f }\n" +
         dark + "}\n</style>\n";
}

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
};

/// A name that stands in the column at the right, or at its point.
struct Name {
  size_t line;
  std::vector<std::string> texts;
  double x, y;    // where the line ends
  double at = 0;  // the middle of the texts
  double height() const { return kLineHeight * static_cast<double>(texts.size()); }
};

/// Moves names apart, each as near to its line's end as the others allow: names that meet become a block around the
/// mean of what they want.
void spread(std::vector<Name>& names, double top, double bottom) {
  std::ranges::stable_sort(names, {}, &Name::y);
  struct Block {
    size_t first, count;
    double wanted, height;  // wanted: the sum over its names of what the block's top would be for them
    double top_of(double low, double high) const {
      return std::clamp(wanted / static_cast<double>(count), low, std::max(low, high - height));
    }
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < names.size(); ++i) {
    blocks.push_back({i, 1, names[i].y - names[i].height() / 2, names[i].height()});
    while (blocks.size() > 1) {
      const Block last = blocks.back();
      Block& before = blocks[blocks.size() - 2];
      if (before.top_of(top, bottom) + before.height <= last.top_of(top, bottom)) break;
      before.wanted += last.wanted - before.height * static_cast<double>(last.count);
      before.count += last.count;
      before.height += last.height;
      blocks.pop_back();
    }
  }
  for (const Block& b : blocks) {
    double y = b.top_of(top, bottom);
    for (size_t i = b.first; i < b.first + b.count; ++i) {
      names[i].at = y + names[i].height() / 2;
      y += names[i].height();
    }
  }
}

Scale widened(Scale s, double below, double above) {
  const double length = s.high - s.low;
  s.low -= length * below, s.high += length * above;
  return s;
}

class SvgPlot {
 public:
  explicit SvgPlot(const Plot& plot)
      : plot_(plot), lines_(drawable(plot)), xs_(x_scale(plot, lines_)), ys_(y_scale(plot, lines_)) {
    const bool is_named = !plot.x_names.empty();
    if (is_named) xs_ = {-0.5, static_cast<double>(plot.x_names.size()) - 0.5, false};
    if (!is_named) xs_ = widened(xs_, kPadding, kPadding);
    ys_ = widened(ys_, !ys_.log && ys_.low == 0 ? 0 : kPadding, kPadding);
  }

  std::string text() {
    lay_out();
    frame();
    if (!has_points(lines_)) label((left_ + right_) / 2, (top_ + bottom_) / 2, "middle", "no values to draw");
    for (size_t i = 0; i < lines_.size(); ++i) draw_line(i);
    for (size_t i = 0; i < lines_.size(); ++i) draw_points(i);
    for (const auto& [i, from, to] : slopes_) name_along(i, from, to);
    for (const Name& n : names_) name_in_column(n);
    for (size_t i : alone_) name_at_point(i);
    const double width = kWidth, height = height_;
    const std::string title = html_escaped(plot_.title.empty() ? plot_.y_label : plot_.title);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"kiln-plot\" width=\"{0}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0} {1:.0f}\" role=\"img\" aria-label=\"{2}\">\n",
               width, height, title) +
           style_sheet() + "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n" + out_ + "</svg>\n";
  }

 private:
  double px(double x) const { return left_ + xs_.at(x) * (right_ - left_); }
  double py(double y) const { return bottom_ - ys_.at(y) * (bottom_ - top_); }

  template <class... T>
  void put(fmt::format_string<T...> format, T&&... values) {
    out_ += fmt::format(format, std::forward<T>(values)...);
  }
  void label(double x, double y, const char* anchor, const std::string& text, const char* classes = nullptr) {
    if (text.empty()) return;
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor,
        classes ? fmt::format(" class=\"{}\"", classes) : "", html_escaped(text));
  }
  static std::string colour(size_t line) { return fmt::format("c{}", line % kShades.size()); }

  const PlotPoint* last_point(size_t line) const {
    const PlotPoint* last = nullptr;
    for (const PlotPoint& p : lines_[line].points)
      if (std::isfinite(p.y)) last = &p;
    return last;
  }

  // --- where everything goes ----------------------------------------------------------------------------------------

  void lay_out() {
    title_ = wrapped(plot_.title, kTitleFont, kWidth - 32, 3);
    top_ = 12 + 19 * static_cast<double>(title_.size()) + 22;  // the y label above the axis

    // Names at the right, but those of single points and of lines that end earlier.
    const bool needs_names = lines_.size() > 1 || (lines_.size() == 1 && lines_[0].name != plot_.y_label);
    double names_height = 0, names_width = 0;
    for (size_t i = 0; i < lines_.size() && needs_names; ++i) {
      const PlotPoint* last = last_point(i);
      if (!last || lines_[i].name.empty()) continue;
      if (lines_[i].form != PlotForm::kLine && lines_[i].points.size() == 1) {
        alone_.push_back(i);
        continue;
      }
      if (lines_[i].form == PlotForm::kLine && lines_[i].points.size() == 2 && xs_.at(last->x) < 0.9 &&
          lines_[i].points[0].y != lines_[i].points[1].y) {
        slopes_.push_back({i, lines_[i].points[0], lines_[i].points[1]});
        continue;
      }
      Name n{i, wrapped(lines_[i].name, kFont, kNameColumn, 3), last->x, last->y};
      for (const std::string& t : n.texts) names_width = std::max(names_width, pixels_of(t, kFont));
      names_height += n.height();
      names_.push_back(std::move(n));
    }
    right_ = kWidth - (names_.empty() ? 24 : names_width + 34);
    bottom_ = top_ + std::max(kPlotHeight, names_height);

    y_ticks_ = y_ticks(ys_, 7);
    double widest = 0;
    for (const Tick& t : y_ticks_.major) widest = std::max(widest, pixels_of(t.text, kFont));
    left_ = std::max(44.0, widest + 24);
    lay_out_x();

    for (Name& n : names_) n.x = px(n.x), n.y = py(n.y);
    spread(names_, top_ - kLineHeight / 2, bottom_ + kLineHeight / 2);
    for (const Name& n : names_) taken_.push_back({right_, n.at - n.height() / 2, kWidth, n.at + n.height() / 2});
  }

  void lay_out_x() {
    const double room = right_ - left_;
    double below = 22;
    if (!plot_.x_names.empty()) {
      const size_t count = plot_.x_names.size();
      // Names side by side, in two lines, or slanted; of very many, each second, third…
      const double slot = room / static_cast<double>(count);
      auto fits = [&](const std::string& name) { return wrapped(name, kFont, slot - 8, 3).size() < 3; };
      slanted_ = slot < 40 || !std::ranges::all_of(plot_.x_names, fits);
      const auto every =
          static_cast<size_t>(slanted_ ? std::max(1.0, std::ceil(kLineHeight * std::numbers::sqrt2 / slot)) : 1);
      for (size_t i = 0; i < count; i += every) {
        std::vector<std::string> texts =
            wrapped(plot_.x_names[i], kFont, slanted_ ? kTickLabel : slot - 8, slanted_ ? 1 : 2);
        double reach = 6 + kLineHeight * static_cast<double>(texts.size());
        if (slanted_ && !texts.empty()) {
          const double width = pixels_of(texts[0], kFont);
          reach = 16 + width * std::numbers::sqrt2 / 2;
          left_ = std::max(left_, width * std::numbers::sqrt2 / 2 - slot * (static_cast<double>(i) + 0.5) + 8);
        }
        below = std::max(below, reach);
        x_names_.push_back({static_cast<double>(i), std::move(texts)});
      }
    } else {
      for (int most = 9; most >= 2; --most) {
        x_ticks_ = x_ticks(plot_, lines_, xs_, most);
        double free_from = -INFINITY;
        bool fits = true;
        for (const Tick& t : x_ticks_.major) {
          const double half = pixels_of(t.text, kFont) / 2 + 6, x = px(t.value);
          fits = fits && x - half >= free_from;
          free_from = x + half;
        }
        if (fits) break;
      }
    }
    height_ = bottom_ + below + (plot_.x_label.empty() && x_ticks_.factor.empty() ? 10 : 30);
    if (!plot_.bars.empty() && has_bars()) height_ += kLineHeight;
    x_label_at_ = bottom_ + below + 17;
  }

  bool has_bars() const {
    return std::ranges::any_of(lines_, [](const PlotLine& l) {
      return std::ranges::any_of(l.points, [](const PlotPoint& p) { return std::isfinite(p.low); });
    });
  }

  // --- drawing ------------------------------------------------------------------------------------------------------

  void frame() {
    double y = 26;
    for (const std::string& t : title_) {
      label(16, y, "start", t, "title");
      y += 19;
    }
    auto with_factor = [](const std::string& text, const std::string& factor) {
      return factor.empty() ? text : text.empty() ? factor : text + " (" + factor + ")";
    };
    label(16, top_ - 12, "start", with_factor(plot_.y_label, y_ticks_.factor));
    for (const Tick& t : y_ticks_.major) {
      put("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left_, py(t.value), right_);
      label(left_ - 9, py(t.value) + 4, "end", t.text);
    }
    std::string marks;
    for (const Tick& t : y_ticks_.major) marks += fmt::format("M{:.1f} {:.1f}h-5", left_, py(t.value));
    for (double v : y_ticks_.minor) marks += fmt::format("M{:.1f} {:.1f}h-3", left_, py(v));
    for (const Tick& t : x_ticks_.major) {
      put("<path class=\"grid\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", px(t.value), top_, bottom_);
      marks += fmt::format("M{:.1f} {:.1f}v5", px(t.value), bottom_);
      label(px(t.value), bottom_ + 19, "middle", t.text);
    }
    for (double v : x_ticks_.minor) marks += fmt::format("M{:.1f} {:.1f}v3", px(v), bottom_);
    for (const auto& [at, texts] : x_names_) {
      marks += fmt::format("M{:.1f} {:.1f}v5", px(at), bottom_);
      if (slanted_ && !texts.empty())
        put("<text text-anchor=\"end\" transform=\"translate({:.1f} {:.1f}) rotate(-45)\"><title>{}</title>{}</text>\n",
            px(at) + 4, bottom_ + 15, html_escaped(plot_.x_names[static_cast<size_t>(at)]), html_escaped(texts[0]));
      for (size_t k = 0; k < texts.size() && !slanted_; ++k)
        label(px(at), bottom_ + 19 + kLineHeight * static_cast<double>(k), "middle", texts[k]);
    }
    put("<path class=\"axis\" d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}{4}\"/>\n", left_, top_, bottom_, right_, marks);
    label((left_ + right_) / 2, x_label_at_, "middle", with_factor(plot_.x_label, x_ticks_.factor));
    if (!plot_.bars.empty() && has_bars()) label(kWidth - 16, height_ - 8, "end", "bars: " + plot_.bars);
  }

  /// The line's points as a path with its gaps; a point alone between gaps shows by its marker.
  std::string path_of(size_t line) const {
    std::string path;
    bool is_open = false;
    for (const PlotPoint& p : lines_[line].points) {
      if (std::isfinite(p.y)) path += fmt::format("{}{:.1f} {:.1f}", is_open ? "L" : "M", px(p.x), py(p.y));
      is_open = std::isfinite(p.y);
    }
    return path;
  }

  void draw_line(size_t i) {
    if (lines_[i].form == PlotForm::kPoints || !last_point(i)) return;
    const std::string path = path_of(i);
    // Lines with the same values: the later one is dashed, and the one below shows through.
    const bool again = std::ranges::find(paths_, path) != paths_.end();
    paths_.push_back(path);
    for (size_t k = 1; k < lines_[i].points.size(); ++k) note_segment(lines_[i].points[k - 1], lines_[i].points[k]);
    const char* dashes = again                 ? " stroke-dasharray=\"7 7\""
                         : i >= kShades.size() ? " stroke-dasharray=\"8 3 2 3\""
                                               : "";
    put("<path class=\"{}\" d=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" "
        "stroke-linejoin=\"round\"{}/>\n",
        colour(i), path, dashes);
  }

  /// Where names of points had better not stand.
  void note_segment(const PlotPoint& from, const PlotPoint& to) {
    if (!std::isfinite(from.y) || !std::isfinite(to.y)) return;
    const double x0 = px(from.x), y0 = py(from.y), x1 = px(to.x), y1 = py(to.y), length = std::hypot(x1 - x0, y1 - y0);
    for (int k = 0; 8 * k < length; ++k) {
      const double d = 8 * k;
      const double x = x0 + (x1 - x0) * d / length, y = y0 + (y1 - y0) * d / length;
      lines_at_.push_back({x - 4, y - 4, x + 4, y + 4});
    }
  }

  void draw_points(size_t i) {
    const PlotLine& line = lines_[i];
    std::string bars;
    for (const PlotPoint& p : line.points)
      if (std::isfinite(p.y) && std::isfinite(p.low) && py(p.low) - py(p.high) >= 1)
        bars += fmt::format("M{0:.1f} {1:.1f}h7m-3.5 0V{2:.1f}m-3.5 0h7", px(p.x) - 3.5, py(p.low), py(p.high));
    if (!bars.empty())
      put("<path class=\"{}\" d=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.2\"/>\n", colour(i),
          bars);
    const bool alone = line.points.size() == 1;
    if (line.form == PlotForm::kLine && !alone) return;
    const double size = line.points.size() > kCrowded ? 1.5 : line.form == PlotForm::kPoints ? 5 : 3.5;
    for (const PlotPoint& p : line.points)
      if (std::isfinite(p.y)) marker(i, px(p.x), py(p.y), size, tip(line, p));
  }

  std::string tip(const PlotLine& line, const PlotPoint& p) const {
    std::string text = line.name.empty() ? "" : line.name + ": ";
    const auto at = static_cast<size_t>(std::max(p.x, 0.0));
    text += !plot_.x_names.empty() && at < plot_.x_names.size() ? plot_.x_names[at] : fmt::format("{:.6g}", p.x);
    text += fmt::format(", {:.4g}", p.y);
    if (std::isfinite(p.low)) text += fmt::format(" ({:.4g} to {:.4g})", p.low, p.high);
    return text;
  }

  void marker(size_t i, double x, double y, double r, const std::string& tip) {
    auto close = [&](const char* tag) { return fmt::format("><title>{}</title></{}>", html_escaped(tip), tag); };
    // A rim keeps markers apart from lines that cross them; around small ones it would be all there is.
    const std::string look = fmt::format("class=\"{}{}\" fill=\"currentColor\"", colour(i), r > 2 ? " rim" : "");
    switch (i % 4) {
      case 0:
        put("<circle {} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"{}\n", look, x, y, r, close("circle"));
        break;
      case 1: {
        const double s = r * 0.9;
        put("<path {} d=\"M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z\"{}\n", look, x - s, y - s, 2 * s, 2 * s, 2 * s,
            close("path"));
        break;
      }
      case 2: {
        const double s = r * 1.2;
        put("<path {0} d=\"M{1:.1f} {2:.1f}l{3:.1f} {3:.1f}l-{3:.1f} {3:.1f}l-{3:.1f} -{3:.1f}z\"{4}\n", look, x, y - s,
            s, close("path"));
        break;
      }
      case 3: {
        const double s = r * 1.2;
        put("<path {} d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}h-{:.1f}z\"{}\n", look, x, y - s, s, 1.8 * s, 2 * s,
            close("path"));
        break;
      }
    }
  }

  void name_in_column(const Name& n) {
    const double x = right_ + 22;
    const bool is_long = n.x < right_ - kLineEnds * 3;  // ends well before the column
    put("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" fill=\"none\" stroke=\"currentColor\" "
        "stroke-width=\"1\" opacity=\"{}\"{}/>\n",
        colour(n.line), n.x + 6, n.y, x - 4, n.at, is_long ? 0.5 : 0.7, is_long ? " stroke-dasharray=\"2 3\"" : "");
    name_texts(n.line, n.texts, x, n.at, "start", "name");
  }

  /// Several lines of text around y; the whole name as a tooltip where it was cut.
  void name_texts(size_t i, const std::vector<std::string>& texts, double x, double y, const char* anchor,
                  const char* classes) {
    put("<g class=\"{}\">", colour(i));
    if (!texts.empty() && texts.back().ends_with("…")) put("<title>{}</title>", html_escaped(lines_[i].name));
    double at = y + 4 - kLineHeight * static_cast<double>(texts.size() - 1) / 2;
    for (const std::string& t : texts) {
      put("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", classes, x, at, anchor,
          html_escaped(t));
      at += kLineHeight;
    }
    put("</g>\n");
  }

  /// Around points that stand alone.
  std::vector<Box> boxes_of_points() const {
    std::vector<Box> out;
    for (size_t k : alone_) {
      const double x = px(lines_[k].points[0].x), y = py(lines_[k].points[0].y);
      out.push_back({x - 6, y - 6, x + 6, y + 6});
    }
    return out;
  }

  /// Above a straight line, in its direction, where it hides no point.
  void name_along(size_t i, const PlotPoint& from, const PlotPoint& to) {
    const double x0 = px(from.x), y0 = py(from.y), x1 = px(to.x), y1 = py(to.y);
    const double length = std::hypot(x1 - x0, y1 - y0), width = pixels_of(lines_[i].name, kFont);
    const double cosine = (x1 - x0) / length, sine = (y1 - y0) / length;
    double x = 0, y = 0;
    std::vector<Box> boxes;
    const auto place = [&](double share) {
      const double start = std::clamp(length * share, 0.0, std::max(0.0, length - width - 8));  // not beyond the end
      x = x0 + cosine * start + sine * 6, y = y0 + sine * start - cosine * 6;
      boxes.clear();
      for (int k = 0; k * kFont < width; ++k) {
        const double d = k * kFont;
        boxes.push_back({x + cosine * d - 6, y + sine * d - 12, x + cosine * d + 12, y + sine * d + 4});
      }
      return std::ranges::none_of(boxes_of_points(), [&](const Box& point) {
        return std::ranges::any_of(boxes, [&](const Box& box) { return box.meets(point); });
      });
    };
    // Rather at a quarter of the way, so that lines that meet at one end keep their names apart.
    constexpr double kShares[] = {0.25, 0.375, 0.5, 0.625, 0.125, 0.75, 0};
    if (std::ranges::none_of(kShares, place)) place(kShares[0]);
    taken_.insert(taken_.end(), boxes.begin(), boxes.end());
    put("<g class=\"{}\"><text class=\"name over\" transform=\"translate({:.1f} {:.1f}) "
        "rotate({:.1f})\">{}</text></g>\n",
        colour(i), x, y, std::atan2(sine, cosine) * 180 / std::numbers::pi, html_escaped(lines_[i].name));
  }

  /// Beside, above or below the point, wherever nothing else is.
  void name_at_point(size_t i) {
    const double x = px(lines_[i].points[0].x), y = py(lines_[i].points[0].y);
    const std::vector<std::string> texts = wrapped(lines_[i].name, kFont, kNameColumn, 2);
    double width = 0;
    for (const std::string& t : texts) width = std::max(width, pixels_of(t, kFont));
    const double height = kLineHeight * static_cast<double>(texts.size());
    const std::vector<Box> points = boxes_of_points();
    struct Place {
      double left, middle;
    };
    auto free_place = [&](bool on_lines) -> std::optional<Box> {
      for (double shift : {0.0, 18.0, 34.0, 50.0, 66.0, 82.0})
        for (const Place& p : {Place{x + 10, y - shift}, Place{x - 10 - width, y - shift}, Place{x + 10, y + shift},
                               Place{x - 10 - width, y + shift}, Place{x - width / 2, y - height / 2 - 10 - shift},
                               Place{x - width / 2, y + height / 2 + 10 + shift}}) {
          const Box box{p.left, p.middle - height / 2, p.left + width, p.middle + height / 2};
          auto hit = [&](const Box& other) { return box.meets(other); };
          if (box.left >= left_ + 2 && box.right <= kWidth - 4 && box.top >= top_ && box.bottom <= bottom_ - 2 &&
              std::ranges::none_of(taken_, hit) && std::ranges::none_of(points, hit) &&
              (on_lines || std::ranges::none_of(lines_at_, hit)))
            return box;
        }
      return std::nullopt;
    };
    std::optional<Box> best = free_place(false);
    if (!best) best = free_place(true);
    if (!best) best = Box{x + 10, y - height / 2, x + 10 + width, y + height / 2};
    taken_.push_back(*best);
    const double middle = (best->top + best->bottom) / 2, nearest = std::clamp(x, best->left, best->right);
    if (std::hypot(nearest - x, middle - y) > 14 + height / 2)
      put("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"currentColor\" opacity=\"0.6\"/>\n",
          colour(i), x, y, nearest, middle < y ? best->bottom : best->top);
    name_texts(i, texts, best->left, middle, "start", "name over");
  }

  const Plot& plot_;
  std::vector<PlotLine> lines_;
  Scale xs_, ys_;
  Ticks x_ticks_, y_ticks_;
  std::vector<std::pair<double, std::vector<std::string>>> x_names_;
  bool slanted_ = false;
  std::vector<std::string> title_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0, height_ = 0, x_label_at_ = 0;

  struct Slope {
    size_t line;
    PlotPoint from, to;
  };
  std::vector<Name> names_;    // in the column at the right
  std::vector<Slope> slopes_;  // lines that are named along themselves
  std::vector<size_t> alone_;  // single points, named where they are
  std::vector<Box> taken_, lines_at_;
  std::vector<std::string> paths_;  // of the lines drawn so far
  std::string out_;
};

}  // namespace

std::string to_svg(const Plot& plot) { return SvgPlot(plot).text(); }

}  // namespace kiln::report
