// repr, str, format and '%' formatting of values.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "repl/script/interp/interp.h"
#include "repl/script/value/bytes.h"
#include "repl/script/value/text.h"

namespace kiln::script {

std::string Interp::repr(const Value& v) {
  if (v.missing()) return "<unset>";
  if (v.is_dtype())
    return fmt::format("{}.{}", is_in_torch(v.dtype()) ? "torch" : "triton.language", info(v.dtype()).torch);
  if (auto* o = v.object()) {
    check_stack();
    return o->repr(*this);
  }
  return ast::repr(*v.constant());
}

std::string Interp::str(const Value& v) {
  if (auto* o = v.object()) return o->str(*this);
  return repr(v);
}

namespace {
void check_character(Interp& in, ast::Int code) {
  if (code < 0 || code > 0x10FFFF) in.fail_as("OverflowError", "{} is no character", ast::to_string(code));
}
}  // namespace

std::string Interp::format(const Value& v, std::string_view spec) {
  if (auto* o = v.object(); o && o->own_type()) {
    if (auto text = o->format(*this, spec)) return *text;
    if (spec.empty()) return str(v);
  }
  if (auto* s = v.get<Str>(); s && spec.empty()) return s->text;
  if (auto c = v.constant()) {
    if (spec.ends_with('c') && c->index() == 2) check_character(*this, std::get<ast::Int>(*c));
    return take(format_constant(*c, spec));
  }
  if (auto* o = v.object())
    if (auto text = o->format(*this, spec)) return *text;
  std::string text = str(v);
  if (spec.empty()) return text;
  fail(ErrorKind::kType, "the format '{}' does not apply to '{}'", spec, type_name(v));
}

namespace {
ast::Int value_as_int(Interp& in, double v) {
  if (std::isnan(v)) in.fail(ErrorKind::kValue, "nan cannot be an int");
  if (std::isinf(v)) in.fail_as("OverflowError", "{} cannot be an int", ast::float_repr(v));
  if (std::fabs(v) >= 0x1p127)
    in.fail(ErrorKind::kValue, "{} does not fit into Kiln's ints of 128 bits", ast::float_repr(v));
  return static_cast<ast::Int>(v);
}

/// The int that an object says it is: by __int__ where it is shown as a decimal number, else by __index__ alone.
Value whole_of(Interp& in, const Value& v, bool decimal) {
  if (v.object() && !v.get<WideInt>() && v.kind() != Kind::kType)
    for (const char* name : {"__int__", "__index__"})
      if (decimal || std::string_view(name) == "__index__")
        if (auto f = in.find_attribute(v, name)) return in.call(*f, {});
  return v;
}

/// What %s, %b and %c of a format of bytes put there.
std::string shown_bytes(Interp& in, char type, const Value& v) {
  if (type != 'c') return to_bytes(in, v, fmt::format("the value of '%{}'", type));
  const std::string* one = byte_data(v);
  if (one && one->size() == 1) return *one;
  if (!v.small_int_or_bool() || v.integer() < 0 || v.integer() > 255)
    in.fail(ErrorKind::kType, "'%c' needs an int from 0 to 255 or one byte, got {}", in.repr(v));
  return {static_cast<char>(v.integer())};
}

}  // namespace

std::string Interp::percent_format(const std::string& text, const Value& args, bool bytes) {
  auto* tuple = args.get<Tuple>();
  auto* dict = args.get<Dict>();
  size_t used = 0;
  auto next = [&]() -> Value {
    if (tuple) {
      if (used >= tuple->items.size()) fail(ErrorKind::kType, "the '%' format needs more than {} values", used);
      return tuple->items[used++];
    }
    if (used++ > 0) fail(ErrorKind::kType, "the '%' format needs more than one value");
    return args;
  };
  // A width or a precision within the limit of all formats.
  auto columns = [&](const std::string& number) {
    return number.empty() ? 0 : take(format_constant(std::string(), ">" + number)).size();
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    ++i;
    if (i < text.size() && text[i] == '%') {
      out += '%';
      continue;
    }
    Value value;
    if (i < text.size() && text[i] == '(') {
      size_t close = text.find(')', i);
      if (!dict || close == std::string::npos) fail(ErrorKind::kType, "'%(name)' needs a dict on the right of '%'");
      std::string key = text.substr(i + 1, close - i - 1);
      value = item(args, bytes ? Value(make<Bytes>(std::move(key))) : Value::str(key));
      i = close + 1;
    }
    std::string flags, width, precision;
    while (i < text.size() && std::string_view("-+ #0").find(text[i]) != std::string_view::npos) flags += text[i++];
    auto number = [&](std::string& to) {
      if (i < text.size() && text[i] == '*') {
        const int64_t n = to_int(next(), "a width of '%'");
        // As in C: a width below 0 aligns to the left, a precision below 0 counts as 0.
        if (n < 0 && &to == &width) flags += '-';
        to = n >= 0 ? std::to_string(n) : &to == &width ? std::to_string(n).substr(1) : "0";
        ++i;
      } else {
        while (i < text.size() && text[i] >= '0' && text[i] <= '9') to += text[i++];
      }
    };
    number(width);
    if (i < text.size() && text[i] == '.') {
      ++i;
      number(precision);
      if (precision.empty()) precision += '0';
    }
    if (i >= text.size()) fail(ErrorKind::kValue, "the '%' format ends in the middle of a field");
    char type = text[i];
    if (value.missing()) value = next();
    std::string spec;
    bool left = flags.find('-') != std::string::npos;
    bool textual = type == 's' || type == 'r' || type == 'a' || type == 'c';
    if (left)
      spec += '<';
    else if (textual)
      spec += '>';
    if (!textual && flags.find('+') != std::string::npos)
      spec += '+';
    else if (!textual && flags.find(' ') != std::string::npos)
      spec += ' ';
    if (!textual && flags.find('#') != std::string::npos) spec += '#';
    if (!textual && !left && flags.find('0') != std::string::npos) spec += '0';
    spec += width;
    if (bytes && (type == 's' || type == 'b' || type == 'c')) {
      std::string shown = shown_bytes(*this, type, value);
      if (type != 'c' && !precision.empty()) shown.resize(std::min(shown.size(), columns(precision)));
      // Each byte is a column here, whatever the bytes encode.
      const size_t wide = columns(width);
      if (shown.size() < wide) shown.insert(left ? shown.size() : 0, wide - shown.size(), ' ');
      out += shown;
      continue;
    }
    if (bytes && type == 'r') type = 'a';
    if (type == 's' || type == 'r' || type == 'a') {
      if (!precision.empty()) spec += "." + precision;
      std::string shown = type == 's' ? str(value) : repr(value);
      out += take(format_constant(type == 'a' ? ascii_of(shown) : std::move(shown), spec));
    } else if (type == 'c' && value.get<Str>()) {
      if (length(value) != 1) fail(ErrorKind::kType, "'%c' needs an int or one character, got {}", repr(value));
      out += take(format_constant(str(value), spec));
    } else if (type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' || type == 'o' || type == 'c') {
      const bool decimal = type == 'd' || type == 'i' || type == 'u';
      value = whole_of(*this, value, decimal);
      auto c = value.constant();
      if (value.is_float() && decimal) c = value_as_int(*this, value.real());
      if (!c || c->index() < 1 || c->index() > 2)
        fail(ErrorKind::kType, "'%{}' needs a number, got '{}'", type, type_name(value));
      if (c->index() == 1) c = ast::Int{std::get<bool>(*c)};
      if (type == 'c') check_character(*this, std::get<ast::Int>(*c));
      const std::string as = decimal ? "" : std::string(1, type);
      if (precision.empty() || type == 'c') {
        out += take(format_constant(*c, spec + as));
        continue;
      }
      // A precision is the least number of digits.
      const std::string signs = flags.find('+') != std::string::npos   ? "+"
                                : flags.find(' ') != std::string::npos ? " "
                                                                       : "";
      const bool prefix = flags.find('#') != std::string::npos && !decimal;
      std::string digits = take(format_constant(*c, signs + (prefix ? "#" : "") + as));
      const size_t at = digits.find_first_of("0123456789abcdefABCDEF") + (prefix ? 2 : 0);
      const size_t least = columns(precision);
      if (digits.size() - at < least) digits.insert(at, least - (digits.size() - at), '0');
      // Zeros of the width go behind the sign too.
      const bool zeros = !left && flags.find('0') != std::string::npos;
      const size_t wide = columns(width);
      if (zeros && digits.size() < wide) digits.insert(at, wide - digits.size(), '0');
      out += take(format_constant(digits, (left ? "<" : ">") + width));
    } else if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
      if (!precision.empty()) spec += "." + precision;
      out += take(format_constant(to_double(value, "a value of '%'"), spec + type));
    } else {
      fail(ErrorKind::kValue, "'%{}' is no format", type);
    }
  }
  if (tuple && used < tuple->items.size())
    fail(ErrorKind::kType, "the '%' format takes {} values, got {}", used, tuple->items.size());
  // What could be a mapping may be left over, as in Python.
  const auto* o = args.object();
  const bool own_items = o && o->own_type() && (*o->own_type())->find("__getitem__");
  const bool keyed = dict || own_items || args.get<List>() || args.get<Range>();
  if (!tuple && used == 0 && !keyed)
    fail(ErrorKind::kType, "the '%' format takes no values, got '{}'", type_name(args));
  return out;
}

}  // namespace kiln::script
