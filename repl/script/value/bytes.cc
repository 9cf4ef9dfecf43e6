#include "repl/script/value/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "support/text_width.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;

namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;  // of what one operation makes

char to_byte(Interp& in, const Value& v) {
  const int64_t i = in.to_int(v, "a byte");
  if (i < 0 || i > 255) in.fail(ErrorKind::kValue, "a byte must be from 0 to 255, got {}", i);
  return static_cast<char>(i);
}

Value byte_value(char c) { return Value::integer(static_cast<uint8_t>(c)); }

template <class T>
Value byte_item(Interp& in, const std::string& data, const Value& index) {
  const auto n = static_cast<int64_t>(data.size());
  if (auto* s = index.get<SliceObject>()) {
    const auto span = in.slice_span(*s, n);
    std::string out;
    for (int64_t i = 0; i < span.count; ++i) out += data[static_cast<size_t>(span.start + i * span.step)];
    return make<T>(std::move(out));
  }
  return byte_value(data[static_cast<size_t>(in.index_in(index, n, kind_name(T::kKind)))]);
}

class ByteIterator : public IteratorObject {
 public:
  explicit ByteIterator(Value of) : of_(std::move(of)) {}
  bool next(Interp&, Value& out) override {
    const std::string& data = *byte_data(of_);
    if (at_ >= data.size()) return false;
    out = byte_value(data[at_++]);
    return true;
  }

 private:
  Value of_;
  size_t at_ = 0;
};

std::string byte_repr(const std::string& data) {
  // As Python: double quotes where they save an escape.
  const char quote = data.find('\'') != std::string::npos && data.find('"') == std::string::npos ? '"' : '\'';
  std::string out = {'b', quote};
  for (char c : data) {
    if (c == quote || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    // char is signed here: bytes from 0x80 on are below 0x20.
    else if (c < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    else
      out += c;
  }
  return out + quote;
}

bool holds_bytes(Interp& in, const std::string& data, const Value& item) {
  if (const std::string* b = byte_data(item)) return data.find(*b) != std::string::npos;
  return data.find(to_byte(in, item)) != std::string::npos;
}

template <class T>
std::optional<Value> byte_binary(Interp& in, BinaryOp op, const std::string& data, const Value& other, bool reflected) {
  if (op == BinaryOp::kAdd) {
    const std::string* more = byte_data(other);
    if (!more) return std::nullopt;
    return make<T>(reflected ? *more + data : data + *more);
  }
  if (op == BinaryOp::kMod && !reflected) return make<T>(in.percent_format(data, other, true));
  if (op != BinaryOp::kMul || !other.small_int_or_bool()) return std::nullopt;
  // Nothing repeated stays nothing, however often.
  const size_t n = data.empty() ? 0 : static_cast<size_t>(std::max<int64_t>(0, other.integer()));
  if (n > 0 && data.size() > kMaxBytes / n)
    in.fail(ErrorKind::kMemory, "the repeated bytes would be more than {}", kMaxBytes);
  std::string out;
  out.reserve(n * data.size());
  for (size_t i = 0; i < n; ++i) out += data;
  return make<T>(std::move(out));
}

std::optional<Value> byte_compare(CompareOp op, const std::string& data, const Value& other) {
  const std::string* b = byte_data(other);
  if (!b) return std::nullopt;
  const int order = data.compare(*b);
  switch (op) {
    case CompareOp::kEq:
      return Value::boolean(order == 0);
    case CompareOp::kNe:
      return Value::boolean(order != 0);
    case CompareOp::kLt:
      return Value::boolean(order < 0);
    case CompareOp::kLe:
      return Value::boolean(order <= 0);
    case CompareOp::kGt:
      return Value::boolean(order > 0);
    case CompareOp::kGe:
      return Value::boolean(order >= 0);
    case CompareOp::kIs:
    case CompareOp::kIsNot:
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      break;
  }
  return std::nullopt;
}

enum class Encoding { kUtf8, kAscii, kLatin1 };
Encoding encoding_of(Interp& in, const std::string& name) {
  std::string plain;
  for (char c : name)
    if (c != '-' && c != '_') plain += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
  if (plain == "utf8") return Encoding::kUtf8;
  if (plain == "ascii" || plain == "usascii") return Encoding::kAscii;
  if (plain == "latin1" || plain == "iso88591") return Encoding::kLatin1;
  in.fail_as("LookupError", "the encoding '{}' is not there: utf-8, ascii and latin-1 are", name);
}

}  // namespace

Value Bytes::item(Interp& in, const Value& index) { return byte_item<Bytes>(in, data, index); }
Value Bytes::iterate(Interp&) { return make<ByteIterator>(Value(this)); }
std::string Bytes::repr(Interp&) { return byte_repr(data); }
std::optional<bool> Bytes::contains(Interp& in, const Value& item) { return holds_bytes(in, data, item); }
std::optional<Value> Bytes::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  return byte_binary<Bytes>(in, op, data, other, reflected);
}
std::optional<Value> Bytes::compare(Interp&, CompareOp op, const Value& other) { return byte_compare(op, data, other); }

Value ByteArray::item(Interp& in, const Value& index) { return byte_item<ByteArray>(in, data, index); }
Value ByteArray::iterate(Interp&) { return make<ByteIterator>(Value(this)); }
std::string ByteArray::repr(Interp&) { return "bytearray(" + byte_repr(data) + ")"; }
std::optional<bool> ByteArray::contains(Interp& in, const Value& item) { return holds_bytes(in, data, item); }
std::optional<Value> ByteArray::binary(Interp& in, BinaryOp op, const Value& other, bool reflected) {
  return byte_binary<ByteArray>(in, op, data, other, reflected);
}
std::optional<Value> ByteArray::compare(Interp&, CompareOp op, const Value& other) {
  return byte_compare(op, data, other);
}

std::optional<Value> ByteArray::in_place(Interp& in, BinaryOp op, const Value& other) {
  if (op != BinaryOp::kAdd) return std::nullopt;
  data += to_bytes(in, other, "what is added to a bytearray");
  return Value(this);
}

void ByteArray::set_item(Interp& in, const Value& index, Value value) {
  auto* s = index.get<SliceObject>();
  if (!s) {
    const char c = to_byte(in, value);  // an __index__ of the script's may change the array: first
    data[static_cast<size_t>(in.index_in(index, static_cast<int64_t>(data.size()), "bytearray"))] = c;
    return;
  }
  const std::string more = gather_bytes(in, value);
  const auto span = in.slice_span(*s, static_cast<int64_t>(data.size()));
  if (span.step == 1) {
    // Places are taken again behind gather_bytes(), whose iterator may have changed the array.
    data.replace(std::min(data.size(), static_cast<size_t>(span.start)), static_cast<size_t>(span.count), more);
    return;
  }
  if (static_cast<int64_t>(more.size()) != span.count)
    in.fail(ErrorKind::kValue, "a slice of {} bytes cannot take {}", span.count, more.size());
  for (int64_t i = 0; i < span.count; ++i) {
    const auto at = static_cast<size_t>(span.start + i * span.step);
    if (at < data.size()) data[at] = more[static_cast<size_t>(i)];
  }
}

void ByteArray::delete_item(Interp& in, const Value& index) {
  const auto n = static_cast<int64_t>(data.size());
  auto* s = index.get<SliceObject>();
  if (!s) {
    data.erase(static_cast<size_t>(in.index_in(index, n, "bytearray")), 1);
    return;
  }
  const auto span = in.slice_span(*s, n);
  std::vector<bool> gone(data.size());
  for (int64_t i = 0; i < span.count; ++i) {
    const auto at = static_cast<size_t>(span.start + i * span.step);
    if (at < gone.size()) gone[at] = true;
  }
  std::string left;
  for (size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) left += data[i];
  data = std::move(left);
}

const std::string* byte_data(const Value& v) {
  if (auto* b = v.get<Bytes>()) return &b->data;
  if (auto* b = v.get<ByteArray>()) return &b->data;
  return nullptr;
}

const std::string& to_bytes(Interp& in, const Value& v, std::string_view what) {
  const std::string* b = byte_data(v);
  if (!b) in.fail(ErrorKind::kType, "{} must be bytes, got '{}'", what, in.type_name(v));
  return *b;
}

std::string gather_bytes(Interp& in, const Value& v) {
  if (const std::string* b = byte_data(v)) return *b;
  if (v.get<Str>()) in.fail(ErrorKind::kType, "a str has no bytes without an encoding: use text.encode()");
  std::string out;
  in.for_each(v, [&](const Value& item) {
    if (out.size() >= kMaxBytes) in.fail(ErrorKind::kMemory, "the iterable has more than {} bytes", kMaxBytes);
    out += to_byte(in, item);
    return true;
  });
  return out;
}

namespace {
/// A name of what is done with characters that an encoding does not have; asked only where one is met, as in Python.
void fail_handler(Interp& in, const std::string& errors) {
  if (errors != "strict") in.fail_as("LookupError", "unknown error handler name '{}'", errors);
}
}  // namespace

std::string encode_text(Interp& in, const std::string& text, const std::string& encoding, const std::string& errors) {
  const Encoding e = encoding_of(in, encoding);
  if (e == Encoding::kUtf8) return text;
  const char32_t last = e == Encoding::kAscii ? 0x7F : 0xFF;
  std::string out;
  for (size_t i = 0, position = 0; i < text.size(); ++position) {
    // Text is kept as UTF-8, so positions of characters are counted here.
    const Character c = first_character(std::string_view(text).substr(i));
    i += c.bytes;
    if (c.code <= last)
      out += static_cast<char>(c.code);
    else if (errors == "replace")
      out += '?';
    else if (const auto code = static_cast<uint32_t>(c.code); errors == "backslashreplace")
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    else if (errors == "xmlcharrefreplace")
      out += fmt::format("&#{};", code);
    else if (errors != "ignore") {
      fail_handler(in, errors);
      in.fail_as("UnicodeEncodeError", "'{}' cannot encode the character U+{:04X} in position {}", encoding, code,
                 position);
    }
  }
  return out;
}

std::string decode_bytes(Interp& in, const std::string& data, const std::string& encoding, const std::string& errors) {
  const Encoding e = encoding_of(in, encoding);
  std::string out;
  for (size_t i = 0; i < data.size();) {
    const auto byte = static_cast<uint8_t>(data[i]);
    Character c{byte, 1};
    if (e == Encoding::kUtf8) c = first_character(std::string_view(data).substr(i));
    // Also U+FFFD itself may be in the bytes; a character of one byte is a bad one.
    const bool bad = e == Encoding::kUtf8 ? c.code == 0xFFFD && c.bytes == 1 : e == Encoding::kAscii && byte > 0x7F;
    if (!bad)
      append_utf8(out, c.code);
    else if (errors == "replace")
      append_utf8(out, 0xFFFD);
    else if (errors == "backslashreplace")
      out += fmt::format("\\x{:02x}", byte);
    else if (errors != "ignore") {
      fail_handler(in, errors);
      in.fail_as("UnicodeDecodeError", "'{}' cannot decode the byte 0x{:02x} in position {}", encoding, byte, i);
    }
    i += c.bytes;
  }
  return out;
}

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

std::optional<std::string> bytes_of_hex(std::string_view digits) {
  std::string out;
  for (size_t i = 0; i < digits.size(); i += 2) {
    uint8_t byte = 0;
    const char* const end = digits.data() + i + 2;
    // Asks for the end as well: from_chars is content with one digit of two.
    if (i + 2 > digits.size() || std::from_chars(digits.data() + i, end, byte, 16).ptr != end) return std::nullopt;
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace kiln::script
