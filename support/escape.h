// What of a text is UTF-8; texts as JSON strings and in HTML, for files that are too large to be built as a tree of
// values first.
#pragma once
#include <string>
#include <string_view>

namespace kiln {

/// Bytes of the UTF-8 character that the text begins with; 0: it begins with none (RFC 3629: no surrogates, nothing
/// longer than needed, nothing above U+10FFFF).
size_t utf8_length(std::string_view text);

/// Appends the text in quotes. What is no UTF-8 becomes U+FFFD; "</" and "<!" are escaped, so that it may stand in
/// HTML.
void append_json(std::string& out, std::string_view text);

/// The text as it stands between tags or in quotes of an attribute. What is no UTF-8 becomes U+FFFD.
std::string html_escaped(std::string_view text);

}  // namespace kiln
