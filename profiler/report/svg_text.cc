#include "profiler/report/svg_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kiln::report {

namespace {

// Thousandths of the font's size, from ' ' to '~': the metrics of Adobe's Helvetica.
constexpr std::array<int16_t, 95> kWidths = {
    278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,  //  !"#$%&'()*+,-./
    556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,  // 0-9:;<=>?
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,  // @A-O
    667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,  // P-Z[\]^_
    333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,  // `a-o
    556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};      // p-z{|}~
constexpr double kOtherFonts = 1.1;

size_t length_of(char first) {
  const auto c = static_cast<uint8_t>(first);
  return c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

double character_width(std::string_view c) {
  if (c.size() == 1) return c[0] >= ' ' && c[0] <= '~' ? kWidths[static_cast<size_t>(c[0] - ' ')] : 600;
  return c[0] >= '\xE3' ? 1000 : 620;  // from U+3000 on as wide as high
}

bool breaks_behind(char c) { return std::string_view(" ,;:/_-").find(c) != std::string_view::npos; }

}  // namespace

double pixels_of(std::string_view utf8, double font_size) {
  double sum = 0;
  for (size_t i = 0; i < utf8.size(); i += length_of(utf8[i]))
    sum += character_width(utf8.substr(i, length_of(utf8[i])));
  return sum * font_size * kOtherFonts / 1000;
}

std::vector<std::string> wrapped(std::string_view utf8, double font_size, double width, size_t most) {
  std::vector<std::string> lines;
  while (!utf8.empty()) {
    size_t end = 0, good = 0;  // what fits, and the last place in it to break at
    while (end < utf8.size()) {
      const size_t next = std::min(end + length_of(utf8[end]), utf8.size());
      if (end > 0 && pixels_of(utf8.substr(0, next), font_size) > width) break;
      end = next;
      if (breaks_behind(utf8[end - 1])) good = end;
    }
    if (end < utf8.size() && lines.size() + 1 == most) {
      while (end > 1 && pixels_of(utf8.substr(0, end), font_size) + font_size > width) do
          --end;
        while (end > 1 && (static_cast<uint8_t>(utf8[end]) & 0xC0) == 0x80);
      lines.push_back(std::string(utf8.substr(0, end)) + "…");
      return lines;
    }
    if (end < utf8.size() && good > end / 3) end = good;
    lines.emplace_back(utf8.substr(0, end));
    while (lines.back().ends_with(' ')) lines.back().pop_back();
    utf8.remove_prefix(end);
  }
  return lines;
}

}  // namespace kiln::report
