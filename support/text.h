// Small text functions that several layers share.
#pragma once
#include <string_view>

namespace kiln {

inline constexpr std::string_view kBlanks = " \t\r\n";

inline bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

/// Without the blanks at both ends.
inline std::string_view trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view{}
                                         : s.substr(first, s.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace kiln
