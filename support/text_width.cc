#include "support/text_width.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "support/escape.h"
#include "support/text_width_tables.h"

namespace kiln {

namespace {

template <size_t N>
bool is_among(const CharacterRange (&ranges)[N], char32_t c) {
  const auto* it = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                    [](const CharacterRange& r, char32_t code) { return r.last < code; });
  return it != std::end(ranges) && it->first <= c;
}

constexpr char32_t kNotUtf8 = 0xFFFD;

}  // namespace

int character_width(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
  if (c < 0x300) return 1;
  if (is_among(kZeroWidth, c)) return 0;
  return is_among(kWide, c) ? 2 : 1;
}

Character first_character(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t length = utf8_length(text);
  if (length == 0) return {kNotUtf8, 1};
  if (length == 1) return {byte(0), 1};
  char32_t code = byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3Fu);
  return {code, length};
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

size_t cluster_length(std::string_view text) {
  size_t length = first_character(text).bytes;
  if (length == 0 || text[0] == '\n') return length;
  for (;;) {
    const Character next = first_character(text.substr(length));
    if (next.bytes == 0 || is_control(next.code) || character_width(next.code) > 0) return length;
    length += next.bytes;
  }
}

size_t last_cluster_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    // Back over one character: at most three bytes that continue one, if they do.
    size_t bytes = 1;
    const std::string_view rest = text.substr(0, text.size() - length);
    for (size_t n = 1; n <= std::min<size_t>(4, rest.size()); ++n)
      if (utf8_length(rest.substr(rest.size() - n)) == n) {
        bytes = n;
        break;
      }
    length += bytes;
    const Character c = first_character(rest.substr(rest.size() - bytes));
    if (is_control(c.code) || character_width(c.code) > 0) break;
    if (rest.size() > bytes && rest[rest.size() - bytes - 1] == '\n') break;
  }
  return length;
}

int text_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    width += character_width(c.code);
    text.remove_prefix(c.bytes);
  }
  return width;
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.bytes == 1 && c.code == kNotUtf8)
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    else if (!is_control(c.code) || c.code == '\n' || c.code == '\t')
      out += text.substr(0, c.bytes);
    else
      out += c.code < 0x100 ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c.code))
                            : fmt::format("\\u{:04x}", static_cast<uint32_t>(c.code));
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string_view beginning_of_width(std::string_view text, int cells) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const size_t length = cluster_length(text.substr(bytes));
    cells -= text_width(text.substr(bytes, length));
    if (cells < 0) break;
    bytes += length;
  }
  return text.substr(0, bytes);
}

std::string wrap_lines(std::string_view text, int cells) {
  if (cells <= 0) return std::string(text);
  std::string out;
  auto wrap = [&](std::string_view line) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const size_t deeper = std::min(indent + 4, static_cast<size_t>(cells) / 2);
    out.append(line, 0, indent);
    int width = static_cast<int>(indent);
    bool first = true;  // word of its line, which may be longer than there is room
    for (size_t at = indent; at < line.size();) {
      // A word with the blanks before it.
      const size_t word = std::min(line.find_first_not_of(' ', at), line.size());
      const size_t end = std::min(line.find(' ', word), line.size());
      const int blanks = static_cast<int>(word - at), needed = text_width(line.substr(word, end - word));
      if (!first && width + blanks + needed > cells) {
        out.append("\n").append(deeper, ' ');
        width = static_cast<int>(deeper);
      } else {
        out.append(line, at, word - at);
        width += blanks;
      }
      out.append(line, word, end - word);
      width += needed;
      first = false;
      at = end;
    }
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (text_width(line) <= cells)
      out += line;
    else
      wrap(line);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace kiln
