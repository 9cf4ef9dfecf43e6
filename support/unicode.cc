#include "support/unicode.h"

#include <algorithm>
#include <iterator>

#include "support/text_width.h"

namespace kiln::unicode {

namespace {

/// Neighbours with the same properties, which are bits of Flag.
struct Range {
  uint32_t first, last;
  uint16_t flags;
};
/// Characters that become the one at a difference.
struct Single {
  uint32_t first, last;
  uint8_t stride;
  int32_t difference;
};
/// A character that becomes several.
struct Several {
  uint32_t code;
  const char* text;
};
#include "support/unicode_table.def"

enum Flag : uint16_t {
  kAlpha = 1 << 0,
  kDecimal = 1 << 1,
  kDigit = 1 << 2,
  kNumeric = 1 << 3,
  kSpace = 1 << 4,
  kPrintable = 1 << 5,
  kLowercase = 1 << 6,
  kUppercase = 1 << 7,
  kTitlecase = 1 << 8,
  kIdentifierStart = 1 << 9,
  kIdentifierPart = 1 << 10,
  kCased = 1 << 11,
  kIgnorable = 1 << 12,
};

uint16_t ascii_flags(char32_t c) {
  const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9';
  unsigned flags = c >= 0x20 && c < 0x7F ? kPrintable : 0;
  if (lower) flags |= kLowercase;
  if (upper) flags |= kUppercase;
  if (lower || upper) flags |= kAlpha | kCased | kIdentifierStart | kIdentifierPart;
  if (digit) flags |= kDecimal | kDigit | kNumeric | kIdentifierPart;
  if (c == '_') flags |= kIdentifierStart | kIdentifierPart;
  if (c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F)) flags |= kSpace;
  if (c == '\'' || c == '.' || c == ':' || c == '^' || c == '`') flags |= kIgnorable;
  return static_cast<uint16_t>(flags);
}

bool has(char32_t c, uint16_t flag) {
  if (c < 0x80) return (ascii_flags(c) & flag) != 0;
  const auto* row = std::upper_bound(std::begin(kRanges), std::end(kRanges), c,
                                     [](char32_t v, const Range& r) { return v < r.first; });
  return row != std::begin(kRanges) && c <= std::prev(row)->last && (std::prev(row)->flags & flag) != 0;
}

template <size_t M, size_t N>
void append_form(std::string& out, char32_t c, const Single (&single)[M], const Several (&several)[N]) {
  const auto* text = std::lower_bound(std::begin(several), std::end(several), c,
                                      [](const Several& s, char32_t v) { return s.code < v; });
  if (text != std::end(several) && text->code == c) {
    out += text->text;
    return;
  }
  // Rows are in the order of their first characters; those with a stride may overlap, so a few are looked at.
  const auto* row = std::upper_bound(std::begin(single), std::end(single), c,
                                     [](char32_t v, const Single& s) { return v < s.first; });
  for (int looked = 0; row != std::begin(single) && looked < 4; ++looked) {
    --row;
    if (c > row->last || (c - row->first) % row->stride != 0) continue;
    append_utf8(out, static_cast<char32_t>(static_cast<int64_t>(c) + row->difference));
    return;
  }
  append_utf8(out, c);
}

char32_t ascii_shifted(char32_t c, char from, int by) {
  return c >= static_cast<char32_t>(from) && c < static_cast<char32_t>(from + 26)
             ? static_cast<char32_t>(static_cast<int>(c) + by)
             : c;
}

}  // namespace

bool is_alpha(char32_t c) { return has(c, kAlpha); }
bool is_decimal(char32_t c) { return has(c, kDecimal); }
int decimal_value(char32_t c) {
  if (c < 0x80) return static_cast<int>(c - '0');
  // Digits of a script follow one another from its 0; five such rows stand side by side in one range.
  const auto* row = std::upper_bound(std::begin(kRanges), std::end(kRanges), c,
                                     [](char32_t v, const Range& r) { return v < r.first; });
  return static_cast<int>((c - std::prev(row)->first) % 10);
}
bool is_digit(char32_t c) { return has(c, kDigit); }
bool is_numeric(char32_t c) { return has(c, kNumeric); }
bool is_space(char32_t c) { return has(c, kSpace); }
bool is_printable(char32_t c) { return has(c, kPrintable); }
bool is_lower(char32_t c) { return has(c, kLowercase); }
bool is_upper(char32_t c) { return has(c, kUppercase); }
bool is_title(char32_t c) { return has(c, kTitlecase); }
bool is_identifier_start(char32_t c) { return has(c, kIdentifierStart); }
bool is_identifier_part(char32_t c) { return has(c, kIdentifierPart); }
bool is_cased(char32_t c) { return has(c, kCased); }

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) return append_utf8(out, ascii_shifted(c, 'a', -32));
  append_form(out, c, kUpper, kUpperSeveral);
}
void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) return append_utf8(out, ascii_shifted(c, 'A', 32));
  append_form(out, c, kLower, kLowerSeveral);
}
void append_title(std::string& out, char32_t c) {
  if (c < 0x80) return append_utf8(out, ascii_shifted(c, 'a', -32));
  append_form(out, c, kTitle, kTitleSeveral);
}
void append_fold(std::string& out, char32_t c) {
  if (c < 0x80) return append_utf8(out, ascii_shifted(c, 'A', 32));
  append_form(out, c, kFold, kFoldSeveral);
}

bool is_final_sigma(std::string_view text, size_t at, size_t bytes) {
  size_t before = at;
  bool letter = false;
  while (before > 0) {
    do --before;
    while (before > 0 && (static_cast<uint8_t>(text[before]) & 0xC0) == 0x80);
    const char32_t c = first_character(text.substr(before)).code;
    if (has(c, kIgnorable)) continue;
    letter = has(c, kCased);
    break;
  }
  if (!letter) return false;
  for (size_t i = at + bytes; i < text.size();) {
    const Character c = first_character(text.substr(i));
    if (!has(c.code, kIgnorable)) return !has(c.code, kCased);
    i += c.bytes;
  }
  return true;
}

size_t line_end(std::string_view text) {
  if (text.starts_with("\r\n")) return 2;
  const Character c = first_character(text);
  const bool ends = (c.code >= 0x0A && c.code <= 0x0D) || (c.code >= 0x1C && c.code <= 0x1E) || c.code == 0x85 ||
                    c.code == 0x2028 || c.code == 0x2029;
  return ends ? c.bytes : 0;
}

}  // namespace kiln::unicode
