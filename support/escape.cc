#include "support/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace kiln {

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and values above U+10FFFF are invalid, although their bytes look well-formed.
  const uint8_t second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return length;
}

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '<'; }

}  // namespace

void append_json(std::string& out, std::string_view text) {
  out.push_back('"');
  for (size_t i = 0; i < text.size();) {
    size_t plain = i;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(i, plain - i);
    i = plain;
    if (i == text.size()) break;
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '"' || c == '\\') {
      out.push_back('\\'), out.push_back(c);
      ++i;
    } else if (c == '\n') {
      out += "\\n";
      ++i;
      // The text is embedded in a script element of an HTML page, which "</script" or "<!--" would end.
    } else if (c == '<' && next != '/' && next != '!') {
      out.push_back(c);
      ++i;
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F || c == '<') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
      ++i;
    } else if (size_t length = utf8_length(text.substr(i))) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += kReplacement;
      ++i;
    }
  }
  out.push_back('"');
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text.substr(i));
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (length == 0 || (static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\t'))
      out += kReplacement;
    else
      out += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

}  // namespace kiln
