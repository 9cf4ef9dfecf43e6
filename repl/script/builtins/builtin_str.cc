// Methods of str.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "repl/script/builtins/builtins.h"
#include "repl/script/builtins/limits.h"
#include "repl/script/value/text.h"
#include "support/text_width.h"
#include "support/unicode.h"

namespace kiln::script {

namespace {

const std::string& self(NativeArgs& a) { return a.self->get<Str>()->text; }

/// The text with each of its characters changed by what appends its other form; Σ at the end of a word becomes ς.
template <class Append>
std::string changed(const std::string& s, Append&& append) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    const Character c = first_character(std::string_view(s).substr(i));
    // U+FFFD stands for a character as well as for what could not be read.
    if (c.code == 0xFFFD)
      out.append(s, i, c.bytes);  // also a byte that is no UTF-8
    else
      append(out, c.code, [&] { return unicode::is_final_sigma(s, i, c.bytes); });
    i += c.bytes;
  }
  return out;
}
template <class IsFinal>
void append_lower(std::string& out, char32_t c, IsFinal&& is_final) {
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  if (c == kSigma && is_final())
    append_utf8(out, kFinalSigma);
  else
    unicode::append_lower(out, c);
}
Value upper(Interp&, NativeArgs& a) {
  return Value::str(changed(self(a), [](std::string& out, char32_t c, auto&&) { unicode::append_upper(out, c); }));
}
Value lower(Interp&, NativeArgs& a) {
  return Value::str(changed(self(a), [](std::string& out, char32_t c, auto&& final) { append_lower(out, c, final); }));
}
Value casefold(Interp&, NativeArgs& a) {
  return Value::str(changed(self(a), [](std::string& out, char32_t c, auto&&) { unicode::append_fold(out, c); }));
}

Value capitalize(Interp&, NativeArgs& a) {
  // Title case and not upper case: ǆ becomes ǅ.
  return Value::str(changed(self(a), [first = true](std::string& out, char32_t c, auto&& final) mutable {
    if (std::exchange(first, false))
      unicode::append_title(out, c);
    else
      append_lower(out, c, final);
  }));
}

Value title(Interp&, NativeArgs& a) {
  return Value::str(changed(self(a), [inside = false](std::string& out, char32_t c, auto&& final) mutable {
    if (inside)
      append_lower(out, c, final);
    else
      unicode::append_title(out, c);
    inside = unicode::is_cased(c);
  }));
}

Value swapcase(Interp&, NativeArgs& a) {
  return Value::str(changed(self(a), [](std::string& out, char32_t c, auto&& final) {
    if (unicode::is_upper(c))
      append_lower(out, c, final);
    else if (unicode::is_lower(c))
      unicode::append_upper(out, c);
    else
      append_utf8(out, c);
  }));
}

/// Characters of a text and where they stand.
struct Placed {
  char32_t code;
  size_t at, end;
};
std::vector<Placed> characters(const std::string& s) {
  std::vector<Placed> out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    const Character c = first_character(std::string_view(s).substr(i));
    out.push_back({c.code, i, i + c.bytes});
    i += c.bytes;
  }
  return out;
}

Value strip_where(Interp& in, NativeArgs& a, bool left, bool right) {
  const std::string_view s = self(a);
  const bool spaces = a[0].missing() || a[0].is_none();
  std::vector<Placed> set;
  if (!spaces) set = characters(in.to_text(a[0], "strip()'s characters"));
  auto goes = [&](char32_t c) {
    if (spaces) return unicode::is_space(c);
    return std::any_of(set.begin(), set.end(), [&](const Placed& x) { return x.code == c; });
  };
  size_t begin = 0, end = s.size();
  while (left && begin < end) {
    const Character c = first_character(s.substr(begin));
    if (!goes(c.code)) break;
    begin += c.bytes;
  }
  while (right && begin < end) {
    size_t at = end - 1;
    // Back to the first byte of the last character.
    while (at > begin && (static_cast<uint8_t>(s[at]) & 0xC0) == 0x80) --at;
    if (!goes(first_character(s.substr(at, end - at)).code)) break;
    end = at;
  }
  return Value::str(std::string(s.substr(begin, end - begin)));
}
Value strip(Interp& in, NativeArgs& a) { return strip_where(in, a, true, true); }
Value lstrip(Interp& in, NativeArgs& a) { return strip_where(in, a, true, false); }
Value rstrip(Interp& in, NativeArgs& a) { return strip_where(in, a, false, true); }

/// The parts between runs of spaces, `limit` cuts at most (all: -1), from the left or from the right.
Value split_at_spaces(const std::string& s, int64_t limit, bool from_right) {
  const std::vector<Placed> all = characters(s);
  // From the right the same walk over the characters in reverse.
  auto space = [&](size_t i) { return unicode::is_space(all[from_right ? all.size() - 1 - i : i].code); };
  std::vector<Value> out;
  for (size_t i = 0; i < all.size();) {
    while (i < all.size() && space(i)) ++i;
    if (i == all.size()) break;
    const size_t begin = i;
    const bool full = limit >= 0 && static_cast<int64_t>(out.size()) >= limit;
    while (i < all.size() && (full || !space(i))) ++i;
    const size_t end = i;  // of the last part: with the spaces behind it
    const Placed &first = all[from_right ? all.size() - end : begin],
                 &last = all[from_right ? all.size() - 1 - begin : end - 1];
    out.push_back(Value::str(s.substr(first.at, last.end - first.at)));
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return make<List>(std::move(out));
}

Value split(Interp& in, NativeArgs& a) {
  const std::string& s = self(a);
  const int64_t limit = a[1].missing() ? -1 : in.to_int(a[1], "split()'s maxsplit");
  if (a[0].missing() || a[0].is_none()) return split_at_spaces(s, limit, false);
  std::vector<Value> out;
  auto full = [&] { return limit >= 0 && static_cast<int64_t>(out.size()) >= limit; };
  const std::string& separator = in.to_text(a[0], "split()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "split()'s separator cannot be empty");
  size_t at = 0;
  for (size_t hit; !full() && (hit = s.find(separator, at)) != std::string::npos; at = hit + separator.size())
    out.push_back(Value::str(s.substr(at, hit - at)));
  out.push_back(Value::str(s.substr(at)));
  return make<List>(std::move(out));
}

Value rsplit(Interp& in, NativeArgs& a) {
  int64_t limit = a[1].missing() ? -1 : in.to_int(a[1], "rsplit()'s maxsplit");
  const std::string& s = self(a);
  if (a[0].missing() || a[0].is_none()) return split_at_spaces(s, limit, true);
  const std::string& separator = in.to_text(a[0], "rsplit()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "rsplit()'s separator cannot be empty");
  std::vector<Value> out;
  size_t end = s.size();
  while (limit-- != 0 && end >= separator.size()) {
    // Found with its end at `end` at the latest: separators that overlap are cut off from the right.
    size_t hit = s.rfind(separator, end - separator.size());
    if (hit == std::string::npos) break;
    out.push_back(Value::str(s.substr(hit + separator.size(), end - hit - separator.size())));
    end = hit;
  }
  out.push_back(Value::str(s.substr(0, end)));
  std::reverse(out.begin(), out.end());
  return make<List>(std::move(out));
}

Value splitlines(Interp& in, NativeArgs& a) {
  const std::string& s = self(a);
  const bool keep = !a[0].missing() && in.truth(a[0]);
  std::vector<Value> out;
  size_t begin = 0;
  for (size_t at = 0; at < s.size();) {
    const size_t end = unicode::line_end(std::string_view(s).substr(at));
    if (end == 0) {
      at += character_bytes(s, at);
      continue;
    }
    // Line ends are those of Unicode, and a pair of \r\n is one.
    out.push_back(Value::str(s.substr(begin, at + (keep ? end : 0) - begin)));
    begin = at += end;
  }
  if (begin < s.size()) out.push_back(Value::str(s.substr(begin)));
  return make<List>(std::move(out));
}

Value join(Interp& in, NativeArgs& a) {
  const std::vector<Value> parts = in.to_vector(a[0]);
  // Known before anything is written: a text that does not fit would take the machine's memory first.
  size_t size = 0;
  for (const Value& v : parts) {
    size += in.to_text(v, "an element of join()").size() + self(a).size();
    if (size > kMostBytes + self(a).size())
      in.fail(ErrorKind::kMemory, "join() would make a text of more than {} bytes", kMostBytes);
  }
  std::string out;
  out.reserve(size);
  for (size_t i = 0; i < parts.size(); ++i) {
    in.check_interrupt();
    if (i > 0) out += self(a);
    out += in.to_text(parts[i], "an element of join()");
  }
  return Value::str(std::move(out));
}

Value replace(Interp& in, NativeArgs& a) {
  const std::string &s = self(a), &from = in.to_text(a[0], "replace()'s old"),
                    &to = in.to_text(a[1], "replace()'s new");
  int64_t limit = a[2].missing() ? -1 : in.to_int(a[2], "replace()'s count");
  std::string out;
  // An empty text stands before each character and behind the last.
  if (from.empty()) {
    for (size_t at = 0; at <= s.size();) {
      if (limit != 0) out += to, --limit;
      if (at == s.size()) break;
      size_t n = character_bytes(s, at);
      out += s.substr(at, n);
      at += n;
    }
    return Value::str(std::move(out));
  }
  size_t at = 0;
  for (size_t hit; limit-- != 0 && (hit = s.find(from, at)) != std::string::npos; at = hit + from.size()) {
    out.append(s, at, hit - at);
    out += to;
  }
  return Value::str(out + s.substr(at));
}

/// The bytes between the characters that the optional arguments `at` and `at + 1` name; nullopt: start is beyond end.
std::optional<std::pair<size_t, size_t>> window(Interp& in, NativeArgs& a, size_t at = 1) {
  const std::string& s = self(a);
  if (a[at].missing() && a[at + 1].missing()) return std::pair{size_t{0}, s.size()};
  const auto n = static_cast<int64_t>(count_characters(s));
  auto place = [&](const Value& v, int64_t otherwise) {
    return place_within(in, v.is_none() ? Value() : v, n, otherwise, "a position in the text");
  };
  const int64_t start = place(a[at], 0), end = std::min(n, place(a[at + 1], n));
  if (start > end) return std::nullopt;
  return std::pair{byte_of_character(s, static_cast<size_t>(start)), byte_of_character(s, static_cast<size_t>(end))};
}
std::optional<std::string_view> windowed(Interp& in, NativeArgs& a) {
  const auto w = window(in, a);
  if (!w) return std::nullopt;
  return std::string_view(self(a)).substr(w->first, w->second - w->first);
}

/// Runs `test` on one text or on each of a tuple of them.
bool matches_any(Interp& in, const Value& v, std::string_view what,
                 const std::function<bool(const std::string&)>& test) {
  if (auto* t = v.get<Tuple>())
    return std::any_of(t->items.begin(), t->items.end(), [&](const Value& one) { return test(in.to_text(one, what)); });
  return test(in.to_text(v, what));
}
Value startswith(Interp& in, NativeArgs& a) {
  const auto text = windowed(in, a);
  return Value::boolean(matches_any(in, a[0], "startswith()'s prefix",
                                    [&](const std::string& p) { return text && text->starts_with(p); }));
}
Value endswith(Interp& in, NativeArgs& a) {
  const auto text = windowed(in, a);
  return Value::boolean(
      matches_any(in, a[0], "endswith()'s suffix", [&](const std::string& p) { return text && text->ends_with(p); }));
}

int64_t position(Interp& in, NativeArgs& a, bool last) {
  const std::string& s = self(a);
  const std::string& what = in.to_text(a[0], "the text to find");
  const auto w = window(in, a);
  if (!w) return -1;
  // The text goes up to the window's end; the start is left to find(), for the count of characters below.
  const std::string_view within = std::string_view(s).substr(0, w->second);
  size_t hit = last ? within.rfind(what) : within.find(what, w->first);
  if (hit == std::string::npos || (last && hit < w->first)) return -1;
  return static_cast<int64_t>(count_characters(std::string_view(s).substr(0, hit)));
}
Value find(Interp& in, NativeArgs& a) { return Value::integer(position(in, a, false)); }
Value rfind(Interp& in, NativeArgs& a) { return Value::integer(position(in, a, true)); }
Value index_of(Interp& in, NativeArgs& a, bool last) {
  int64_t p = position(in, a, last);
  if (p < 0) in.fail(ErrorKind::kValue, "the text does not hold {}", in.repr(a[0]));
  return Value::integer(p);
}
Value index(Interp& in, NativeArgs& a) { return index_of(in, a, false); }
Value rindex(Interp& in, NativeArgs& a) { return index_of(in, a, true); }

Value count(Interp& in, NativeArgs& a) {
  const std::string& what = in.to_text(a[0], "count()'s argument");
  const auto within = windowed(in, a);
  if (!within) return Value::integer(0);
  const std::string_view s = *within;
  // As Python: between all characters, before and behind.
  if (what.empty()) return Value::integer(static_cast<int64_t>(count_characters(s)) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = s.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return Value::integer(n);
}

std::string fill_of(Interp& in, const Value& v) {
  if (v.missing()) return " ";
  if (in.length(v) != 1) in.fail(ErrorKind::kType, "the fill must be one character");
  return in.to_text(v, "the fill");
}
Value justified(Interp& in, NativeArgs& a, char align) {
  int64_t width = std::max<int64_t>(0, in.to_int(a[0], "the width"));
  return Value::str(in.take(format_constant(self(a), fmt::format("{}{}{}", fill_of(in, a[1]), align, width))));
}
Value ljust(Interp& in, NativeArgs& a) { return justified(in, a, '<'); }
Value rjust(Interp& in, NativeArgs& a) { return justified(in, a, '>'); }
/// Unlike the format `^`, an odd blank more stands on the left where the width is odd.
Value center(Interp& in, NativeArgs& a) {
  const std::string fill = fill_of(in, a[1]);
  const int64_t width = in.to_int(a[0], "the width"), own = static_cast<int64_t>(count_characters(self(a)));
  if (width <= own) return *a.self;
  const int64_t left = (width - own) / 2 + ((width - own) & width & 1);
  const std::string padded = in.take(format_constant(self(a), fmt::format("{}>{}", fill, own + left)));
  return Value::str(in.take(format_constant(padded, fmt::format("{}<{}", fill, width))));
}

Value zfill(Interp& in, NativeArgs& a) {
  std::string s = self(a);
  const int64_t width = in.to_int(a[0], "zfill()'s width");
  const int64_t missing = std::max<int64_t>(width, 0) - static_cast<int64_t>(count_characters(s));
  if (missing > 1 << 20) in.fail(ErrorKind::kValue, "zfill()'s width is too large");
  // Behind a sign.
  if (missing > 0) s.insert(!s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0, static_cast<size_t>(missing), '0');
  return Value::str(std::move(s));
}

template <class Test>
Value test_all(NativeArgs& a, Test&& test) {
  const std::string& s = self(a);
  // An empty text has no property, but for isprintable().
  for (size_t i = 0; i < s.size();) {
    const Character c = first_character(std::string_view(s).substr(i));
    if (!test(c.code)) return Value::boolean(false);
    i += c.bytes;
  }
  return Value::boolean(!s.empty());
}
Value isdecimal(Interp&, NativeArgs& a) { return test_all(a, unicode::is_decimal); }
Value isdigit(Interp&, NativeArgs& a) { return test_all(a, unicode::is_digit); }
Value isnumeric(Interp&, NativeArgs& a) { return test_all(a, unicode::is_numeric); }
Value isalpha(Interp&, NativeArgs& a) { return test_all(a, unicode::is_alpha); }
Value isalnum(Interp&, NativeArgs& a) {
  return test_all(a, [](char32_t c) { return unicode::is_alpha(c) || unicode::is_numeric(c); });
}
Value isspace(Interp&, NativeArgs& a) { return test_all(a, unicode::is_space); }
Value isprintable(Interp&, NativeArgs& a) {
  return Value::boolean(self(a).empty() || test_all(a, unicode::is_printable).boolean());
}
/// Some letter of one case and none of the other, nor one that is neither, such as ǅ.
Value is_all(NativeArgs& a, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  bool any = false;
  for (const Placed& c : characters(self(a))) {
    if (other(c.code) || unicode::is_title(c.code)) return Value::boolean(false);
    any |= wanted(c.code);
  }
  return Value::boolean(any);
}
Value isupper(Interp&, NativeArgs& a) { return is_all(a, unicode::is_upper, unicode::is_lower); }
Value islower(Interp&, NativeArgs& a) { return is_all(a, unicode::is_lower, unicode::is_upper); }
Value isidentifier(Interp&, NativeArgs& a) {
  const std::vector<Placed> all = characters(self(a));
  return Value::boolean(
      !all.empty() && unicode::is_identifier_start(all[0].code) &&
      std::all_of(all.begin(), all.end(), [](const Placed& c) { return unicode::is_identifier_part(c.code); }));
}

Value partition(Interp& in, NativeArgs& a) {
  const std::string &s = self(a), &separator = in.to_text(a[0], "partition()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "partition()'s separator cannot be empty");
  size_t hit = s.find(separator);
  if (hit == std::string::npos) return make<Tuple>(std::vector<Value>{*a.self, Value::str(""), Value::str("")});
  return make<Tuple>(
      std::vector<Value>{Value::str(s.substr(0, hit)), a[0], Value::str(s.substr(hit + separator.size()))});
}

Value rpartition(Interp& in, NativeArgs& a) {
  const std::string &s = self(a), &separator = in.to_text(a[0], "rpartition()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "rpartition()'s separator cannot be empty");
  size_t hit = s.rfind(separator);
  if (hit == std::string::npos) return make<Tuple>(std::vector<Value>{Value::str(""), Value::str(""), *a.self});
  return make<Tuple>(
      std::vector<Value>{Value::str(s.substr(0, hit)), a[0], Value::str(s.substr(hit + separator.size()))});
}

Value istitle(Interp&, NativeArgs& a) {
  bool inside = false, any = false;
  for (const Placed& c : characters(self(a))) {
    const bool up = unicode::is_upper(c.code) || unicode::is_title(c.code), low = unicode::is_lower(c.code);
    if ((up && inside) || (low && !inside)) return Value::boolean(false);
    inside = up || low;
    any |= inside;
  }
  return Value::boolean(any);
}

/// From code points to code points, texts, or None where a character is left out.
Value maketrans(Interp& in, NativeArgs& a) {
  auto table = make<Dict>();
  auto code = [](const std::string& s, size_t at) {
    return Value::integer(static_cast<int64_t>(first_character(std::string_view(s).substr(at)).code));
  };
  if (a[1].missing()) {
    auto* given = a[0].get<Dict>();
    if (!given) in.fail(ErrorKind::kType, "maketrans() with one argument needs a dict, got '{}'", in.type_name(a[0]));
    for (const auto& e : given->table.live()) {
      auto* s = e.key.get<Str>();
      // Keys are code points; a character of one stands for its own.
      if (s && count_characters(s->text) != 1)
        in.fail(ErrorKind::kValue, "a key of maketrans()'s dict must be one character, got {}", in.repr(e.key));
      table->table.set(in, s ? code(s->text, 0) : e.key, e.value);
    }
    return table;
  }
  const std::string &from = in.to_text(a[0], "maketrans()'s first text"),
                    &to = in.to_text(a[1], "maketrans()'s second text");
  if (count_characters(from) != count_characters(to))
    in.fail(ErrorKind::kValue, "the first two texts of maketrans() must have the same length");
  for (size_t i = 0, k = 0; i < from.size(); i += character_bytes(from, i), k += character_bytes(to, k))
    table->table.set(in, code(from, i), code(to, k));
  if (a[2].missing()) return table;
  const std::string& gone = in.to_text(a[2], "maketrans()'s third text");
  for (size_t i = 0; i < gone.size(); i += character_bytes(gone, i)) table->table.set(in, code(gone, i), Value::none());
  return table;
}

Value translate(Interp& in, NativeArgs& a) {
  auto* table = a[0].get<Dict>();
  if (!table) in.fail(ErrorKind::kType, "translate() needs a dict, got '{}'", in.type_name(a[0]));
  const std::string& s = self(a);
  std::string out;
  for (size_t i = 0; i < s.size();) {
    const size_t n = character_bytes(s, i);
    const auto code = static_cast<int64_t>(first_character(std::string_view(s).substr(i)).code);
    const Value* to = table->table.find(in, Value::integer(code));
    if (!to)
      // What the table does not have stays.
      out += s.substr(i, n);
    else if (auto* text = to->get<Str>())
      out += text->text;
    else if (!to->is_none()) {
      const int64_t c = in.to_int(*to, "a value of translate()'s table");
      if (c < 0 || c > 0x10FFFF) in.fail(ErrorKind::kValue, "{} is no character", c);
      append_utf8(out, static_cast<char32_t>(c));
    }
    i += n;
  }
  return Value::str(std::move(out));
}

Value isascii(Interp&, NativeArgs& a) {
  const std::string& s = self(a);
  return Value::boolean(std::all_of(s.begin(), s.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; }));
}

Value expandtabs(Interp& in, NativeArgs& a) {
  const int64_t width = a[0].missing() ? 8 : in.to_int(a[0], "expandtabs()'s width");
  if (width < 0 || width > 1000) in.fail(ErrorKind::kValue, "expandtabs()'s width must be from 0 to 1000");
  std::string out;
  int64_t column = 0;
  for (char c : self(a)) {
    // What continues a character of UTF-8 takes no column of its own.
    const bool continues = (static_cast<uint8_t>(c) & 0xC0) == 0x80;
    if (c == '\t' && width > 0) {
      // To the next column that is a multiple of the width.
      const int64_t n = width - column % width;
      out.append(static_cast<size_t>(n), ' ');
      column += n;
    } else if (c != '\t') {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + (continues ? 0 : 1);
    }
  }
  return Value::str(std::move(out));
}

Value removeprefix(Interp& in, NativeArgs& a) {
  const std::string& p = in.to_text(a[0], "the prefix");
  return self(a).compare(0, p.size(), p) == 0 ? Value::str(self(a).substr(p.size())) : *a.self;
}
Value removesuffix(Interp& in, NativeArgs& a) {
  const std::string &s = self(a), &p = in.to_text(a[0], "the suffix");
  return s.size() >= p.size() && s.compare(s.size() - p.size(), p.size(), p) == 0
             ? Value::str(s.substr(0, s.size() - p.size()))
             : *a.self;
}

/// "{}", "{0}", "{name}", "{x.attr[key]}", "{!r}", "{:spec}" with fields inside the spec.
class Formatter {
 public:
  /// With a mapping its elements are the named values: format_map().
  Formatter(Interp& in, const std::vector<Value>& args, Dict& named, const Value* mapping = nullptr)
      : in_(in), args_(args), named_(named), mapping_(mapping) {}

  std::string run(std::string_view text, int depth = 0) {
    if (depth > 2) in_.fail(ErrorKind::kValue, "the fields of format() are nested too deeply");
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      char c = text[i];
      // Two braces are one that stands for itself.
      if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
        out += c;
        ++i;
      } else if (c == '}') {
        in_.fail(ErrorKind::kValue, "a single '}}' in format()'s text is written '}}}}'");
      } else if (c == '{') {
        // The end of the field: braces of its specification nest.
        size_t end = i + 1;
        for (int open = 1; open > 0; ++end) {
          if (end >= text.size()) in_.fail(ErrorKind::kValue, "a '{{' in format()'s text has no '}}'");
          open += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
        }
        out += field(text.substr(i + 1, end - i - 2), depth);
        i = end - 1;
      } else {
        out += c;
      }
    }
    return out;
  }

 private:
  std::string field(std::string_view f, int depth) {
    size_t colon = f.find(':');
    std::string_view path = f.substr(0, colon);
    char conversion = 0;
    // "!r" stands at the end of the path, in front of the colon.
    if (path.size() >= 2 && path[path.size() - 2] == '!') {
      conversion = path.back();
      if (std::string_view("sra").find(conversion) == std::string_view::npos)
        in_.fail(ErrorKind::kValue, "'!{}' is no conversion of format(): !s, !r and !a are", conversion);
      path.remove_suffix(2);
    }
    size_t end = std::min(path.find_first_of(".["), path.size());
    std::string_view first = path.substr(0, end);
    Value v = first.empty()                                  ? positional(next())
              : std::isdigit(static_cast<uint8_t>(first[0])) ? positional(numbered(first))
                                                             : named(first);
    path.remove_prefix(end);
    while (!path.empty()) {
      bool item = path[0] == '[';
      path.remove_prefix(1);
      end = std::min(path.find_first_of(item ? "]" : ".["), path.size());
      std::string_view key = path.substr(0, end);
      bool index = item && !key.empty() && std::isdigit(static_cast<uint8_t>(key[0]));
      v = !item ? in_.attribute(v, key)
                : in_.item(v, index ? Value::integer(static_cast<int64_t>(number(key))) : Value::str(std::string(key)));
      path.remove_prefix(std::min(path.size(), end + (item ? 1 : 0)));
    }
    if (conversion)
      v = Value::str(conversion == 's' ? in_.str(v) : conversion == 'a' ? ascii_of(in_.repr(v)) : in_.repr(v));
    // Its own fields are numbered behind the field that it formats.
    return in_.format(v, colon == std::string_view::npos ? "" : run(f.substr(colon + 1), depth + 1));
  }
  size_t number(std::string_view digits) {
    size_t n = 0;
    // Nine digits: more name no value, and would overflow.
    for (char c : digits.substr(0, 9)) {
      if (!std::isdigit(static_cast<uint8_t>(c))) in_.fail(ErrorKind::kValue, "'{}' is no field of format()", digits);
      n = n * 10 + static_cast<size_t>(c - '0');
    }
    return n;
  }
  /// Fields are numbered by their order or by their texts: a mix would leave open which value is meant.
  size_t next() {
    if (numbered_) fail_mixed();
    ordered_ = true;
    return next_++;
  }
  size_t numbered(std::string_view digits) {
    if (ordered_) fail_mixed();
    numbered_ = true;
    return number(digits);
  }
  [[noreturn]] void fail_mixed() {
    in_.fail(ErrorKind::kValue, "format()'s fields are all numbered ({{0}} {{1}}) or none is ({{}} {{}})");
  }
  Value positional(size_t i) {
    if (i >= args_.size()) in_.fail_as("IndexError", "format() needs more than {} values", args_.size());
    return args_[i];
  }
  Value named(std::string_view name) {
    if (mapping_) return in_.item(*mapping_, Value::str(std::string(name)));
    Value* v = named_.table.find(name);
    if (!v) in_.fail_key(Value::str(std::string(name)), "format() has no value named {}");
    return *v;
  }

  Interp& in_;
  const std::vector<Value>& args_;
  Dict& named_;
  const Value* const mapping_;
  size_t next_ = 0;
  bool ordered_ = false, numbered_ = false;
};

Value format(Interp& in, NativeArgs& a) {
  return Value::str(Formatter(in, a[0].get<Tuple>()->items, *a[1].get<Dict>()).run(self(a)));
}
Value format_map(Interp& in, NativeArgs& a) {
  const std::vector<Value> none;
  return Value::str(Formatter(in, none, *make<Dict>(), &a[0]).run(self(a)));
}

constexpr NativeDef kMethods[] = {
    {"capitalize()", capitalize, "first letter upper, the rest lower"},
    {"casefold()", casefold, "in small letters, for comparisons: ß is ss"},
    {"center(width, fill=' ')", center, "padded on both sides"},
    {"count(text, start=0, end=)", count, "how often it holds a text"},
    {"endswith(suffix, start=0, end=)", endswith, "does it end with a text, or one of a tuple?"},
    {"expandtabs(tabsize=8)", expandtabs, "with spaces in place of tabs"},
    {"find(text, start=0, end=)", find, "where a text begins in it, or -1"},
    {"format(*values, **named)", format, "fills the {} fields"},
    {"format_map(mapping)", format_map, "fills the {} fields with elements of a mapping"},
    {"index(text, start=0, end=)", index, "where a text begins in it"},
    {"isalnum()", isalnum, "only letters and digits?"},
    {"isalpha()", isalpha, "only letters?"},
    {"isascii()", isascii, "only ASCII characters?"},
    {"isdecimal()", isdecimal, "only digits of decimal numbers?"},
    {"isdigit()", isdigit, "only digits, such as ² too?"},
    {"isidentifier()", isidentifier, "could it be a name?"},
    {"isnumeric()", isnumeric, "only digits and numbers, such as ½ too?"},
    {"islower()", islower, "no capital letters, and some letters?"},
    {"isprintable()", isprintable, "nothing that repr() writes as an escape?"},
    {"isspace()", isspace, "only spaces?"},
    {"istitle()", istitle, "each word with one capital, its first letter?"},
    {"isupper()", isupper, "only capital letters?"},
    {"join(iterable)", join, "the texts with this one between them"},
    {"ljust(width, fill=' ')", ljust, "padded on the right"},
    {"lower()", lower, "in small letters"},
    {"lstrip(chars=None)", lstrip, "without spaces on the left"},
    {"partition(sep)", partition, "(before, sep, after)"},
    {"removeprefix(prefix)", removeprefix, "without that prefix"},
    {"removesuffix(suffix)", removesuffix, "without that suffix"},
    {"replace(old, new, count=-1)", replace, "with one text replaced by another"},
    {"rfind(text, start=0, end=)", rfind, "where a text last begins in it, or -1"},
    {"rindex(text, start=0, end=)", rindex, "where a text last begins in it"},
    {"rjust(width, fill=' ')", rjust, "padded on the left"},
    {"rpartition(sep)", rpartition, "(before, sep, after), from the right"},
    {"rsplit(sep=None, maxsplit=-1)", rsplit, "split from the right"},
    {"rstrip(chars=None)", rstrip, "without spaces on the right"},
    {"split(sep=None, maxsplit=-1)", split, "the parts between separators, or between spaces"},
    {"splitlines(keepends=False)", splitlines, "the lines"},
    {"startswith(prefix, start=0, end=)", startswith, "does it start with a text, or one of a tuple?"},
    {"strip(chars=None)", strip, "without spaces around it"},
    {"swapcase()", swapcase, "small letters as capitals, and capitals as small ones"},
    {"title()", title, "each word with a capital"},
    {"translate(table)", translate, "with characters replaced as a table of str.maketrans() says"},
    {"upper()", upper, "in capital letters"},
    {"zfill(width)", zfill, "padded with zeros on the left"},
};

}  // namespace

void install_str_methods(Interp& in) {
  in.add_methods({Kind::kStr, kMethods});
  static constexpr NativeDef kMakeTrans = {"maketrans(x, y=, z=)", maketrans, "a table for translate()"};
  in.type_of(Kind::kStr)->members.set("maketrans", make<Native>(kMakeTrans));
}

}  // namespace kiln::script
