#include "repl/script/value/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "support/text_width.h"

namespace kiln::script {

size_t character_bytes(std::string_view text, size_t at) {
  auto lead = static_cast<uint8_t>(text[at]);
  // Also of a text that is cut off or no UTF-8: the rest is one character.
  size_t n = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  return std::min(n, text.size() - at);
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

size_t byte_of_character(std::string_view text, size_t index) {
  size_t at = 0;
  // From the beginning each time, as UTF-8 has no index; most texts are short.
  while (index-- > 0 && at < text.size()) at += character_bytes(text, at);
  return at;
}

std::string ascii_of(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t n = character_bytes(text, at);
    if (n == 1) {
      out += text[at++];
      continue;
    }
    // The first byte has as many marks in front as the character has bytes.
    uint32_t code = static_cast<uint8_t>(text[at]) & (0x7Fu >> n);
    for (size_t i = 1; i < n; ++i) code = code << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3Fu);
    out += code < 0x100     ? fmt::format("\\x{:02x}", code)
           : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                            : fmt::format("\\U{:08x}", code);
    at += n;
  }
  return out;
}

namespace {

constexpr int kMaxWidth = 1 << 20;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool has_sign = false;
  bool alternate = false;
  bool zero_flag = false;  // the alignment comes from a '0' before the width
  int width = 0;
  char group = 0;  // , or _
  int precision = -1;
  char type = 0;
};

Result<Spec> parse_spec(std::string_view text) {
  Spec s;
  std::string_view rest = text;
  bool has_fill = false;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  auto bad = [&] {
    return error(ErrorKind::kValue, "'{}' is no format: it reads [[fill]align][sign][#][0][width][,][.precision][type]",
                 text);
  };
  if (!rest.empty()) {
    // A fill is a character of any length, known by the alignment behind it.
    size_t n = character_bytes(rest, 0);
    if (rest.size() > n && is_align(rest[n])) {
      s.fill = rest.substr(0, n);
      has_fill = true;
      s.align = rest[n];
      rest.remove_prefix(n + 1);
    } else if (is_align(rest[0])) {
      s.align = rest[0];
      rest.remove_prefix(1);
    }
  }
  auto take = [&](std::string_view set) -> char {
    if (rest.empty() || set.find(rest[0]) == std::string_view::npos) return 0;
    char c = rest[0];
    rest.remove_prefix(1);
    return c;
  };
  if (char c = take("+- ")) s.sign = c, s.has_sign = true;
  s.alternate = take("#") != 0;
  if (take("0")) {
    if (!has_fill) s.fill = "0";
    if (!s.align) s.align = '=', s.zero_flag = true;
  }
  auto number = [&](int& out) {
    out = 0;
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      // Stops growing at the limit, so that no number of digits overflows.
      out = std::min(out * 10 + (rest[0] - '0'), kMaxWidth + 1);
      rest.remove_prefix(1);
    }
    return out <= kMaxWidth;
  };
  if (!number(s.width)) return bad();
  s.group = take(",_");
  if (take(".")) {
    if (rest.empty() || rest[0] < '0' || rest[0] > '9' || !number(s.precision)) return bad();
  }
  if (!rest.empty()) {
    s.type = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty()) return bad();
  return s;
}

std::string pad(const Spec& s, std::string_view sign, const std::string& body, char default_align) {
  size_t length = count_characters(sign) + count_characters(body);
  size_t missing = static_cast<size_t>(s.width) > length ? static_cast<size_t>(s.width) - length : 0;
  char align = s.align ? s.align : default_align;
  size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before, after;
  for (size_t i = 0; i < left; ++i) before += s.fill;
  for (size_t i = left; i < missing; ++i) after += s.fill;
  if (align == '=') return std::string(sign) + before + body;
  return before + std::string(sign) + body + after;
}

/// Puts a separator every `every` digits of the integer part, which ends at `end`.
std::string grouped(std::string digits, size_t end, char separator, size_t every) {
  for (size_t i = end; i > every; i -= every) digits.insert(i - every, 1, separator);
  return digits;
}

/// With `0` fill the separators go on into the padding, as in Python: f"{1:08,}" is "0,000,001".
std::string zero_filled(const Spec& s, std::string_view sign, std::string digits, size_t every) {
  size_t end = digits.find_first_not_of("0123456789abcdefABCDEF");
  if (end == std::string::npos) end = digits.size();
  if (s.group && s.fill == "0" && s.align == '=') {
    size_t tail = digits.size() - end;
    auto total = [&](size_t whole) { return sign.size() + whole + (whole - 1) / every + tail; };
    while (total(end) < static_cast<size_t>(s.width)) {
      digits.insert(0, "0");
      ++end;
    }
  }
  return s.group ? grouped(std::move(digits), end, s.group, every) : digits;
}

Result<std::string> format_int(const Spec& s, ast::Int value) {
  bool negative = value < 0;
  // Negated as unsigned: the smallest int has no positive counterpart.
  auto magnitude = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string sign = negative ? "-" : s.sign == '-' ? "" : std::string(1, s.sign);
  if (s.precision >= 0) return error(ErrorKind::kValue, "a precision does not apply to an int");
  std::string digits;
  size_t every = 3;
  if (s.type == 'c') {
    if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      return error(ErrorKind::kValue, "{} is no character", ast::to_string(value));
    std::string character;
    append_utf8(character, static_cast<char32_t>(value));
    return pad(s, "", character, '>');
  }
  if (s.type == 0 || s.type == 'd' || s.type == 'n') {
    digits = ast::to_string(value);
    if (negative) digits.erase(0, 1);
  } else {
    unsigned bits = s.type == 'b' ? 1 : s.type == 'o' ? 3 : 4;
    const char* set = s.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    do {
      digits += set[static_cast<size_t>(magnitude & ((1u << bits) - 1))];
      magnitude >>= bits;
    } while (magnitude != 0);
    std::reverse(digits.begin(), digits.end());
    if (s.alternate) sign += std::string("0") + s.type;
    // Python groups hexadecimal, octal and binary digits by four, and by `_` alone.
    every = 4;
    if (s.group == ',') return error(ErrorKind::kValue, "',' does not go with the format '{}'", s.type);
  }
  return pad(s, sign, zero_filled(s, sign, std::move(digits), every), '>');
}

std::string printed(double v, char type, int precision, bool alternate) {
  std::string f = alternate ? "%#.*" : "%.*";
  f += type;
  // 400 for the largest double's digits before the point.
  std::string out(static_cast<size_t>(precision) + 400, '\0');
  int n = std::snprintf(out.data(), out.size(), f.c_str(), precision, v);
  out.resize(static_cast<size_t>(n));
  return out;
}

Result<std::string> format_float(const Spec& s, double value) {
  std::string sign = std::signbit(value) && !std::isnan(value) ? "-" : s.sign == '-' ? "" : std::string(1, s.sign);
  double v = std::fabs(value);
  std::string digits;
  if (!std::isfinite(value)) {
    digits = std::isnan(value) ? "nan" : "inf";
    if (s.type == 'E' || s.type == 'F' || s.type == 'G')
      std::transform(digits.begin(), digits.end(), digits.begin(), ::toupper);
    return pad(s, sign, s.type == '%' ? digits + "%" : digits, '>');
  }
  switch (s.type) {
    case 0:
      if (s.precision < 0) {
        digits = ast::float_repr(v);
        break;
      }
      digits = printed(v, 'g', std::max(s.precision, 1), s.alternate);
      // Without a type, a float keeps at least one digit behind the point, or is written with an exponent.
      if (digits.find_first_of(".e") != std::string::npos) break;
      // %g left the point out: a whole number of fewer digits than asked for.
      if (digits.size() < static_cast<size_t>(std::max(s.precision, 1))) {
        digits += ".0";
      } else {
        digits = printed(v, 'e', std::max(s.precision, 1) - 1, s.alternate);
        size_t mark = digits.find('e'), last = digits.find_last_not_of('0', mark - 1);
        if (digits.find('.') < mark)
          digits.erase(digits[last] == '.' ? last : last + 1, mark - (digits[last] == '.' ? last : last + 1));
      }
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
      digits = printed(v, s.type, s.precision < 0 ? 6 : s.precision, s.alternate);
      break;
    case 'g':
    case 'G':
    case 'n':
      digits = printed(v, s.type == 'n' ? 'g' : s.type, s.precision < 0 ? 6 : std::max(s.precision, 1), s.alternate);
      break;
    case '%':
      digits = printed(v * 100, 'f', s.precision < 0 ? 6 : s.precision, s.alternate) + "%";
      break;
    default:
      return error(ErrorKind::kValue, "the format '{}' does not apply to a float", s.type);
  }
  size_t end = digits.find_first_not_of("0123456789");
  std::string whole = digits.substr(0, end), tail = end == std::string::npos ? "" : digits.substr(end);
  if (s.group) {
    // Zeros are part of the number here, and get separators too.
    if (s.fill == "0" && s.align == '=')
      while (sign.size() + whole.size() + (whole.size() - 1) / 3 + tail.size() < static_cast<size_t>(s.width))
        whole.insert(0, "0");
    whole = grouped(whole, whole.size(), s.group, 3);
  }
  return pad(s, sign, whole + tail, '>');
}

}  // namespace

Result<std::string> format_constant(const ast::Constant& value, std::string_view text) {
  KILN_TRY(Spec s, parse_spec(text));
  constexpr std::string_view kIntTypes = "bcdnoxX", kFloatTypes = "eEfFgG%";
  if (const auto* str = std::get_if<std::string>(&value)) {
    if (s.zero_flag) s.align = '<';  // of a text the zeros stand behind it
    if ((s.type && s.type != 's') || s.align == '=' || s.has_sign || s.group)
      return error(ErrorKind::kValue, "the format '{}' does not apply to a str", text);
    std::string out = *str;
    if (s.precision >= 0) out.resize(byte_of_character(out, static_cast<size_t>(s.precision)));
    return pad(s, "", out, '<');
  }
  if (std::holds_alternative<ast::None>(value)) {
    if (!text.empty()) return error(ErrorKind::kType, "the format '{}' does not apply to None", text);
    return std::string("None");
  }
  if (const auto* b = std::get_if<bool>(&value)) {
    if (text.empty()) return std::string(*b ? "True" : "False");
    return format_constant(ast::Int{*b}, text);
  }
  if (const auto* i = std::get_if<ast::Int>(&value)) {
    if (s.type && kFloatTypes.find(s.type) != std::string_view::npos) return format_float(s, static_cast<double>(*i));
    if (s.type && kIntTypes.find(s.type) == std::string_view::npos)
      return error(ErrorKind::kValue, "the format '{}' does not apply to an int", s.type);
    return format_int(s, *i);
  }
  if (s.type && kFloatTypes.find(s.type) == std::string_view::npos && s.type != 'n')
    return error(ErrorKind::kValue, "the format '{}' does not apply to a float", s.type);
  return format_float(s, std::get<double>(value));
}

}  // namespace kiln::script
