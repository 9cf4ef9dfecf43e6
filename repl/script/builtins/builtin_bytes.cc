// The types bytes and bytearray with their methods, str.encode, and ints to and from bytes.
#include <algorithm>
#include <cctype>

#include "repl/script/builtins/builtins.h"
#include "repl/script/builtins/limits.h"
#include "repl/script/value/bytes.h"

namespace kiln::script {

namespace {

const std::string& bytes_of(NativeArgs& a) { return *byte_data(*a.self); }
/// A value of the kind of the receiver.
Value alike(NativeArgs& a, std::string data) {
  return a.self->get<ByteArray>() ? Value(make<ByteArray>(std::move(data))) : Value(make<Bytes>(std::move(data)));
}
std::string text_or(Interp& in, const Value& v, std::string_view otherwise, std::string_view what) {
  return v.missing() || v.is_none() ? std::string(otherwise) : in.to_text(v, what);
}

std::string made_bytes(Interp& in, NativeArgs& a) {
  if (a[0].missing()) return "";
  if (auto* s = a[0].get<Str>()) {
    if (a[1].missing()) in.fail(ErrorKind::kType, "a str has no bytes without an encoding: use text.encode()");
    return encode_text(in, s->text, in.to_text(a[1], "the encoding"), text_or(in, a[2], "strict", "errors"));
  }
  if (!a[0].small_int_or_bool()) return gather_bytes(in, a[0]);
  if (a[0].integer() < 0 || a[0].integer() > static_cast<int64_t>(kMostBytes))
    in.fail(ErrorKind::kValue, "the number of bytes must be from 0 to {}, got {}", kMostBytes, a[0].integer());
  return std::string(static_cast<size_t>(a[0].integer()), '\0');
}
Value make_bytes(Interp& in, NativeArgs& a) {
  return !a[0].missing() && a[0].get<Bytes>() ? a[0] : Value(make<Bytes>(made_bytes(in, a)));
}
Value make_bytearray(Interp& in, NativeArgs& a) { return make<ByteArray>(made_bytes(in, a)); }

std::string from_hex(Interp& in, const Value& v) {
  std::string digits;
  for (char c : in.to_text(v, "fromhex()'s text"))
    if (!std::isspace(static_cast<uint8_t>(c))) digits += c;
  auto out = bytes_of_hex(digits);
  if (!out) in.fail(ErrorKind::kValue, "fromhex() needs two hexadecimal digits per byte, got {}", in.repr(v));
  return *std::move(out);
}
Value bytes_fromhex(Interp& in, NativeArgs& a) { return make<Bytes>(from_hex(in, a[0])); }
Value bytearray_fromhex(Interp& in, NativeArgs& a) { return make<ByteArray>(from_hex(in, a[0])); }

Value to_hex(Interp& in, NativeArgs& a) {
  const std::string separator = text_or(in, a[0], "", "hex()'s separator");
  const int64_t group = a[1].missing() ? 1 : std::abs(in.to_int(a[1], "hex()'s bytes_per_sep"));
  const std::string& data = bytes_of(a);
  std::string out;
  for (size_t i = 0; i < data.size(); ++i) {
    // Groups are counted from the right, as Python does.
    if (i > 0 && group > 0 && (data.size() - i) % static_cast<size_t>(group) == 0) out += separator;
    out += hex_of(std::string_view(data).substr(i, 1));
  }
  return Value::str(std::move(out));
}

Value decode(Interp& in, NativeArgs& a) {
  return Value::str(
      decode_bytes(in, bytes_of(a), text_or(in, a[0], "utf-8", "the encoding"), text_or(in, a[1], "strict", "errors")));
}
Value encode(Interp& in, NativeArgs& a) {
  return make<Bytes>(encode_text(in, in.to_text(*a.self, "the text"), text_or(in, a[0], "utf-8", "the encoding"),
                                 text_or(in, a[1], "strict", "errors")));
}

/// Bytes to look for: those of a value, or the one that an int is.
std::string needle(Interp& in, const Value& v) {
  if (!v.small_int_or_bool()) return to_bytes(in, v, "what is looked for");
  // By way of a tuple, for the errors of a byte that is out of range.
  return gather_bytes(in, make<Tuple>(std::vector<Value>{v}));
}

/// The bytes between the bounds that a method was given behind what it looks for.
struct Bounded {
  std::string_view data;
  size_t begin = 0;     // where it starts in all of them
  bool exists = false;  // false: it starts beyond their end, where not even nothing is found
};
Bounded bounded(Interp& in, NativeArgs& a) {
  const std::string_view all = bytes_of(a);
  const auto n = static_cast<int64_t>(all.size());
  auto bound = [&](const Value& v, int64_t otherwise, std::string_view what) {
    return place_within(in, v.is_none() ? Value() : v, n, otherwise, what);
  };
  const int64_t begin = bound(a[1], 0, "the start"), end = std::min(n, bound(a[2], n, "the end"));
  if (begin > n || begin > end) return {};
  return {all.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), static_cast<size_t>(begin), true};
}

Value byte_place(Interp& in, NativeArgs& a, bool last) {
  const std::string what = needle(in, a[0]);
  const Bounded p = bounded(in, a);
  const size_t hit = !p.exists ? std::string_view::npos : last ? p.data.rfind(what) : p.data.find(what);
  return Value::integer(hit == std::string_view::npos ? -1 : static_cast<int64_t>(p.begin + hit));
}
Value byte_find(Interp& in, NativeArgs& a) { return byte_place(in, a, false); }
Value byte_rfind(Interp& in, NativeArgs& a) { return byte_place(in, a, true); }
Value found_bytes(Interp& in, NativeArgs& a, Value at) {
  if (at.integer() < 0) in.fail(ErrorKind::kValue, "the bytes do not hold {}", in.repr(a[0]));
  return at;
}
Value byte_index(Interp& in, NativeArgs& a) { return found_bytes(in, a, byte_place(in, a, false)); }
Value byte_rindex(Interp& in, NativeArgs& a) { return found_bytes(in, a, byte_place(in, a, true)); }
Value byte_count(Interp& in, NativeArgs& a) {
  const std::string what = needle(in, a[0]);
  const Bounded p = bounded(in, a);
  if (what.empty()) return Value::integer(p.exists ? static_cast<int64_t>(p.data.size()) + 1 : 0);
  int64_t n = 0;
  for (size_t at = 0; (at = p.data.find(what, at)) != std::string_view::npos; at += what.size()) ++n;
  return Value::integer(n);
}

bool any_of_bytes(Interp& in, const Value& v, const std::function<bool(const std::string&)>& test) {
  auto* t = v.get<Tuple>();
  if (!t) return test(to_bytes(in, v, "what is looked for"));
  return std::any_of(t->items.begin(), t->items.end(),
                     [&](const Value& one) { return test(to_bytes(in, one, "what is looked for")); });
}
Value byte_startswith(Interp& in, NativeArgs& a) {
  const Bounded part = bounded(in, a);
  return Value::boolean(
      any_of_bytes(in, a[0], [&](const std::string& p) { return part.exists && part.data.starts_with(p); }));
}
Value byte_endswith(Interp& in, NativeArgs& a) {
  const Bounded part = bounded(in, a);
  return Value::boolean(
      any_of_bytes(in, a[0], [&](const std::string& p) { return part.exists && part.data.ends_with(p); }));
}

/// How many pieces may be cut off or replaced: all, when less than 0.
int64_t most_pieces(Interp& in, const Value& v, std::string_view what) { return v.missing() ? -1 : in.to_int(v, what); }

Value byte_replace(Interp& in, NativeArgs& a) {
  const std::string &from = to_bytes(in, a[0], "replace()'s old"), &to = to_bytes(in, a[1], "replace()'s new");
  int64_t left = most_pieces(in, a[2], "replace()'s count");
  const std::string& data = bytes_of(a);
  std::string out;
  size_t at = 0;
  if (from.empty()) {  // between all bytes, and at both ends
    for (; left != 0 && at <= data.size(); --left) {
      out += to;
      if (at < data.size()) out += data[at];
      ++at;
    }
    return alike(a, out + data.substr(std::min(at, data.size())));
  }
  for (size_t hit; left != 0 && (hit = data.find(from, at)) != std::string::npos; at = hit + from.size(), --left)
    out += data.substr(at, hit - at) + to;
  return alike(a, out + data.substr(at));
}

constexpr std::string_view kByteBlanks = " \t\n\r\f\v";

Value byte_split(Interp& in, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  int64_t left = most_pieces(in, a[1], "split()'s maxsplit");
  std::vector<Value> out;
  size_t at = 0;
  if (a[0].missing() || a[0].is_none()) {
    for (at = data.find_first_not_of(kByteBlanks); at != std::string::npos; --left) {
      // The last piece keeps the blanks behind it.
      const size_t end = left == 0 ? std::string::npos : data.find_first_of(kByteBlanks, at);
      out.push_back(alike(a, data.substr(at, end - at)));
      at = data.find_first_not_of(kByteBlanks, end);
    }
    return make<List>(std::move(out));
  }
  const std::string& separator = to_bytes(in, a[0], "split()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "split()'s separator cannot be empty");
  for (size_t hit; left != 0 && (hit = data.find(separator, at)) != std::string::npos;
       at = hit + separator.size(), --left)
    out.push_back(alike(a, data.substr(at, hit - at)));
  out.push_back(alike(a, data.substr(at)));
  return make<List>(std::move(out));
}

Value byte_rsplit(Interp& in, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  int64_t left = most_pieces(in, a[1], "rsplit()'s maxsplit");
  std::vector<Value> out;
  size_t end = data.size();  // of what is not split yet
  if (a[0].missing() || a[0].is_none()) {
    for (; left != 0; --left) {
      const size_t last = end == 0 ? std::string::npos : data.find_last_not_of(kByteBlanks, end - 1);
      if (last == std::string::npos) break;
      const size_t blank = data.find_last_of(kByteBlanks, last), begin = blank == std::string::npos ? 0 : blank + 1;
      out.push_back(alike(a, data.substr(begin, last + 1 - begin)));
      end = begin;
    }
    const size_t last = end == 0 ? std::string::npos : data.find_last_not_of(kByteBlanks, end - 1);
    if (last != std::string::npos) out.push_back(alike(a, data.substr(0, last + 1)));
  } else {
    const std::string& separator = to_bytes(in, a[0], "rsplit()'s separator");
    if (separator.empty()) in.fail(ErrorKind::kValue, "rsplit()'s separator cannot be empty");
    for (; left != 0 && end >= separator.size(); --left) {
      const size_t hit = data.rfind(separator, end - separator.size());
      if (hit == std::string::npos) break;
      out.push_back(alike(a, data.substr(hit + separator.size(), end - hit - separator.size())));
      end = hit;
    }
    out.push_back(alike(a, data.substr(0, end)));
  }
  std::reverse(out.begin(), out.end());
  return make<List>(std::move(out));
}

Value byte_partition(Interp& in, NativeArgs& a, bool last) {
  const std::string& data = bytes_of(a);
  const std::string& separator = to_bytes(in, a[0], "partition()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "partition()'s separator cannot be empty");
  const size_t hit = last ? data.rfind(separator) : data.find(separator);
  std::vector<std::string> parts = {data, "", ""};
  if (hit == std::string::npos && last) std::swap(parts[0], parts[2]);
  if (hit != std::string::npos) parts = {data.substr(0, hit), separator, data.substr(hit + separator.size())};
  std::vector<Value> out;
  for (std::string& part : parts) out.push_back(alike(a, std::move(part)));
  return make<Tuple>(std::move(out));
}
Value byte_partition_first(Interp& in, NativeArgs& a) { return byte_partition(in, a, false); }
Value byte_partition_last(Interp& in, NativeArgs& a) { return byte_partition(in, a, true); }

Value byte_splitlines(Interp& in, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  const bool keep = !a[0].missing() && in.truth(a[0]);
  std::vector<Value> out;
  for (size_t at = 0; at < data.size();) {
    const size_t end = std::min(data.find_first_of("\r\n", at), data.size());
    const size_t next = std::min(data.size(), end + (data.compare(end, 2, "\r\n") == 0 ? 2 : 1));
    out.push_back(alike(a, data.substr(at, (keep ? next : end) - at)));
    at = next;
  }
  return make<List>(std::move(out));
}

Value byte_join(Interp& in, NativeArgs& a) {
  std::string out;
  bool first = true;
  in.for_each(a[0], [&](const Value& v) {
    const std::string_view between = std::exchange(first, false) ? std::string_view() : bytes_of(a);
    const std::string& part = to_bytes(in, v, "an element of join()");
    if (out.size() + between.size() + part.size() > kMostBytes)
      in.fail(ErrorKind::kMemory, "join() would make more than {} bytes", kMostBytes);
    out.append(between).append(part);
    return true;
  });
  return alike(a, std::move(out));
}

Value byte_strip(Interp& in, NativeArgs& a, bool left, bool right) {
  const std::string set =
      a[0].missing() || a[0].is_none() ? std::string(kByteBlanks) : to_bytes(in, a[0], "strip()'s bytes");
  const std::string& data = bytes_of(a);
  size_t first = 0, last = data.size();
  while (left && first < last && set.find(data[first]) != std::string::npos) ++first;
  while (right && last > first && set.find(data[last - 1]) != std::string::npos) --last;
  return alike(a, data.substr(first, last - first));
}
Value byte_strip_both(Interp& in, NativeArgs& a) { return byte_strip(in, a, true, true); }
Value byte_lstrip(Interp& in, NativeArgs& a) { return byte_strip(in, a, true, false); }
Value byte_rstrip(Interp& in, NativeArgs& a) { return byte_strip(in, a, false, true); }

Value byte_removeprefix(Interp& in, NativeArgs& a) {
  const std::string &data = bytes_of(a), &prefix = to_bytes(in, a[0], "removeprefix()'s prefix");
  return alike(a, data.starts_with(prefix) ? data.substr(prefix.size()) : data);
}
Value byte_removesuffix(Interp& in, NativeArgs& a) {
  const std::string &data = bytes_of(a), &suffix = to_bytes(in, a[0], "removesuffix()'s suffix");
  return alike(a, data.ends_with(suffix) ? data.substr(0, data.size() - suffix.size()) : data);
}

/// Padded to a width, with `before` of what is missing on the left.
Value byte_padded(Interp& in, NativeArgs& a, size_t (*before)(size_t missing, size_t width)) {
  const int64_t given = in.to_int(a[0], "the width");
  if (given > static_cast<int64_t>(kMostBytes))
    in.fail(ErrorKind::kMemory, "the width is at most {}, got {}", kMostBytes, given);
  const std::string fill = a[1].missing() ? " " : to_bytes(in, a[1], "the fill");
  if (fill.size() != 1) in.fail(ErrorKind::kType, "the fill is one byte, got {}", in.repr(a[1]));
  const std::string& data = bytes_of(a);
  const auto width = static_cast<size_t>(std::max<int64_t>(given, 0));
  const size_t missing = width > data.size() ? width - data.size() : 0, left = before(missing, width);
  return alike(a, std::string(left, fill[0]) + data + std::string(missing - left, fill[0]));
}
Value byte_ljust(Interp& in, NativeArgs& a) {
  return byte_padded(in, a, [](size_t, size_t) { return size_t{0}; });
}
Value byte_rjust(Interp& in, NativeArgs& a) {
  return byte_padded(in, a, [](size_t missing, size_t) { return missing; });
}
Value byte_center(Interp& in, NativeArgs& a) {
  // As CPython: what is odd goes to the left where the width is odd.
  return byte_padded(in, a, [](size_t missing, size_t width) { return missing / 2 + (missing & width & 1); });
}
Value byte_zfill(Interp& in, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  const int64_t width = in.to_int(a[0], "zfill()'s width");
  if (width > static_cast<int64_t>(kMostBytes))
    in.fail(ErrorKind::kMemory, "the width is at most {}, got {}", kMostBytes, width);
  const size_t sign = !data.empty() && (data[0] == '-' || data[0] == '+') ? 1 : 0;
  std::string out = data;
  if (width > static_cast<int64_t>(data.size())) out.insert(sign, static_cast<size_t>(width) - data.size(), '0');
  return alike(a, std::move(out));
}

/// ASCII's letters: bytes beyond have no case, as in Python.
namespace ascii_bytes {
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return kByteBlanks.find(c) != std::string_view::npos; }
char upper(char c) { return static_cast<char>(is_lower(c) ? c - 'a' + 'A' : c); }
char lower(char c) { return static_cast<char>(is_upper(c) ? c - 'A' + 'a' : c); }
bool is_letter_or_digit(char c) { return is_letter(c) || is_digit(c); }
}  // namespace ascii_bytes

/// Each byte changed, given the one before it.
template <class Change>
Value byte_changed(NativeArgs& a, Change change) {
  std::string out;
  char before = '\0';
  for (const char c : bytes_of(a)) out += change(c, std::exchange(before, c));
  return alike(a, std::move(out));
}
Value byte_upper(Interp&, NativeArgs& a) {
  return byte_changed(a, [](char c, char) { return ascii_bytes::upper(c); });
}
Value byte_lower(Interp&, NativeArgs& a) {
  return byte_changed(a, [](char c, char) { return ascii_bytes::lower(c); });
}
Value byte_swapcase(Interp&, NativeArgs& a) {
  return byte_changed(
      a, [](char c, char) { return ascii_bytes::is_upper(c) ? ascii_bytes::lower(c) : ascii_bytes::upper(c); });
}
Value byte_title(Interp&, NativeArgs& a) {
  return byte_changed(a, [](char c, char before) {
    return ascii_bytes::is_letter(before) ? ascii_bytes::lower(c) : ascii_bytes::upper(c);
  });
}
Value byte_capitalize(Interp&, NativeArgs& a) {
  return byte_changed(a, [first = true](char c, char) mutable {
    return std::exchange(first, false) ? ascii_bytes::upper(c) : ascii_bytes::lower(c);
  });
}

template <bool (*test)(char)>
Value byte_all(Interp&, NativeArgs& a) {
  return Value::boolean(!bytes_of(a).empty() && std::all_of(bytes_of(a).begin(), bytes_of(a).end(), test));
}
/// Letters of one case alone, and some.
template <bool (*wanted)(char), bool (*other)(char)>
Value byte_of_case(Interp&, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  return Value::boolean(std::any_of(data.begin(), data.end(), wanted) && std::none_of(data.begin(), data.end(), other));
}
Value byte_isascii(Interp&, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  return Value::boolean(std::all_of(data.begin(), data.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; }));
}

Value byte_translate(Interp& in, NativeArgs& a) {
  constexpr size_t kBytes = 256;
  const std::string table = a[0].is_none() ? "" : to_bytes(in, a[0], "translate()'s table");
  if (!a[0].is_none() && table.size() != kBytes)
    in.fail(ErrorKind::kValue, "translate()'s table must have 256 bytes, got {}", table.size());
  const std::string gone = a[1].missing() ? "" : to_bytes(in, a[1], "translate()'s delete");
  std::string out;
  for (const char c : bytes_of(a))
    if (gone.find(c) == std::string::npos) out += table.empty() ? c : table[static_cast<uint8_t>(c)];
  return alike(a, std::move(out));
}
Value byte_maketrans(Interp& in, NativeArgs& a) {
  const std::string &from = to_bytes(in, a[0], "maketrans()'s frm"), &to = to_bytes(in, a[1], "maketrans()'s to");
  if (from.size() != to.size())
    in.fail(ErrorKind::kValue, "maketrans() needs as many bytes as it replaces: {} and {}", from.size(), to.size());
  std::string table;
  for (int c = 0; c < 256; ++c) table += static_cast<char>(c);
  for (size_t i = 0; i < from.size(); ++i) table[static_cast<uint8_t>(from[i])] = to[i];
  return make<Bytes>(std::move(table));
}

constexpr NativeDef kByteMethods[] = {
    {"capitalize()", byte_capitalize, "the first letter as a capital, others small"},
    {"center(width, fill=b' ')", byte_center, "padded on both sides"},
    {"count(what, start=0, end=)", byte_count, "how often it holds bytes"},
    {"decode(encoding='utf-8', errors='strict')", decode, "the text that they encode"},
    {"endswith(suffix, start=0, end=)", byte_endswith, "does it end with bytes, or some of a tuple?"},
    {"find(what, start=0, end=)", byte_find, "where bytes begin in it, or -1"},
    {"hex(sep='', bytes_per_sep=1)", to_hex, "two hexadecimal digits per byte"},
    {"index(what, start=0, end=)", byte_index, "where bytes begin in it"},
    {"isalnum()", byte_all<ascii_bytes::is_letter_or_digit>, "only letters and digits of ASCII?"},
    {"isalpha()", byte_all<ascii_bytes::is_letter>, "only letters of ASCII?"},
    {"isascii()", byte_isascii, "only ASCII?"},
    {"isdigit()", byte_all<ascii_bytes::is_digit>, "only digits?"},
    {"islower()", byte_of_case<ascii_bytes::is_lower, ascii_bytes::is_upper>, "no capital letters, and some letters?"},
    {"isspace()", byte_all<ascii_bytes::is_blank>, "only blanks?"},
    {"isupper()", byte_of_case<ascii_bytes::is_upper, ascii_bytes::is_lower>, "only capital letters?"},
    {"join(iterable)", byte_join, "the parts with these bytes between them"},
    {"ljust(width, fill=b' ')", byte_ljust, "padded on the right"},
    {"lower()", byte_lower, "ASCII letters as small ones"},
    {"lstrip(bytes=None)", byte_lstrip, "without blanks on the left"},
    {"partition(sep)", byte_partition_first, "(before, sep, after)"},
    {"removeprefix(prefix)", byte_removeprefix, "without that prefix"},
    {"removesuffix(suffix)", byte_removesuffix, "without that suffix"},
    {"replace(old, new, count=-1)", byte_replace, "with some bytes replaced by others"},
    {"rfind(what, start=0, end=)", byte_rfind, "where bytes last begin in it, or -1"},
    {"rindex(what, start=0, end=)", byte_rindex, "where bytes last begin in it"},
    {"rjust(width, fill=b' ')", byte_rjust, "padded on the left"},
    {"rpartition(sep)", byte_partition_last, "(before, sep, after), from the right"},
    {"rsplit(sep=None, maxsplit=-1)", byte_rsplit, "split from the right"},
    {"rstrip(bytes=None)", byte_rstrip, "without blanks on the right"},
    {"split(sep=None, maxsplit=-1)", byte_split, "the parts between separators, or between blanks"},
    {"splitlines(keepends=False)", byte_splitlines, "the lines"},
    {"startswith(prefix, start=0, end=)", byte_startswith, "does it start with bytes, or some of a tuple?"},
    {"strip(bytes=None)", byte_strip_both, "without blanks around it"},
    {"swapcase()", byte_swapcase, "small letters as capitals, and capitals as small ones"},
    {"title()", byte_title, "each word with a capital"},
    {"translate(table, delete=b'')", byte_translate, "with bytes replaced as a table of maketrans() says"},
    {"upper()", byte_upper, "ASCII letters as capitals"},
    {"zfill(width)", byte_zfill, "padded with zeros on the left"},
};

std::string& array(NativeArgs& a) { return a.self->get<ByteArray>()->data; }
Value array_append(Interp& in, NativeArgs& a) {
  array(a) += needle(in, Value::integer(in.to_int(a[0], "a byte")));
  return Value::none();
}
Value array_extend(Interp& in, NativeArgs& a) {
  array(a) += gather_bytes(in, a[0]);
  return Value::none();
}
Value array_clear(Interp&, NativeArgs& a) {
  array(a).clear();
  return Value::none();
}
Value array_pop(Interp& in, NativeArgs& a) {
  if (array(a).empty()) in.fail_as("IndexError", "pop() of an empty bytearray");
  const int64_t at =
      in.index_in(a[0].missing() ? Value::integer(-1) : a[0], static_cast<int64_t>(array(a).size()), "bytearray");
  const auto byte = static_cast<uint8_t>(array(a)[static_cast<size_t>(at)]);
  array(a).erase(static_cast<size_t>(at), 1);
  return Value::integer(byte);
}
constexpr NativeDef kArrayMethods[] = {
    {"append(byte)", array_append, "adds a byte at the end"},
    {"clear()", array_clear, "removes everything"},
    {"extend(iterable)", array_extend, "adds all bytes at the end"},
    {"pop(index=-1)", array_pop, "removes and returns a byte"},
};

bool is_big(Interp& in, const Value& v) {
  const std::string order = text_or(in, v, "big", "byteorder");
  if (order != "big" && order != "little")
    in.fail(ErrorKind::kValue, "byteorder must be 'little' or 'big', got '{}'", order);
  return order == "big";
}
Value int_to_bytes(Interp& in, NativeArgs& a) {
  const int64_t n = a[0].missing() ? 1 : in.to_int(a[0], "to_bytes()'s length");
  const bool big = is_big(in, a[1]), is_signed = !a[2].missing() && in.truth(a[2]);
  if (n < 0 || n > 1 << 20) in.fail(ErrorKind::kValue, "to_bytes()'s length must be from 0 to 2^20, got {}", n);
  auto c = a.self->constant();
  const ast::Int v = c->index() == 1 ? ast::Int{std::get<bool>(*c)} : std::get<ast::Int>(*c);
  if (v < 0 && !is_signed) in.fail_as("OverflowError", "can't convert negative int to unsigned");
  const int64_t bits = 8 * n - (is_signed ? 1 : 0);
  // What is left of the number's bits above the sign; of a negative one, those of its complement.
  const ast::Int beyond = bits < 0 ? (v < 0 ? ~v : v) + 1 : bits >= 127 ? 0 : (v < 0 ? ~v : v) >> bits;
  if (beyond != 0 && !(n == 0 && v == 0)) in.fail_as("OverflowError", "int too big to convert");
  std::string out;
  // An ast::Int has 16 bytes; those behind repeat the sign.
  for (int64_t i = 0; i < n; ++i) out += static_cast<char>(i < 16 ? v >> (8 * i) : v < 0 ? -1 : 0);
  if (big) std::reverse(out.begin(), out.end());
  return make<Bytes>(std::move(out));
}
Value int_from_bytes(Interp& in, NativeArgs& a) {
  std::string data = gather_bytes(in, a[0]);
  if (is_big(in, a[1])) std::reverse(data.begin(), data.end());
  const bool negative = !a[2].missing() && in.truth(a[2]) && !data.empty() && (data.back() & 0x80);
  unsigned __int128 v = negative ? ~static_cast<unsigned __int128>(0) : 0;
  for (size_t i = data.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(data[i]);
    // Bytes beyond the sixteenth may only repeat the sign.
    if (i >= 16 && byte != (negative ? 0xFF : 0))
      in.fail(ErrorKind::kValue, "the int needs more than 128 bits, which Kiln's integers have");
    v = v << 8 | byte;
  }
  // The sign came out in the other way: the number needs a 129th bit.
  if ((static_cast<ast::Int>(v) < 0) != negative)
    in.fail(ErrorKind::kValue, "the int needs more than 128 bits, which Kiln's integers have");
  return Value::wide(static_cast<ast::Int>(v));
}

}  // namespace

void install_bytes(Interp& in) {
  static constexpr NativeDef kTypes[] = {
      {"bytes(source=b'', encoding=, errors=)", make_bytes, "bytes of a text, of ints, or so many zeros"},
      {"bytearray(source=b'', encoding=, errors=)", make_bytearray, "bytes that can be changed"},
      {"fromhex(text)", bytes_fromhex, "the bytes of hexadecimal digits"},
      {"fromhex(text)", bytearray_fromhex, "the bytes of hexadecimal digits"},
      {"from_bytes(bytes, byteorder='big', *, signed=False)", int_from_bytes, "the int that bytes hold"}};
  static constexpr NativeDef kIntMethods[] = {
      {"to_bytes(length=1, byteorder='big', *, signed=False)", int_to_bytes, "the int as so many bytes"}};
  static constexpr NativeDef kStrMethods[] = {
      {"encode(encoding='utf-8', errors='strict')", encode, "the text as bytes"}};
  static constexpr NativeDef kMakeTable = {"maketrans(frm, to)", byte_maketrans, "a table for translate()"};
  const Kind kinds[] = {Bytes::kKind, ByteArray::kKind};
  for (size_t i = 0; i < 2; ++i) {
    auto native = make<Native>(kTypes[i]);
    in.type_of(kinds[i])->constructor = native;
    in.type_of(kinds[i])->members.set("fromhex", make<Native>(kTypes[2 + i]));
    in.type_of(kinds[i])->members.set("maketrans", make<Native>(kMakeTable));
    in.add_builtin(native->name, in.type_of(kinds[i]));
    in.add_methods({kinds[i], kByteMethods});
  }
  in.type_of(Kind::kInt)->members.set("from_bytes", make<Native>(kTypes[4]));
  in.add_methods({ByteArray::kKind, kArrayMethods});
  in.add_methods({Kind::kInt, kIntMethods});
  in.add_methods({Kind::kStr, kStrMethods});
}

}  // namespace kiln::script
