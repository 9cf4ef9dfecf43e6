// bytes and bytearray.
#pragma once
#include "repl/script/interp/interp.h"

namespace kiln::script {

class Bytes : public Object {
 public:
  static inline const KindOf<Bytes> kKind{"bytes"};
  explicit Bytes(std::string d) : Object(kKind), data(std::move(d)) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(data.size()); }
  Value item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp&) override;
  bool truth(Interp&) override { return !data.empty(); }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::optional<uint64_t> hash(Interp&) override { return std::hash<std::string_view>{}(data); }
  const std::string data;
};

class ByteArray : public Object {
 public:
  static inline const KindOf<ByteArray> kKind{"bytearray"};
  explicit ByteArray(std::string d) : Object(kKind), data(std::move(d)) {}
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(data.size()); }
  Value item(Interp& in, const Value& index) override;
  void set_item(Interp& in, const Value& index, Value value) override;
  void delete_item(Interp& in, const Value& index) override;
  Value iterate(Interp& in) override;
  std::string repr(Interp&) override;
  bool truth(Interp&) override { return !data.empty(); }
  std::optional<bool> contains(Interp& in, const Value& item) override;
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> in_place(Interp& in, ast::BinaryOp op, const Value& other) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::string data;
};

/// The bytes of a bytes or a bytearray; null for other values.
const std::string* byte_data(const Value& v);
/// The same, or an error that names `what`.
const std::string& to_bytes(Interp& in, const Value& v, std::string_view what);
/// What bytes() and bytearray.extend() take: bytes, or an iterable of ints from 0 to 255.
std::string gather_bytes(Interp& in, const Value& v);
/// The text as UTF-8, ASCII or Latin-1; `errors` is strict, ignore or replace.
std::string encode_text(Interp& in, const std::string& text, const std::string& encoding, const std::string& errors);
std::string decode_bytes(Interp& in, const std::string& data, const std::string& encoding, const std::string& errors);
/// Two hexadecimal digits for each byte, and the bytes of such a text; nullopt: it is none.
std::string hex_of(std::string_view bytes);
std::optional<std::string> bytes_of_hex(std::string_view digits);

}  // namespace kiln::script
