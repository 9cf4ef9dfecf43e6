// Texts in an SVG, whose fonts are only known where it is shown: how wide they are at most, and where to break them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln::report {

/// Pixels at a font size, by Helvetica's widths and some more for the fonts that stand in for it.
double pixels_of(std::string_view utf8, double font_size);

/// Lines of at most `width` pixels, broken at blanks, behind one of ",;:/_-" or, where nothing else helps, anywhere.
/// What is beyond `most` lines is cut, with "…" for it.
std::vector<std::string> wrapped(std::string_view utf8, double font_size, double width, size_t most);

}  // namespace kiln::report
