#include "support/ptx_name.h"

#include <charconv>

#include "support/text_width.h"

namespace kiln {

std::string ptx_name(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const auto [code, bytes] = first_character(name);
    name.remove_prefix(bytes);
    if (code < 0x80) {
      out += static_cast<char>(code);
      continue;
    }
    char hex[8];
    const auto end = std::to_chars(hex, hex + sizeof hex, static_cast<uint32_t>(code), 16).ptr;
    out += '$', out.append(hex, end), out += '$';
  }
  return out;
}

std::string source_name(std::string_view ptx_name) {
  std::string out;
  while (!ptx_name.empty()) {
    const size_t end = ptx_name[0] == '$' ? ptx_name.find('$', 1) : std::string_view::npos;
    if (end != std::string_view::npos) {
      uint32_t code = 0;
      const auto [stop, failed] = std::from_chars(ptx_name.data() + 1, ptx_name.data() + end, code, 16);
      // What Kiln does not write is of another compiler: $__internal_0_$.
      if (failed == std::errc() && stop == ptx_name.data() + end && code >= 0x80 && code < 0x110000) {
        append_utf8(out, static_cast<char32_t>(code));
        ptx_name.remove_prefix(end + 1);
        continue;
      }
    }
    out += ptx_name[0];
    ptx_name.remove_prefix(1);
  }
  return out;
}

}  // namespace kiln
