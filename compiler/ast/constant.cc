#include "compiler/ast/constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "support/text_width.h"
#include "support/unicode.h"

namespace kiln::ast {
namespace {

constexpr std::string_view kUnary[] = {"not", "-", "+", "~"};
constexpr std::string_view kBinary[] = {"+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"};
constexpr std::string_view kCompare[] = {"==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"};
// 'x' * n is limited, so that a script cannot exhaust the memory with one expression.
constexpr size_t kMaxRepeatedBytes = size_t{1} << 30;

bool is_number(const Constant& c) { return c.index() >= 1 && c.index() <= 3; }
bool is_integer(const Constant& c) { return c.index() == 1 || c.index() == 2; }
Int to_int(const Constant& c) { return c.index() == 1 ? Int{std::get<bool>(c)} : std::get<Int>(c); }
double to_float(const Constant& c) { return c.index() == 3 ? std::get<double>(c) : static_cast<double>(to_int(c)); }

Diagnostic overflow(SourceRange where, std::string_view op) {
  return error_at(where, ErrorKind::kValue, "the result of '{}' needs more than 128 bits, which Kiln's integers have",
                  op);
}
Diagnostic by_zero(SourceRange where) { return error_at(where, ErrorKind::kValue, "division by zero"); }

// Python rounds quotients down, C++ toward zero.
Int floor_div(Int a, Int b) {
  Int q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

Result<Constant> int_pow(Int base, Int exponent, SourceRange where) {
  if (exponent < 0) {
    if (base == 0) return error_at(where, ErrorKind::kValue, "0 cannot be raised to a negative power");
    return Constant(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  // These bases never overflow, so the loop below would run for every unit of the exponent. For others it ends after at
  // most 127 multiplications.
  if (base == 0 || base == 1) return Constant(exponent == 0 ? Int{1} : base);
  if (base == -1) return Constant(exponent % 2 == 0 ? Int{1} : Int{-1});
  Int result = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result)) return overflow(where, "**");
  return Constant(result);
}

Result<Constant> int_op(BinaryOp op, Int a, Int b, SourceRange where) {
  Int r = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return __builtin_add_overflow(a, b, &r) ? Result<Constant>(overflow(where, "+")) : Constant(r);
    case BinaryOp::kSub:
      return __builtin_sub_overflow(a, b, &r) ? Result<Constant>(overflow(where, "-")) : Constant(r);
    case BinaryOp::kMul:
      return __builtin_mul_overflow(a, b, &r) ? Result<Constant>(overflow(where, "*")) : Constant(r);
    case BinaryOp::kDiv:
      if (b == 0) return by_zero(where);
      // Python divides exactly and rounds once; a long double has 64 bits of precision, which suffices for common
      // values.
      return Constant(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
      if (b == 0) return by_zero(where);
      if (b == -1) {  // the one quotient that overflows is -2**127 / -1
        if (op == BinaryOp::kMod) return Constant(Int{0});
        return __builtin_sub_overflow(Int{0}, a, &r) ? Result<Constant>(overflow(where, "//")) : Constant(r);
      }
      r = floor_div(a, b);
      return Constant(op == BinaryOp::kFloorDiv ? r : a - r * b);
    case BinaryOp::kPow:
      return int_pow(a, b, where);
    case BinaryOp::kMatMul:
      break;
    case BinaryOp::kAnd:
      return Constant(a & b);
    case BinaryOp::kOr:
      return Constant(a | b);
    case BinaryOp::kXor:
      return Constant(a ^ b);
    case BinaryOp::kShl:
      if (b < 0) return error_at(where, ErrorKind::kValue, "a shift count cannot be negative");
      if (a == 0) return Constant(Int{0});
      // Int{1} << 127 would be the sign bit.
      if (b >= 127) return overflow(where, "<<");
      return __builtin_mul_overflow(a, Int{1} << b, &r) ? Result<Constant>(overflow(where, "<<")) : Constant(r);
    case BinaryOp::kShr:
      if (b < 0) return error_at(where, ErrorKind::kValue, "a shift count cannot be negative");
      // C++ leaves shifts by the width and more undefined; 127 places already leave the sign alone, which is Python's
      // result.
      return Constant(a >> (b > 127 ? 127 : b));
  }
  return error_at(where, ErrorKind::kType, "'{}' does not apply to 'int' and 'int'", spelling(op));
}

Result<Constant> float_op(BinaryOp op, double a, double b, SourceRange where) {
  switch (op) {
    case BinaryOp::kAdd:
      return Constant(a + b);
    case BinaryOp::kSub:
      return Constant(a - b);
    case BinaryOp::kMul:
      return Constant(a * b);
    case BinaryOp::kDiv:
      if (b == 0) return by_zero(where);
      return Constant(a / b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      if (b == 0) return by_zero(where);
      // As CPython's float_divmod: the remainder has the divisor's sign, and the quotient is adjusted to match it.
      double mod = std::fmod(a, b);
      double div = (a - mod) / b;
      if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
          mod += b;
          div -= 1.0;
        }
      } else {
        mod = std::copysign(0.0, b);
      }
      if (op == BinaryOp::kMod) return Constant(mod);
      double floored = std::floor(div);
      // div is close to an integer but may be rounded below it.
      if (div - floored > 0.5) floored += 1.0;
      return Constant(div != 0 ? floored : std::copysign(0.0, a / b));
    }
    case BinaryOp::kPow: {
      // C's pow returns inf or NaN in these three cases; Python raises, or makes a complex number.
      if (a == 0 && b < 0) return error_at(where, ErrorKind::kValue, "0.0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
        return error_at(where, ErrorKind::kUnsupported,
                        "a negative number raised to a fraction is complex, which is not supported");
      double r = std::pow(a, b);
      if (std::isinf(r) && std::isfinite(a) && std::isfinite(b))
        return error_at(where, ErrorKind::kValue, "the result of '**' is too large for a float");
      return Constant(r);
    }
    case BinaryOp::kMatMul:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      break;
  }
  return error_at(where, ErrorKind::kType, "'{}' does not apply to 'float'", spelling(op));
}

/// -1, 0, 1, or 2 when a NaN makes them unordered. Exact between ints and floats.
int order(const Constant& a, const Constant& b) {
  auto three_way = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; };
  if (is_integer(a) && is_integer(b)) return three_way(to_int(a), to_int(b));
  if (a.index() == 3 && b.index() == 3) return three_way(std::get<double>(a), std::get<double>(b));
  if (a.index() == 3) {
    int o = order(b, a);
    return o == 2 ? 2 : -o;
  }
  Int i = to_int(a);
  double d = std::get<double>(b);
  // Converting the int would round it; instead the float is split into its whole part, which fits 128 bits in this
  // range, and the rest.
  constexpr double kTwo127 = 170141183460469231731687303715884105728.0;
  if (std::isnan(d)) return 2;
  if (d >= kTwo127) return -1;
  if (d < -kTwo127) return 1;
  double whole = std::trunc(d);
  int o = three_way(i, static_cast<Int>(whole));
  return o != 0 ? o : three_way(whole, d);
}

bool equal(const Constant& a, const Constant& b) {
  if (is_number(a) && is_number(b)) return order(a, b) == 0;
  return a.index() == b.index() && a == b;
}

// Constants have no identity as objects. `is` asks for the same type and value, so that `1 is True` is False.
bool identical(const Constant& a, const Constant& b) { return a.index() == b.index() && equal(a, b); }

bool ordered_by(CompareOp op, int order) {
  switch (op) {
    case CompareOp::kEq:
      return order == 0;
    case CompareOp::kNe:
      return order != 0;
    case CompareOp::kLt:
      return order == -1;
    case CompareOp::kLe:
      return order == -1 || order == 0;
    case CompareOp::kGt:
      return order == 1;
    case CompareOp::kGe:
      return order == 1 || order == 0;
    case CompareOp::kIs:
    case CompareOp::kIsNot:
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      break;
  }
  KILN_UNREACHABLE("not an ordering");
}

}  // namespace

std::string to_string(Int value) {
  if (value == 0) return "0";
  bool negative = value < 0;
  // Negated as unsigned, because the smallest integer has no positive counterpart.
  auto rest = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  for (; rest != 0; rest /= 10) out += static_cast<char>('0' + static_cast<int>(rest % 10));
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

std::string_view spelling(UnaryOp op) { return kUnary[static_cast<size_t>(op)]; }
std::string_view spelling(BinaryOp op) { return kBinary[static_cast<size_t>(op)]; }
std::string_view spelling(CompareOp op) { return kCompare[static_cast<size_t>(op)]; }

std::string_view type_name(const Constant& c) {
  constexpr std::string_view kNames[] = {"NoneType", "bool", "int", "float", "str"};
  return kNames[c.index()];
}

std::string float_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  // The shortest digits that read back as the same value, as Python's repr prints.
  auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific);
  KILN_ASSERT(ec == std::errc());
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string sign;
  if (text[0] == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  size_t mark = text.find('e');
  std::string digits(text.substr(0, mark));
  // Drops the '.', so that the digits can be laid out again for either notation.
  if (digits.size() > 1) digits.erase(1, 1);
  int exponent = 0;
  std::string_view power = text.substr(mark + 1);
  if (power[0] == '+') power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  // Python's limits for the scientific notation.
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string repr(const Constant& c) {
  switch (c.index()) {
    case 0:
      return "None";
    case 1:
      return std::get<bool>(c) ? "True" : "False";
    case 2:
      return to_string(std::get<Int>(c));
    case 3:
      return float_repr(std::get<double>(c));
  }
  const std::string& s = std::get<std::string>(c);
  // As Python: double quotes only where they save an escape.
  char quote = s.find('\'') != std::string::npos && s.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < s.size(); ++at) {
    const char ch = s[at];
    auto u = static_cast<uint8_t>(ch);
    if (u >= 0x80) {
      const Character letter = first_character(std::string_view(s).substr(at));
      if (unicode::is_printable(letter.code) || letter.code == 0xFFFD)
        out.append(s, at, letter.bytes);
      else
        out += letter.code < 0x100     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(letter.code))
               : letter.code < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(letter.code))
                                       : fmt::format("\\U{:08x}", static_cast<uint32_t>(letter.code));
      at += letter.bytes - 1;
    } else if (ch == quote || ch == '\\') {
      out += '\\';
      out += ch;
    } else if (ch == '\n') {
      out += "\\n";
    } else if (ch == '\t') {
      out += "\\t";
    } else if (ch == '\r') {
      out += "\\r";
    } else if (u < 0x20 || u == 0x7F) {
      out += fmt::format("\\x{:02x}", u);
    } else {
      out += ch;
    }
  }
  return out + quote;
}

bool truth(const Constant& c) {
  switch (c.index()) {
    case 0:
      return false;
    case 1:
      return std::get<bool>(c);
    case 2:
      return std::get<Int>(c) != 0;
    case 3:
      return std::get<double>(c) != 0;
  }
  return !std::get<std::string>(c).empty();
}

Result<Constant> apply(UnaryOp op, const Constant& a, SourceRange where) {
  if (op == UnaryOp::kNot) return Constant(!truth(a));
  if (is_integer(a)) {
    Int v = to_int(a), r = 0;
    if (op == UnaryOp::kPlus) return Constant(v);
    if (op == UnaryOp::kInvert) return Constant(~v);
    return __builtin_sub_overflow(Int{0}, v, &r) ? Result<Constant>(overflow(where, "-")) : Constant(r);
  }
  if (a.index() == 3 && op == UnaryOp::kPlus) return a;
  if (a.index() == 3 && op == UnaryOp::kNegate) return Constant(-std::get<double>(a));
  return error_at(where, ErrorKind::kType, "'{}' does not apply to '{}'", spelling(op), type_name(a));
}

Result<Constant> apply(BinaryOp op, const Constant& a, const Constant& b, SourceRange where) {
  // Bitwise operators on two bools give a bool; all other arithmetic treats bools as integers.
  if (a.index() == 1 && b.index() == 1 && (op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor)) {
    bool x = std::get<bool>(a), y = std::get<bool>(b);
    return Constant(op == BinaryOp::kAnd ? x && y : op == BinaryOp::kOr ? x || y : x != y);
  }
  if (is_integer(a) && is_integer(b)) return int_op(op, to_int(a), to_int(b), where);
  if (is_number(a) && is_number(b)) return float_op(op, to_float(a), to_float(b), where);
  const auto* s = std::get_if<std::string>(&a);
  const auto* t = std::get_if<std::string>(&b);
  if (s && t && op == BinaryOp::kAdd) return Constant(*s + *t);
  if (op == BinaryOp::kMul && ((s && is_integer(b)) || (t && is_integer(a)))) {
    const std::string& text = s ? *s : *t;
    Int count = std::max(to_int(s ? b : a), Int{0});
    // The count first: beyond 2^62 the product would overflow an Int.
    if (count > Int{1} << 62 || count * static_cast<Int>(text.size()) > static_cast<Int>(kMaxRepeatedBytes))
      return error_at(where, ErrorKind::kMemory, "the repeated string would be larger than 1 GB");
    std::string out;
    out.reserve(text.size() * static_cast<size_t>(count));
    for (Int i = 0; !text.empty() && i < count; ++i) out += text;
    return Constant(std::move(out));
  }
  if (s && op == BinaryOp::kMod)
    return error_at(where, ErrorKind::kUnsupported, "'%' formatting is not supported here: use an f-string");
  return error_at(where, ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", spelling(op), type_name(a),
                  type_name(b));
}

Result<Constant> apply(CompareOp op, const Constant& a, const Constant& b, SourceRange where) {
  switch (op) {
    case CompareOp::kIs:
      return Constant(identical(a, b));
    case CompareOp::kIsNot:
      return Constant(!identical(a, b));
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      if (a.index() == 4 && b.index() == 4)
        return Constant((std::get<std::string>(b).find(std::get<std::string>(a)) != std::string::npos) ==
                        (op == CompareOp::kIn));
      break;
    case CompareOp::kEq:
      return Constant(equal(a, b));
    case CompareOp::kNe:
      return Constant(!equal(a, b));
    case CompareOp::kLt:
    case CompareOp::kLe:
    case CompareOp::kGt:
    case CompareOp::kGe:
      if (is_number(a) && is_number(b)) return Constant(ordered_by(op, order(a, b)));
      if (a.index() == 4 && b.index() == 4) {
        int o = std::get<std::string>(a).compare(std::get<std::string>(b));
        return Constant(ordered_by(op, o < 0 ? -1 : o > 0 ? 1 : 0));
      }
      break;
  }
  return error_at(where, ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", spelling(op), type_name(a),
                  type_name(b));
}

}  // namespace kiln::ast
