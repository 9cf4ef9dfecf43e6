// Characters as a terminal shows them: how many cells each takes, and texts of others made safe to print. Independent
// of the locale.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

/// Cells of a character: 0 (combining marks, joiners), 1 or 2 (CJK, emoji). Control characters count as 0.
int character_width(char32_t c);

/// One code point of a UTF-8 text; bytes that are no UTF-8 are taken one at a time.
struct Character {
  char32_t code = 0;  // U+FFFD for a byte that is no UTF-8
  size_t bytes = 0;   // 0 at the end of the text
};
Character first_character(std::string_view text);

/// Appends a code point as UTF-8.
void append_utf8(std::string& out, char32_t code);

/// Bytes of what a cursor steps over at the start of the text: a character and the marks that combine with it.
size_t cluster_length(std::string_view text);
/// The same at the end of the text.
size_t last_cluster_length(std::string_view text);

/// Cells of a text without control characters.
int text_width(std::string_view text);

/// The longest beginning of a text without control characters that takes at most so many cells; characters stay whole.
std::string_view beginning_of_width(std::string_view text, int cells);

/// The text with lines of more cells than that broken at blanks; what goes on stands four cells deeper than its line. A
/// longer word stays whole. 0 cells: as it is.
std::string wrap_lines(std::string_view text, int cells);

/// Whether a terminal would act on the character instead of showing it: C0, DEL, C1, and the marks that turn the
/// direction of writing.
bool is_control(char32_t c);

/// The text with nothing that a terminal would act on: such characters but tabs and ends of lines become \x1b, \u202e…,
/// and bytes that are no UTF-8 \xff.
std::string printable(std::string_view text);

}  // namespace kiln
