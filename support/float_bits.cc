#include "support/float_bits.h"

#include <bit>
#include <cmath>

#include "support/diag.h"

namespace kiln {

namespace {

enum class Special : uint8_t { kInfinityAndNan, kNan, kNone };

struct Format {
  int exponent_bits, mantissa_bits;
  uint64_t max_finite, nan;  // without the sign bit
  bool saturates;            // overflow gives max_finite instead of infinity
  Special special = Special::kInfinityAndNan;
  int bias = (1 << (exponent_bits - 1)) - 1;
  bool ties_away = false;  // to nearest: a tie goes away from zero instead of to even

  int sign_shift() const { return exponent_bits + mantissa_bits; }
  uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  bool is_infinity(uint64_t magnitude) const { return special == Special::kInfinityAndNan && magnitude == infinity(); }
  bool is_nan(uint64_t magnitude) const {
    return special != Special::kNone && magnitude > max_finite && !is_infinity(magnitude);
  }
  /// What torch makes of a number that is too large.
  uint64_t unsaturated() const {
    return special == Special::kInfinityAndNan ? infinity() : special == Special::kNan ? nan : max_finite;
  }
};

constexpr Format kF8E4M3{4, 3, 0x7e, 0x7f, true, Special::kNan};
// Each pattern is a number; conversions stop at the one before the largest, and make it of a NaN.
constexpr Format kF8E4B15{4, 3, 0x7e, 0x7e, true, Special::kNone, 15, true};
constexpr Format kF8E5M2{5, 2, 0x7b, 0x7f, true};
constexpr Format kF16{5, 10, 0x7bff, 0x7e00, false};
constexpr Format kBF16{8, 7, 0x7f7f, 0x7fc0, false};
constexpr Format kF32{8, 23, 0x7f7fffff, 0x7fc00000, false};
constexpr Format kF64{11, 52, 0x7fefffffffffffff, 0x7ff8000000000000, false};

const Format& format_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
      return kF8E4M3;
    case DType::kF8E5M2:
      return kF8E5M2;
    case DType::kF8E4B15:
      return kF8E4B15;
    case DType::kF16:
      return kF16;
    case DType::kBF16:
      return kBF16;
    case DType::kF32:
      return kF32;
    case DType::kF64:
      return kF64;
    case DType::kI1:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      break;
  }
  KILN_UNREACHABLE("{} is no float format", name(dtype));
}

/// `overflow`: the bits of what is too large, without the sign.
uint64_t encode(const Format& f, double value, Rounding rounding, uint64_t overflow) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (bits >> 63) << f.sign_shift();
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t mantissa = bits & 0xfffffffffffff;
  if (biased == 0x7ff && mantissa) return f.nan;
  if (biased == 0x7ff) return sign | overflow;
  // A subnormal double is far below half of the smallest subnormal of every narrower format.
  if (biased == 0) return sign;
  const int exponent = biased - 1023, lowest = 1 - f.bias;
  const bool subnormal = exponent < lowest;
  int shift = 52 - f.mantissa_bits + (subnormal ? lowest - exponent : 0);
  if (shift > 62) shift = 62;  // all of the 53 bits are below half a unit
  const uint64_t significand = mantissa | uint64_t{1} << 52;
  uint64_t kept = significand >> shift;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  if (rounding == Rounding::kNearestEven && (rest > half || (rest == half && (f.ties_away || (kept & 1))))) ++kept;
  // A carry out of the mantissa moves into the exponent by itself.
  const uint64_t exponent_field = subnormal ? 0 : static_cast<uint64_t>(exponent + f.bias - 1);
  const uint64_t magnitude = (exponent_field << f.mantissa_bits) + kept;
  if (magnitude > f.max_finite) return sign | (rounding == Rounding::kTowardZero ? f.max_finite : overflow);
  return sign | magnitude;
}

double decode(const Format& f, uint64_t bits) {
  const uint64_t magnitude = bits & ((uint64_t{1} << f.sign_shift()) - 1);
  const bool negative = bits >> f.sign_shift() & 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint64_t mantissa = magnitude & ((uint64_t{1} << f.mantissa_bits) - 1);
  double v;
  if (f.is_infinity(magnitude)) {
    v = HUGE_VAL;
  } else if (f.is_nan(magnitude)) {
    v = std::nan("");
  } else if (exponent == 0) {
    v = std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  } else {
    v = std::bit_cast<double>(static_cast<uint64_t>(exponent - f.bias + 1023) << 52 | mantissa
                                                                                          << (52 - f.mantissa_bits));
  }
  return negative ? -v : v;
}

uint64_t encode_integer(DType format, bool negative, uint64_t magnitude) {
  double v;
  const int width = static_cast<int>(std::bit_width(magnitude));
  if (width <= 53) {
    v = static_cast<double>(magnitude);
  } else {
    const int shift = width - 53;
    uint64_t kept = magnitude >> shift;
    if (format != DType::kF64) {
      kept |=
          (magnitude & ((uint64_t{1} << shift) - 1)) != 0;  // round to odd: the second rounding is then the only one
      v = std::ldexp(static_cast<double>(kept), shift);
    } else {
      v = static_cast<double>(magnitude);
    }
  }
  return float_to_bits(format, negative ? -v : v);
}

}  // namespace

double float_from_bits(DType format, uint64_t bits) {
  if (format == DType::kF64) return std::bit_cast<double>(bits);
  if (format == DType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (format == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return decode(format_of(format), bits);
}

uint64_t float_to_bits(DType format, double value, Rounding rounding) {
  if (format == DType::kF64) return std::isnan(value) ? kF64.nan : std::bit_cast<uint64_t>(value);
  const Format& f = format_of(format);
  return encode(f, value, rounding, f.saturates ? f.max_finite : f.infinity());
}

uint64_t unsaturated_float_bits(DType format, double value) {
  if (format == DType::kF64) return float_to_bits(format, value);
  const Format& f = format_of(format);
  return encode(f, value, Rounding::kNearestEven, f.unsaturated());
}

uint64_t float_bits_from_int(DType format, int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  return encode_integer(format, value < 0, value < 0 ? 0 - bits : bits);
}

uint64_t float_bits_from_uint(DType format, uint64_t value) { return encode_integer(format, false, value); }

uint64_t nan_bits(DType format) { return format_of(format).nan; }

bool is_nan_bits(DType format, uint64_t bits) {
  const Format& f = format_of(format);
  const uint64_t magnitude = bits & ((uint64_t{1} << f.sign_shift()) - 1);
  return f.is_nan(magnitude);
}

uint64_t max_finite_bits(DType format) { return format_of(format).max_finite; }
double float_epsilon(DType format) { return std::ldexp(1, -format_of(format).mantissa_bits); }

double add_round_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  // Knuth's two-sum: the exact error of the addition.
  const double b_part = sum - a, a_part = sum - b_part;
  const double error = (a - a_part) + (b - b_part);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1)) return sum;
  // sum is even and inexact: the odd neighbour on the side of the error.
  const bool away_from_zero = (error > 0) == (sum > 0);
  return std::bit_cast<double>(away_from_zero ? bits + 1 : bits - 1);
}

}  // namespace kiln
