// json.loads(): what CPython's json takes, with its messages. JSON itself, NaN and Infinity, and ints of any size that
// Kiln has.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "repl/modules/std/std.h"
#include "support/text_width.h"

namespace kiln::script {

namespace {

class Reader {
 public:
  Reader(Interp& in, std::string_view text, const JsonHooks& hooks) : in_(in), text_(text), hooks_(hooks) {}

  Value whole() {
    if (text_.starts_with("\ufeff")) fail("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
    skip_blanks();
    Value out = value();
    skip_blanks();
    if (at_ < text_.size()) fail("Extra data", at_);
    return out;
  }

 private:
  [[noreturn]] void fail(std::string_view what, size_t at) {
    const std::string_view before = text_.substr(0, at);
    auto characters = [](std::string_view s) {
      return std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
    };
    const size_t line = before.rfind('\n') + 1;  // 0 in the first one
    const int64_t lines = std::count(before.begin(), before.end(), '\n') + 1,
                  column = characters(before.substr(line)) + 1, position = characters(before);
    try {
      in_.fail_as("JSONDecodeError", "{}: line {} column {} (char {})", what, lines, column, position);
    } catch (ScriptError& e) {
      Table& fields = e.exception.get<Instance>()->fields;
      fields.set("msg", Value::str(std::string(what)));
      fields.set("doc", Value::str(std::string(text_)));
      fields.set("pos", Value::integer(position));
      fields.set("lineno", Value::integer(lines));
      fields.set("colno", Value::integer(column));
      throw;
    }
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  Value value() {
    // Nothing else stops a text of brackets alone.
    in_.check_stack();
    if (take("{")) return object();
    if (take("[")) return array();
    if (take("\"")) return Value::str(string());
    if (take("null")) return Value::none();
    if (take("true")) return Value::boolean(true);
    if (take("false")) return Value::boolean(false);
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (take(word)) {
        if (!hooks_.constant.missing()) return in_.call(hooks_.constant, {Value::str(std::string(word))});
        return Value::real(word == "NaN" ? std::nan("") : word == "Infinity" ? INFINITY : -INFINITY);
      }
    return number();
  }

  /// An object is what a hook makes of it.
  Value finished(const Ref<Dict>& dict, std::vector<Value> pairs) {
    if (!hooks_.pairs.missing()) return in_.call(hooks_.pairs, {make<List>(std::move(pairs))});
    return hooks_.object.missing() ? Value(dict) : in_.call(hooks_.object, {Value(dict)});
  }

  Value object() {
    auto out = make<Dict>();
    std::vector<Value> pairs;
    skip_blanks();
    if (take("}")) return finished(out, std::move(pairs));
    while (true) {
      const size_t begin = at_;
      if (!take("\"")) fail("Expecting property name enclosed in double quotes", begin);
      Value key = Value::str(string());
      skip_blanks();
      if (!take(":")) fail("Expecting ':' delimiter", at_);
      skip_blanks();
      Value held = value();
      if (hooks_.pairs.missing())
        out->table.set(in_, std::move(key), std::move(held));
      else
        pairs.push_back(make<Tuple>(std::vector<Value>{std::move(key), std::move(held)}));
      skip_blanks();
      if (take("}")) return finished(out, std::move(pairs));
      if (!take(",")) fail("Expecting ',' delimiter", at_);
      skip_blanks();
    }
  }

  Value array() {
    auto out = make<List>();
    skip_blanks();
    if (take("]")) return Value(out);
    while (true) {
      out->items.push_back(value());
      skip_blanks();
      if (take("]")) return Value(out);
      if (!take(",")) fail("Expecting ',' delimiter", at_);
      skip_blanks();
    }
  }

  /// What stands behind the opening quote.
  std::string string() {
    const size_t begin = at_ - 1;
    std::string out;
    while (true) {
      if (at_ >= text_.size()) fail("Unterminated string starting at", begin);
      const char c = text_[at_];
      if (static_cast<uint8_t>(c) < 0x20) fail("Invalid control character at", at_);
      ++at_;
      if (c == '"') return out;
      if (c == '\\')
        escape(begin, out);
      else
        out += c;
    }
  }

  void escape(size_t begin, std::string& out) {
    if (at_ >= text_.size()) fail("Unterminated string starting at", begin);
    constexpr std::string_view kLetters = "\"\\/bfnrtu", kMeanings = "\"\\/\b\f\n\r\t";
    const size_t which = kLetters.find(text_[at_++]);
    if (which == std::string_view::npos) fail("Invalid \\escape", at_ - 2);
    if (which < kMeanings.size()) {
      out += kMeanings[which];
      return;
    }
    char32_t code = unit();
    // Two halves of a character beyond 16 bits.
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      const size_t second = at_;
      at_ += 2;
      if (const char32_t low = unit(); low >= 0xDC00 && low < 0xE000)
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      else
        at_ = second;
    }
    // Half of a character is none, for chr() too.
    if (code >= 0xD800 && code < 0xE000) fail("Invalid \\uXXXX escape", at_ - 5);
    append_utf8(out, code);
  }

  /// Four hexadecimal digits.
  char32_t unit() {
    char32_t code = 0;
    const size_t begin = at_;
    for (; at_ < begin + 4; ++at_) {
      const char c = peek();
      if (!std::isxdigit(static_cast<uint8_t>(c))) fail("Invalid \\uXXXX escape", begin - 1);
      code = code * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
  }

  bool skip_digits() {
    const size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > begin;
  }

  Value number() {
    const size_t begin = at_;
    const bool negative = take("-");
    const size_t first = at_;
    // No digit follows a zero: 01 is 0 with a 1 too much.
    if (!take("0") && !skip_digits()) fail("Expecting value", begin);
    const std::string_view digits = text_.substr(first, at_ - first);
    bool is_float = false;
    for (const std::string_view marks : {".", "eE"}) {
      const size_t before = at_;
      if (at_ >= text_.size() || marks.find(text_[at_]) == std::string_view::npos) continue;
      ++at_;
      if (marks != "." && (peek() == '+' || peek() == '-')) ++at_;
      if (skip_digits())
        is_float = true;
      else
        at_ = before;
    }
    const Value& hook = is_float ? hooks_.real : hooks_.integer;
    if (!hook.missing()) return in_.call(hook, {Value::str(std::string(text_.substr(begin, at_ - begin)))});
    if (is_float) return Value::real(std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr));
    ast::Int out = 0;
    for (char c : digits)
      if (__builtin_mul_overflow(out, ast::Int{10}, &out) ||
          __builtin_add_overflow(out, ast::Int{negative ? '0' - c : c - '0'}, &out))
        fail("the int needs more than 128 bits, which Kiln's integers have", begin);
    return Value::wide(out);
  }

  Interp& in_;
  const std::string_view text_;
  const JsonHooks& hooks_;
  size_t at_ = 0;
};

}  // namespace

Value parse_json(Interp& in, const std::string& text, const JsonHooks& hooks) {
  return Reader(in, text, hooks).whole();
}

}  // namespace kiln::script
