// Numbers as Python has them: hashes, powers modulo a number, the parts that int() and math round to.
#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "repl/script/builtins/builtins.h"
#include "repl/script/value/classes.h"
#include "repl/script/value/complex.h"

namespace kiln::script {

namespace {

// Python's hash of a number is its value modulo this prime, of fractions too, so that equal numbers have equal hashes.
constexpr int kHashBits = 61;
constexpr int64_t kHashPrime = (int64_t{1} << kHashBits) - 1;

int64_t signed_hash(ast::Int magnitude, bool negative) {
  const auto h = static_cast<int64_t>(magnitude % kHashPrime);
  const int64_t out = negative ? -h : h;
  return out == -1 ? -2 : out;  // -1 stands for an error in Python
}

int64_t hash_of_int(ast::Int v) {
  // The least int has no positive counterpart.
  return v < 0 ? signed_hash(-(v % kHashPrime), true) : signed_hash(v, false);
}

int64_t hash_of_float(double v) {
  if (std::isinf(v)) return v > 0 ? 314159 : -314159;
  if (std::isnan(v)) return 0;
  int exponent = 0;
  constexpr int kMantissaBits = 53;
  const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(std::fabs(v), &exponent), kMantissaBits));
  // Powers of two repeat with the number of bits of the prime.
  const int shift = ((exponent - kMantissaBits) % kHashBits + kHashBits) % kHashBits;
  return signed_hash(ast::Int{mantissa % kHashPrime} << shift, v < 0);
}

/// As CPython combines the hashes of a tuple's elements (xxHash).
int64_t hash_of_tuple(Interp& in, const std::vector<Value>& items) {
  constexpr uint64_t kFirst = 11400714785074694791u, kSecond = 14029467366897019727u, kLast = 2870177450012600261u;
  uint64_t h = kLast;
  for (const Value& v : items) {
    h += static_cast<uint64_t>(value_hash(in, v)) * kSecond;
    h = std::rotl(h, 31) * kFirst;
  }
  h += items.size() ^ (kLast ^ 3527539u);
  return h == UINT64_MAX ? 1546275796 : static_cast<int64_t>(h);
}

/// The number whose product with `v` leaves 1; 0 when there is none.
ast::Int inverse(ast::Int v, ast::Int modulus) {
  ast::Int a = v, b = modulus, x = 1, y = 0;
  while (b != 0) {
    const ast::Int q = a / b;
    a = std::exchange(b, a - q * b);
    x = std::exchange(y, x - q * y);
  }
  return a == 1 ? x : a == -1 ? -x : 0;
}

}  // namespace

int64_t value_hash(Interp& in, const Value& v) {
  if (v.small_int_or_bool()) return hash_of_int(v.integer());
  if (v.is_float()) return hash_of_float(v.real());
  auto* o = v.object();
  const bool own = o && o->own_type();
  if (own) {
    // What a class's __hash__ gives is an int, which stands for itself.
    if (const auto own_hash = special(in, o, "__hash__", {}))
      return hash_of_int(in.to_int(*own_hash, "the result of __hash__()"));
    if ((*o->own_type())->find("__hash__")) return static_cast<int64_t>(in.hash(v) >> 1);  // None: an error
  }
  if (auto* w = v.get<WideInt>()) return hash_of_int(w->value);
  if (auto* z = v.get<ComplexNumber>()) {
    const auto parts = static_cast<uint64_t>(hash_of_float(z->value.real())) +
                       1000003 * static_cast<uint64_t>(hash_of_float(z->value.imag()));
    return parts == UINT64_MAX ? -2 : static_cast<int64_t>(parts);
  }
  if (auto* t = v.get<Tuple>()) {
    in.check_stack();
    return hash_of_tuple(in, t->items);
  }
  return static_cast<int64_t>(in.hash(v) >> 1);
}

Value power_modulo(Interp& in, const Value& base_value, const Value& exponent_value, const Value& modulus_value) {
  auto whole = [&](const Value& v) -> ast::Int {
    if (v.small_int_or_bool()) return v.integer();
    if (auto* w = v.get<WideInt>()) return w->value;
    // Nor what is an int by __index__ alone.
    in.fail(ErrorKind::kType, "pow() with a modulus takes ints, got '{}'", in.type_name(v));
  };
  const ast::Int base = whole(base_value), exponent = whole(exponent_value), modulus = whole(modulus_value);
  if (modulus == 0) in.fail(ErrorKind::kValue, "pow()'s modulus cannot be 0");
  constexpr ast::Int kMostModulus = ast::Int{1} << 126;  // sums of two numbers below it are within 128 bits,
  constexpr ast::Int kMostFactor = ast::Int{1} << 63;    // and products of two below this
  if (modulus > kMostModulus || modulus < -kMostModulus)
    in.fail(ErrorKind::kValue, "pow() modulo {} needs more than 128 bits, which Kiln's integers have",
            ast::to_string(modulus));
  auto wrap = [&](ast::Int v) {
    v %= modulus;
    return v != 0 && (v < 0) != (modulus < 0) ? v + modulus : v;
  };
  auto product = [&](ast::Int x, ast::Int y) {
    if (modulus <= kMostFactor && modulus >= -kMostFactor) return wrap(x * y);
    ast::Int sum = 0;
    for (unsigned __int128 bits = y < 0 ? -y : y; bits > 0; bits >>= 1, x = wrap(x + x))
      if (bits & 1) sum = wrap(sum + x);
    return wrap(y < 0 ? -sum : sum);
  };
  ast::Int result = wrap(1), factor = wrap(base);
  // Not negated: the least int has no positive counterpart.
  auto left = static_cast<unsigned __int128>(exponent);
  if (exponent < 0) {
    left = -left;
    factor = wrap(inverse(factor, modulus));
    if (factor == 0 && modulus != 1 && modulus != -1)
      in.fail(ErrorKind::kValue, "{} has no inverse modulo {}, which a negative exponent needs", ast::to_string(base),
              ast::to_string(modulus));
  }
  for (; left > 0; left >>= 1, factor = product(factor, factor))
    if (left & 1) result = product(result, factor);
  return Value::wide(result);
}

namespace {

/// "0x1.8000000000000p+1": all thirteen digits of the fraction, as Python writes them.
Value float_hex(Interp&, NativeArgs& a) {
  const double v = a.self->real();
  if (!std::isfinite(v)) return Value::str(ast::float_repr(v));
  constexpr int kFractionBits = 52, kBias = 1023;
  const auto bits = std::bit_cast<uint64_t>(v);
  const uint64_t fraction = bits & ((uint64_t{1} << kFractionBits) - 1);
  const int field = static_cast<int>(bits >> kFractionBits & 0x7FF);
  const std::string sign = bits >> 63 ? "-" : "";
  if (field == 0 && fraction == 0) return Value::str(sign + "0x0.0p+0");
  // Of subnormal numbers the exponent is that of the least normal ones.
  return Value::str(
      fmt::format("{}0x{}.{:013x}p{:+d}", sign, field ? 1 : 0, fraction, field ? field - kBias : 1 - kBias));
}

Value float_fromhex(Interp& in, NativeArgs& a) {
  std::string text = in.to_text(a[0], "fromhex()'s text");
  const size_t first = text.find_first_not_of(" \t\n\r\f\v");
  text = first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\n\r\f\v") + 1 - first);
  auto bad = [&] { in.fail(ErrorKind::kValue, "{} is no hexadecimal float", in.repr(a[0])); };
  const bool negative = text.starts_with('-');
  std::string digits = text.substr(negative || text.starts_with('+') ? 1 : 0);
  for (char& c : digits) c = static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
  if (digits == "inf" || digits == "infinity") return Value::real(negative ? -INFINITY : INFINITY);
  if (digits == "nan") return Value::real(NAN);
  if (!digits.starts_with("0x")) digits = "0x" + digits;
  // strtod() also takes other forms, and ends at what it does not know.
  if (digits.find_first_not_of("0123456789abcdefp.+-", 2) != std::string::npos) bad();
  char* end = nullptr;
  const double v = std::strtod(digits.c_str(), &end);
  if (digits.size() == 2 || end != digits.c_str() + digits.size()) bad();
  if (std::isinf(v)) in.fail_as("OverflowError", "{} is too large for a float", in.repr(a[0]));
  return Value::real(negative ? -v : v);
}

}  // namespace

void install_number_methods(Interp& in) {
  static constexpr NativeDef kHex[] = {{"hex()", float_hex, "the float as a hexadecimal text, which is exact"}};
  static constexpr NativeDef kFromHex = {"fromhex(text)", float_fromhex, "the float that a hexadecimal text is"};
  in.add_methods({Kind::kFloat, kHex});
  in.type_of(Kind::kFloat)->members.set("fromhex", make<Native>(kFromHex));
}

}  // namespace kiln::script
