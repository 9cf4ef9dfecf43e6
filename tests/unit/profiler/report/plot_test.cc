// Plots in the terminal and as SVG. KILN_PLOT_GALLERY=FOLDER writes the SVGs, to be looked at in a browser.
#include "profiler/report/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>

#include "profiler/report/svg_text.h"
#include "profiler/report/table.h"
#include "support/files.h"

namespace kiln::report {
namespace {

Plot small_plot() {
  Plot p;
  p.title = "t", p.x_label = "n", p.y_label = "us";
  // A gap in the middle, and a name that SVG must escape.
  p.lines = {{"up", {{0, 0}, {10, 10}}}, {"flat <b>", {{0, 5}, {5, NAN}, {10, 5}}}};
  return p;
}

/// Plots that go wrong easily.
std::map<std::string, Plot> gallery() {
  std::map<std::string, Plot> all;
  all["small"] = small_plot();
  {
    Plot& p = all["sweep"];
    p.title = "gelu(x @ w + b)", p.x_label = "n", p.y_label = "times as fast as cublas";
    p.x_log = true, p.bars = "95 % interval of the ratio";
    const double fused[] = {1.92, 1.71, 1.34, 1.12, 1.07, 1.05}, unfused[] = {0.7, 0.78, 0.88, 0.9, 0.93, 0.94};
    for (const char* name : {"unfused", "cublas", "fused"}) {
      p.lines.push_back({name, {}});
      for (int i = 0; i < 6; ++i) {
        // The baseline is 1 by definition and has no interval.
        const double y = name[0] == 'c' ? 1 : name[0] == 'f' ? fused[i] : unfused[i];
        p.lines.back().points.push_back(
            {128.0 * (1 << i), y, y * (0.97 - 0.02 * (5 - i)), y * (1.02 + 0.01 * (5 - i))});
      }
      if (name[0] == 'c')
        for (PlotPoint& point : p.lines.back().points) point.low = point.high = NAN;
    }
  }
  {
    Plot& p = all["one_point"];
    p.x_label = "n", p.y_label = "us", p.lines = {{"only", {{4096, 183.2, 181, 190}}}};
  }
  {
    Plot& p = all["equal_lines"];
    p.title = "two lines with the same values", p.x_label = "n", p.y_label = "GB/s";
    p.lines = {{"first", {{1, 2}, {2, 4}, {3, 3}}}, {"second", {{1, 2}, {2, 4}, {3, 3}}}};
  }
  {
    Plot& p = all["six_decades"];
    p.title = "six decades", p.x_label = "bytes", p.y_label = "us", p.x_log = p.y_log = true;
    p.lines = {{"copy", {}}, {"launch", {}}};
    for (int i = 0; i <= 12; ++i) {
      const double x = std::pow(10, i * 0.5 + 2.2);
      p.lines[0].points.push_back({x, 0.1 + x / 3.2e3, 0.09 + x / 3.3e3, 0.13 + x / 2.5e3});
      // No interval here: bars are drawn where there are some.
      p.lines[1].points.push_back({x, 2.1});
    }
  }
  {
    Plot& p = all["long_labels"];
    // Longer than any plot is wide: names are wrapped, then cut.
    p.title =
        "matmul_kernel_with_a_name_that_somebody_thought_about_for_long[BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, "
        "GROUP_M=8, num_warps=8, num_stages=3] over shapes of a transformer";
    p.x_label = "what is multiplied", p.y_label = "TFLOP/s of the product alone, without its epilogue";
    p.x_names = {"q projection of layer 1 (4096 × 4096)",
                 "k projection",
                 "attention output",
                 "mlp up, gated",
                 "mlp down after the activation",
                 "head",
                 "norm"};
    for (const char* name :
         {"a_long_variant_name_without_a_blank_that_goes_on_and_on_and_on_beyond_two_lines",
          "cublasLt GELU_BIAS heuristic's first of 32 algorithms, all of them tried once", "fused"}) {
      p.lines.push_back({name, {}});
      // Values that hardly look regular, so that lines cross.
      for (int i = 0; i < 7; ++i) p.lines.back().points.push_back({double(i), 300 + 40.0 * ((i * 7 + name[0]) % 9)});
    }
  }
  {
    Plot& p = all["gaps"];
    p.title = "missing values", p.x_label = "n", p.y_label = "us";
    p.lines = {{"with a gap", {{1, 3}, {2, 3.5}, {3, NAN}, {4, 5}, {5, 5.5}}},
               // An infinity is no value, like a gap.
               {"ends early", {{1, 1}, {2, 2}, {3, INFINITY}, {4, NAN}, {5, NAN}}},
               {"one of five", {{1, NAN}, {2, NAN}, {3, 4}, {4, NAN}, {5, NAN}}},
               {"none", {{1, NAN}, {2, NAN}}}};
  }
  {
    Plot& p = all["twelve"];
    p.title = "twelve lines", p.x_label = "n", p.y_label = "ms", p.x_log = true;
    for (int k = 0; k < 12; ++k) {
      p.lines.push_back({"variant " + std::to_string(k), {}});
      for (int i = 0; i < 8; ++i)
        p.lines.back().points.push_back({std::exp2(i + 7), (1 + 0.02 * k) * (i + 1) + 0.3 * std::sin(i + k)});
    }
  }
  {
    Plot& p = all["forty"];
    p.title = "forty lines";
    for (int k = 0; k < 40; ++k)
      // More lines than colours: patterns have to tell them apart.
      p.lines.push_back({"line " + std::to_string(k), {{0, double(k % 7)}, {1, double(k % 5)}}});
  }
  {
    Plot& p = all["narrow"];
    // A range far from zero, whose ticks need more digits than the values seem to have.
    p.title = "nearly the same", p.x_label = "run", p.y_label = "us";
    p.lines = {{"a", {}}};
    for (int i = 0; i < 200; ++i) p.lines[0].points.push_back({double(i), 1000 + std::sin(i * 0.3) * 0.4});
  }
  {
    Plot& p = all["large"];
    p.title = "large numbers", p.x_label = "elements", p.y_label = "bytes";
    p.lines = {{"x", {{0, 0}, {1e8, 4e8}, {3e8, 12e8}}}, {"y", {{0, 1e8}, {1e8, 2e8}, {3e8, 3e8}}}};
  }
  {
    Plot& p = all["roofline"];
    p.title = "roofline of cuda:0 (H200)", p.x_label = "FLOP/byte", p.y_label = "TFLOP/s", p.x_log = p.y_log = true;
    // Ceilings as lines with their names along them, measured kernels as points.
    p.lines = {{"memory: 4023 GB/s", {{0.02, 0.08}, {190, 765}}, PlotForm::kLine},
               {"L2: 9800 GB/s", {{0.02, 0.196}, {78, 765}}, PlotForm::kLine},
               {"f32 math: 60.1 TFLOP/s", {{6, 60.1}, {4000, 60.1}}, PlotForm::kLine},
               {"bf16 products: 765 TFLOP/s", {{78, 765}, {4000, 765}}, PlotForm::kLine},
               {"softmax(x): 91 % of memory", {{1.2, 4.4}}, PlotForm::kPoints},
               {"gelu(x @ w + b): 88 % of math", {{1365, 673}}, PlotForm::kPoints},
               {"layer_norm(x): 90 % of memory", {{1.4, 5.1}}, PlotForm::kPoints},
               {"rms_norm(x): 89 % of memory", {{1.3, 4.6}}, PlotForm::kPoints},
               {"exp(x): 95 % of memory", {{0.125, 0.47}}, PlotForm::kPoints}};
  }
  {
    Plot& p = all["nothing"];
    p.title = "nothing", p.y_label = "us", p.x_log = true;
    // Zero and below have no place on a logarithmic axis.
    p.lines = {{"a", {{0, 1}, {-1, 2}, {1, NAN}}}};
  }
  {
    Plot& p = all["many_names"];
    p.title = "many names", p.y_label = "us";
    p.lines = {{"us", {}}};
    // Ninety names cannot stand below one axis.
    for (int i = 0; i < 90; ++i) {
      p.x_names.push_back("kernel_" + std::to_string(i));
      p.lines[0].points.push_back({double(i), 1.0 + i % 13});
    }
  }
  return all;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

struct TextBox {
  double left, top, right, bottom;
  std::string text;
};

/// The upright texts of an SVG, where they stand.
std::vector<TextBox> texts_of(const std::string& svg) {
  static const std::regex kText(
      R"re(<text(?: class="([^"]*)")? x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)"(?: class="([^"]*)")?>([^<]*)</text>)re");
  std::vector<TextBox> out;
  for (std::sregex_iterator it(svg.begin(), svg.end(), kText), end; it != end; ++it) {
    const std::smatch& m = *it;
    const bool is_title = m[5] == "title";
    std::string text = m[6];
    for (const auto& [from, to] : {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&amp;", "&"}, {"&#39;", "'"}})
      for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, std::string(from).size(), to);
    // The estimate of widths is on the safe side by a tenth, which must not count as an overlap here.
    const double width = pixels_of(text, is_title ? 14 : 12) / 1.1;
    const double x = std::stod(m[2]), y = std::stod(m[3]);
    // The anchor of a text says what its x is.
    const double left = m[4] == "start" ? x : m[4] == "end" ? x - width : x - width / 2;
    out.push_back({left, y - 10, left + width, y + 2, text});
  }
  return out;
}

TEST(PlotSvg, NothingOverlapsOrIsCutOff) {
  const char* folder = std::getenv("KILN_PLOT_GALLERY");
  for (const auto& [name, plot] : gallery()) {
    const std::string svg = to_svg(plot);
    if (folder) {
      ASSERT_TRUE(write_file_atomic(std::string(folder) + "/" + name + ".svg", svg).ok());
    }
    std::smatch size;
    ASSERT_TRUE(std::regex_search(svg, size, std::regex(R"re(viewBox="0 0 (\d+) (\d+)")re"))) << name;
    const double width = std::stod(size[1]), height = std::stod(size[2]);
    const std::vector<TextBox> texts = texts_of(svg);
    EXPECT_GE(texts.size(), 4u) << name;
    for (size_t i = 0; i < texts.size(); ++i) {
      const TextBox& a = texts[i];
      EXPECT_TRUE(a.left >= 0 && a.top >= 0 && a.right <= width && a.bottom <= height) << name << " cuts " << a.text;
      for (size_t k = 0; k < i; ++k) {
        const TextBox& b = texts[k];
        EXPECT_FALSE(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
            << name << ": " << a.text << " over " << b.text;
      }
    }
    // A number that was never formatted would show as one of these.
    for (const char* never : {"nan", "inf,", "-inf"}) EXPECT_EQ(svg.find(never), std::string::npos) << name;
  }
}

TEST(PlotSvg, ANameAlongALineHidesNoPoint) {
  Plot p;
  p.title = "roofline", p.x_label = "FLOP/byte", p.y_label = "GFLOP/s", p.x_log = p.y_log = true;
  p.lines = {{"memory: 6.399 GB/s", {{0.03, 0.2}, {12, 78}}, PlotForm::kLine},
             {"f32 math: 78.43 GFLOP/s", {{12, 78}, {500, 78}}, PlotForm::kLine}};
  const auto place_of_name = [](const Plot& plot) {
    const std::string svg = to_svg(plot);
    std::smatch at;
    EXPECT_TRUE(std::regex_search(svg, at, std::regex(R"re(translate\(([-\d.]+) ([-\d.]+)\))re")));
    return std::pair(std::stod(at[1]), std::stod(at[2]));
  };
  // Where the name stands without the point.
  const auto alone = place_of_name(p);
  p.lines.push_back({"a + 1: 122 % of memory", {{0.125, 0.98}}, PlotForm::kPoints});
  EXPECT_NE(place_of_name(p), alone);
  p.lines.back().points = {{100, 20}};
  EXPECT_EQ(place_of_name(p), alone);
}

TEST(PlotSvg, IsADocumentForLightAndDark) {
  const std::string svg = to_svg(small_plot());
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("@media (prefers-color-scheme: dark)"), std::string::npos);
  EXPECT_NE(svg.find("role=\"img\" aria-label=\"t\""), std::string::npos);
  EXPECT_NE(svg.find(">flat &lt;b&gt;</text>"), std::string::npos) << "a label where the line ends";
  // Four points have a value.
  EXPECT_EQ(count(svg, "<title>"), 4u) << "a tooltip per point";
  EXPECT_NE(svg.find("<title>up: 10, 10</title>"), std::string::npos);
}

TEST(PlotSvg, GapsBreakTheLine) {
  const std::string svg = to_svg(gallery()["gaps"]);
  std::smatch path;
  ASSERT_TRUE(std::regex_search(svg, path, std::regex("<path class=\"c0\" d=\"([^\"]*)\"")));
  // Two parts of the line: one M for each.
  EXPECT_EQ(count(path[1], "M"), 2u) << path[1];
  EXPECT_EQ(count(path[1], "L"), 2u) << path[1];
  EXPECT_EQ(svg.find(">none<"), std::string::npos) << "a line without values has no name";
}

TEST(PlotSvg, LinesWithTheSameValuesAreBothSeen) {
  // The second of two equal lines is dashed, so that the first shows through.
  EXPECT_EQ(count(to_svg(gallery()["equal_lines"]), "stroke-dasharray=\"7 7\""), 1u);
  EXPECT_EQ(count(to_svg(gallery()["small"]), "stroke-dasharray"), 0u);
}

TEST(PlotSvg, ErrorBarsAreExplained) {
  const std::string svg = to_svg(gallery()["sweep"]);
  EXPECT_NE(svg.find("bars: 95 % interval of the ratio"), std::string::npos);
  // The interval itself stands in the tooltip.
  EXPECT_NE(svg.find("(1.67 to 2.054)"), std::string::npos);
  Plot without = gallery()["sweep"];
  for (PlotLine& l : without.lines)
    for (PlotPoint& p : l.points) p.low = p.high = NAN;
  EXPECT_EQ(to_svg(without).find("bars:"), std::string::npos);
}

TEST(PlotSvg, NothingToDraw) {
  EXPECT_NE(to_svg(gallery()["nothing"]).find("no values to draw"), std::string::npos);
  EXPECT_EQ(to_terminal(gallery()["nothing"], PlotStyle::kPlain), "");
}

TEST(PlotText, Plain) {
  EXPECT_EQ(to_terminal(small_plot(), PlotStyle::kPlain, 21, 5),
            "t\n"
            "us\n"
            "10 +              ..a\n"
            "   |          ....\n"
            "   |b     ....      b\n"
            "   |  ....\n"
            " 0 +a.\n"
            "   ++---------------+\n"
            "    0              10\n"
            "                    n\n"
            "  a up\n"
            "  b flat <b>\n");
}

TEST(PlotText, NoLineIsWiderThanTheTerminal) {
  for (const auto& [name, plot] : gallery())
    for (const int columns : {20, 50, 60, 80}) {
      const std::string text = to_terminal(plot, PlotStyle::kBraille, columns);
      for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        EXPECT_LE(display_width(std::string_view(text).substr(at, end - at)), columns) << name << "\n" << text;
        at = end + 1;
      }
    }
}

TEST(PlotText, AsciiHasPowersToo) {
  const std::string text = to_terminal(gallery()["six_decades"], PlotStyle::kPlain);
  EXPECT_NE(text.find("1e8"), std::string::npos) << text;
  // A terminal without UTF-8 gets nothing else.
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); })) << text;
  EXPECT_NE(to_terminal(gallery()["large"], PlotStyle::kPlain).find("bytes (x1e9)"), std::string::npos);
}

TEST(PlotText, BrailleHasNoEscapesWithoutColour) {
  std::string text = to_terminal(small_plot(), PlotStyle::kBraille);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("\xE2\xA0"), std::string::npos);
  std::string color = to_terminal(small_plot(), PlotStyle::kColor);
  EXPECT_NE(color.find("\033[34m"), std::string::npos);
}

TEST(Plot, WantsLog) {
  EXPECT_TRUE(wants_log({1, 10, 100}));
  EXPECT_FALSE(wants_log({1, 2, 3}));
  EXPECT_FALSE(wants_log({0, 100}));
  EXPECT_FALSE(wants_log({}));
}

TEST(SvgText, WrapsWhereItReadsWell) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("short", 12, 100, 3), Lines{"short"});
  EXPECT_EQ(wrapped("two words here", 12, 70, 3), (Lines{"two words", "here"}));
  EXPECT_EQ(wrapped("with_a_long_name", 12, 70, 3), (Lines{"with_a_", "long_name"}));
  EXPECT_EQ(wrapped("", 12, 60, 3), Lines{});
  const Lines cut = wrapped("words words words words words", 12, 60, 2);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_TRUE(cut[1].ends_with("…")) << cut[1];
  // By a tenth more than asked for: widths are estimates.
  for (const std::string& line : cut) EXPECT_LE(pixels_of(line, 12), 66) << line;
  // A character of two bytes must never be cut.
  for (const std::string& line : wrapped("ééééééééééééééééééééééé", 12, 50, 9)) EXPECT_EQ(line.size() % 2, 0u);
}

}  // namespace
}  // namespace kiln::report
