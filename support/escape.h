// Texts as JSON strings and in HTML, for files that are too large to be built as a tree of values first.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace kiln {

/// Appends the text in quotes. What is no UTF-8 becomes U+FFFD; "</" and "<!" are escaped, so that it may stand in
/// HTML.
void append_json(fmt::memory_buffer& out, std::string_view text);

/// The text as it stands between tags or in quotes of an attribute. What is no UTF-8 becomes U+FFFD.
std::string html_escaped(std::string_view text);

}  // namespace kiln
