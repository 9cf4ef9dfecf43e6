#include "support/float_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace kiln {
namespace {

constexpr DType kNarrow[] = {DType::kF8E4M3, DType::kF8E5M2, DType::kF16, DType::kBF16};

TEST(FloatBits, EveryNarrowValueRoundTrips) {
  for (DType t : kNarrow) {
    for (uint64_t bits = 0; bits < uint64_t{1} << kiln::bits(t); ++bits) {
      const double v = float_from_bits(t, bits);
      if (std::isnan(v)) {
        EXPECT_TRUE(is_nan_bits(t, bits)) << name(t) << " " << bits;
        EXPECT_EQ(float_to_bits(t, v), nan_bits(t));
      } else if (std::isinf(v) && is_fp8(t)) {
        EXPECT_EQ(float_to_bits(t, v) & 0x7f, max_finite_bits(t));
      } else {
        EXPECT_EQ(float_to_bits(t, v), bits) << name(t) << " " << v;
        EXPECT_EQ(float_to_bits(t, v, Rounding::kTowardZero), bits) << name(t) << " " << v;
      }
    }
  }
}

TEST(FloatBits, KnownValues) {
  EXPECT_EQ(float_from_bits(DType::kF8E4M3, 0x7e), 448.0);
  EXPECT_EQ(float_from_bits(DType::kF8E4M3, 0x01), std::ldexp(1.0, -9));
  EXPECT_EQ(float_from_bits(DType::kF8E5M2, 0x7b), 57344.0);
  EXPECT_EQ(float_from_bits(DType::kF8E5M2, 0x01), std::ldexp(1.0, -16));
  EXPECT_EQ(float_from_bits(DType::kF16, 0x7bff), 65504.0);
  EXPECT_EQ(float_to_bits(DType::kF16, 65519.0), 0x7bffu);
  EXPECT_EQ(float_to_bits(DType::kF16, 65520.0), 0x7c00u);
  EXPECT_EQ(float_to_bits(DType::kF16, 1e9, Rounding::kTowardZero), 0x7bffu);
  EXPECT_EQ(float_to_bits(DType::kF8E4M3, 1000.0), 0x7eu);
  EXPECT_EQ(float_to_bits(DType::kF8E4M3, -HUGE_VAL), 0xfeu);
  EXPECT_EQ(float_to_bits(DType::kF8E5M2, HUGE_VAL), 0x7bu);
  EXPECT_EQ(float_to_bits(DType::kBF16, -0.0), 0x8000u);
}

// Between two neighbours the nearer wins, and the even one in the middle; toward zero takes the lower.
TEST(FloatBits, RoundsToTheNearerNeighbour) {
  for (DType t : kNarrow) {
    for (uint64_t bits = 0; bits < max_finite_bits(t); ++bits) {
      const double low = float_from_bits(t, bits), high = float_from_bits(t, bits + 1), middle = low + (high - low) / 2;
      EXPECT_EQ(float_to_bits(t, middle), bits & 1 ? bits + 1 : bits) << name(t);
      EXPECT_EQ(float_to_bits(t, std::nextafter(middle, HUGE_VAL)), bits + 1) << name(t);
      EXPECT_EQ(float_to_bits(t, std::nextafter(middle, 0.0)), bits) << name(t);
      EXPECT_EQ(float_to_bits(t, std::nextafter(high, 0.0), Rounding::kTowardZero), bits) << name(t);
    }
  }
}

// As Triton's assembly makes it of an f16: the magnitude up to 1.75, half a unit added, and the low bits dropped.
TEST(FloatBits, F8E4B15IsTheMiddleOfF16) {
  const DType t = DType::kF8E4B15;
  for (uint64_t half = 0; half < 0x10000; ++half) {
    const uint64_t magnitude = std::min<uint64_t>(half & 0x7fff, 0x3f00), sign = half >> 8 & 0x80;
    const double v = float_from_bits(DType::kF16, half);
    if (std::isnan(v)) continue;
    EXPECT_EQ(float_to_bits(t, v), sign | (magnitude + 0x40) >> 7) << v;
    EXPECT_EQ(float_to_bits(t, v, Rounding::kTowardZero), sign | magnitude >> 7) << v;
  }
  for (uint64_t bits = 0; bits < 256; ++bits) {
    EXPECT_EQ(float_from_bits(t, bits), float_from_bits(DType::kF16, (bits & 0x80) << 8 | (bits & 0x7f) << 7));
    EXPECT_FALSE(is_nan_bits(t, bits));
  }
  EXPECT_EQ(float_to_bits(t, std::nan("")), 0x7eu);
  EXPECT_EQ(unsaturated_float_bits(t, -HUGE_VAL), 0xfeu);
}

TEST(FloatBits, F32AgreesWithTheCompiler) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 20000; ++i) {
    double v = std::bit_cast<double>(rng());
    if (i & 1) v = std::ldexp(1.0 + static_cast<double>(rng() >> 12) * 0x1p-52, static_cast<int>(rng() % 300) - 155);
    if (std::isnan(v)) continue;
    EXPECT_EQ(float_to_bits(DType::kF32, v), std::bit_cast<uint32_t>(static_cast<float>(v))) << v << " seed " << seed;
    const int64_t n = static_cast<int64_t>(rng()) >> (rng() % 64);
    EXPECT_EQ(float_bits_from_int(DType::kF32, n), std::bit_cast<uint32_t>(static_cast<float>(n)))
        << n << " seed " << seed;
    EXPECT_EQ(float_bits_from_uint(DType::kF64, static_cast<uint64_t>(n)),
              std::bit_cast<uint64_t>(static_cast<double>(static_cast<uint64_t>(n))));
  }
}

// 2^60 + 1 lies just above a tie of f16-like precision only if the sticky bit survives: 0x1001 << 48 with a low 1.
TEST(FloatBits, IntegersRoundOnce) {
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 54);  // halfway between two bf16 numbers, lower one even
  EXPECT_EQ(float_bits_from_int(DType::kBF16, tie), float_to_bits(DType::kBF16, 0x1p62));
  EXPECT_EQ(float_bits_from_int(DType::kBF16, tie + 1), float_to_bits(DType::kBF16, 0x1p62) + 1);
  EXPECT_EQ(float_bits_from_int(DType::kBF16, -tie - 1), float_to_bits(DType::kBF16, -0x1p62) + 1);
}

TEST(FloatBits, RoundToOddKeepsTheSideOfATie) {
  // 1 + 2^-11 is a tie in f16; a tiny term on either side decides.
  const double tie = 1.0 + 0x1p-11;
  EXPECT_EQ(float_to_bits(DType::kF16, add_round_to_odd(tie, 0.0)), 0x3c00u);
  EXPECT_EQ(float_to_bits(DType::kF16, add_round_to_odd(tie, 0x1p-70)), 0x3c01u);
  EXPECT_EQ(float_to_bits(DType::kF16, add_round_to_odd(tie, -0x1p-70)), 0x3c00u);
  const double odd_tie = 1.0 + 3 * 0x1p-11;
  EXPECT_EQ(float_to_bits(DType::kF16, add_round_to_odd(odd_tie, -0x1p-70)), 0x3c01u);
  EXPECT_EQ(float_to_bits(DType::kF16, add_round_to_odd(-odd_tie, 0x1p-70)), 0xbc01u);
}

TEST(FloatBits, EpsilonIsTheStepAboveOne) {
  for (DType t : {DType::kF8E4M3, DType::kF8E5M2, DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    EXPECT_EQ(float_from_bits(t, float_to_bits(t, 1) + 1), 1 + float_epsilon(t)) << name(t);
}

}  // namespace
}  // namespace kiln
