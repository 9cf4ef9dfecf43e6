// The types bytes and bytearray with their methods, str.encode, and ints to and from bytes.
#include <algorithm>
#include <cctype>

#include "repl/script/builtins/builtins.h"
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
  constexpr int64_t kMost = int64_t{1} << 30;
  if (a[0].integer() < 0 || a[0].integer() > kMost)
    in.fail(ErrorKind::kValue, "the number of bytes must be from 0 to {}, got {}", kMost, a[0].integer());
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
Value byte_find(Interp& in, NativeArgs& a) {
  const int64_t n = static_cast<int64_t>(bytes_of(a).size());
  const int64_t start = a[1].missing() ? 0 : in.to_int(a[1], "find()'s start");
  const size_t hit =
      bytes_of(a).find(needle(in, a[0]), static_cast<size_t>(std::max<int64_t>(0, start < 0 ? start + n : start)));
  return Value::integer(hit == std::string::npos ? -1 : static_cast<int64_t>(hit));
}
Value byte_rfind(Interp& in, NativeArgs& a) {
  const size_t hit = bytes_of(a).rfind(needle(in, a[0]));
  return Value::integer(hit == std::string::npos ? -1 : static_cast<int64_t>(hit));
}
Value byte_index(Interp& in, NativeArgs& a) {
  Value at = byte_find(in, a);
  if (at.integer() < 0) in.fail(ErrorKind::kValue, "the bytes do not hold {}", in.repr(a[0]));
  return at;
}
Value byte_count(Interp& in, NativeArgs& a) {
  const std::string what = needle(in, a[0]);
  if (what.empty()) return Value::integer(static_cast<int64_t>(bytes_of(a).size()) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = bytes_of(a).find(what, at)) != std::string::npos; at += what.size()) ++n;
  return Value::integer(n);
}

bool any_of_bytes(Interp& in, const Value& v, const std::function<bool(const std::string&)>& test) {
  auto* t = v.get<Tuple>();
  if (!t) return test(to_bytes(in, v, "what is looked for"));
  return std::any_of(t->items.begin(), t->items.end(),
                     [&](const Value& one) { return test(to_bytes(in, one, "what is looked for")); });
}
Value byte_startswith(Interp& in, NativeArgs& a) {
  return Value::boolean(any_of_bytes(in, a[0], [&](const std::string& p) { return bytes_of(a).starts_with(p); }));
}
Value byte_endswith(Interp& in, NativeArgs& a) {
  return Value::boolean(any_of_bytes(in, a[0], [&](const std::string& p) { return bytes_of(a).ends_with(p); }));
}

Value byte_replace(Interp& in, NativeArgs& a) {
  const std::string &from = to_bytes(in, a[0], "replace()'s old"), &to = to_bytes(in, a[1], "replace()'s new");
  if (from.empty()) in.fail(ErrorKind::kValue, "replace()'s old cannot be empty");
  const std::string& data = bytes_of(a);
  std::string out;
  size_t at = 0;
  for (size_t hit; (hit = data.find(from, at)) != std::string::npos; at = hit + from.size())
    out += data.substr(at, hit - at) + to;
  return alike(a, out + data.substr(at));
}

Value byte_split(Interp& in, NativeArgs& a) {
  const std::string& data = bytes_of(a);
  std::vector<Value> out;
  if (a[0].missing() || a[0].is_none()) {
    constexpr std::string_view kBlanks = " \t\n\r\f\v";
    for (size_t at = data.find_first_not_of(kBlanks); at != std::string::npos;) {
      const size_t end = data.find_first_of(kBlanks, at);
      out.push_back(alike(a, data.substr(at, end - at)));
      at = data.find_first_not_of(kBlanks, end);
    }
    return make<List>(std::move(out));
  }
  const std::string& separator = to_bytes(in, a[0], "split()'s separator");
  if (separator.empty()) in.fail(ErrorKind::kValue, "split()'s separator cannot be empty");
  size_t at = 0;
  for (size_t hit; (hit = data.find(separator, at)) != std::string::npos; at = hit + separator.size())
    out.push_back(alike(a, data.substr(at, hit - at)));
  out.push_back(alike(a, data.substr(at)));
  return make<List>(std::move(out));
}

Value byte_join(Interp& in, NativeArgs& a) {
  std::string out;
  bool first = true;
  in.for_each(a[0], [&](const Value& v) {
    if (!std::exchange(first, false)) out += bytes_of(a);
    out += to_bytes(in, v, "an element of join()");
    return true;
  });
  return alike(a, std::move(out));
}

Value byte_strip(Interp& in, NativeArgs& a, bool left, bool right) {
  const std::string set = a[0].missing() || a[0].is_none() ? " \t\n\r\f\v" : to_bytes(in, a[0], "strip()'s bytes");
  const std::string& data = bytes_of(a);
  size_t first = 0, last = data.size();
  while (left && first < last && set.find(data[first]) != std::string::npos) ++first;
  while (right && last > first && set.find(data[last - 1]) != std::string::npos) --last;
  return alike(a, data.substr(first, last - first));
}
Value byte_strip_both(Interp& in, NativeArgs& a) { return byte_strip(in, a, true, true); }
Value byte_lstrip(Interp& in, NativeArgs& a) { return byte_strip(in, a, true, false); }
Value byte_rstrip(Interp& in, NativeArgs& a) { return byte_strip(in, a, false, true); }

Value byte_cased(NativeArgs& a, int (*change)(int)) {
  std::string out = bytes_of(a);
  for (char& c : out)
    // As Python: bytes beyond ASCII have no case.
    if (static_cast<uint8_t>(c) < 0x80) c = static_cast<char>(change(c));
  return alike(a, std::move(out));
}
Value byte_upper(Interp&, NativeArgs& a) { return byte_cased(a, std::toupper); }
Value byte_lower(Interp&, NativeArgs& a) { return byte_cased(a, std::tolower); }

constexpr NativeDef kByteMethods[] = {
    {"count(what)", byte_count, "how often it holds bytes"},
    {"decode(encoding='utf-8', errors='strict')", decode, "the text that they encode"},
    {"endswith(suffix)", byte_endswith, "does it end with bytes, or some of a tuple?"},
    {"find(what, start=0)", byte_find, "where bytes begin in it, or -1"},
    {"hex(sep='', bytes_per_sep=1)", to_hex, "two hexadecimal digits per byte"},
    {"index(what, start=0)", byte_index, "where bytes begin in it"},
    {"join(iterable)", byte_join, "the parts with these bytes between them"},
    {"lower()", byte_lower, "ASCII letters as small ones"},
    {"lstrip(bytes=None)", byte_lstrip, "without blanks on the left"},
    {"replace(old, new)", byte_replace, "with some bytes replaced by others"},
    {"rfind(what)", byte_rfind, "where bytes last begin in it, or -1"},
    {"rstrip(bytes=None)", byte_rstrip, "without blanks on the right"},
    {"split(sep=None)", byte_split, "the parts between separators, or between blanks"},
    {"startswith(prefix)", byte_startswith, "does it start with bytes, or some of a tuple?"},
    {"strip(bytes=None)", byte_strip_both, "without blanks around it"},
    {"upper()", byte_upper, "ASCII letters as capitals"},
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
  const Kind kinds[] = {Bytes::kKind, ByteArray::kKind};
  for (size_t i = 0; i < 2; ++i) {
    auto native = make<Native>(kTypes[i]);
    in.type_of(kinds[i])->constructor = native;
    in.type_of(kinds[i])->members.set("fromhex", make<Native>(kTypes[2 + i]));
    in.add_builtin(native->name, in.type_of(kinds[i]));
    in.add_methods({kinds[i], kByteMethods});
  }
  in.type_of(Kind::kInt)->members.set("from_bytes", make<Native>(kTypes[4]));
  in.add_methods({ByteArray::kKind, kArrayMethods});
  in.add_methods({Kind::kInt, kIntMethods});
  in.add_methods({Kind::kStr, kStrMethods});
}

}  // namespace kiln::script
