// Bits of the float formats: f8e4m3 (no infinity, NaN 0x7f), f8e5m2, f8e4b15 (neither, f16 without its highest bit of
// the exponent), f16, bf16, f32, f64. Everything here is exact or rounded once; arithmetic on narrow formats is built
// on these in compiler/interp/eval.cc.
#pragma once
#include <cstdint>

#include "kiln/dtype.h"

namespace kiln {

enum class Rounding : uint8_t { kNearestEven, kTowardZero };

/// The value of a float element given as its bits (low bits(format) of `bits`); exact.
double float_from_bits(DType format, uint64_t bits);

/// `value` rounded once to the format, as its low bits. Overflow: the fp8 formats saturate to their largest finite
/// value (infinities too); the others give infinity, or the largest finite value when rounding toward zero. A NaN gives
/// nan_bits(format). f8e4b15 has 1.875, but saturates to 1.75, and its ties go away from zero, as Triton converts.
uint64_t float_to_bits(DType format, double value, Rounding rounding = Rounding::kNearestEven);

/// The same to nearest even, as torch rounds: what is too large for f8e5m2 is infinity, and for f8e4m3, which has none,
/// NaN. f8e4b15, which torch has not, saturates.
uint64_t unsaturated_float_bits(DType format, double value);

/// An integer rounded once to the format (directly, not through double).
uint64_t float_bits_from_int(DType format, int64_t value);
uint64_t float_bits_from_uint(DType format, uint64_t value);

/// The NaN that conversions and arithmetic produce; what a NaN becomes in f8e4b15, which has none.
uint64_t nan_bits(DType format);
bool is_nan_bits(DType format, uint64_t bits);
/// The largest finite value's bits.
uint64_t max_finite_bits(DType format);
/// The distance from 1 to the next number of the format.
double float_epsilon(DType format);

/// a + b with the last bit of the double set when inexact ("round to odd"): rounding the sum again to a format of at
/// most 51 significant bits then gives the correctly rounded sum. `a` may be an exact product of two narrow numbers.
double add_round_to_odd(double a, double b);

}  // namespace kiln
