// Counter-based random numbers: element i depends on the seed and on i alone, so every device, shape and number of
// threads gives the same. Word i is SplitMix64's output number i (Steele, Lea, Flood 2014). Uniforms take its top bits;
// normals are Box-Muller over its two halves in float32, in operations that round the same everywhere (fma, sqrt,
// integer steps).
#pragma once
#include <cstdint>

#include "kiln/dtype.h"

namespace kiln::runtime {

enum class RandomKind : uint8_t { kUniform, kNormal, kInteger };

struct RandomSpec {
  RandomKind kind = RandomKind::kUniform;
  DType dtype = DType::kF32;
  uint64_t seed = 0;
  int64_t low = 0;     // kInteger: in [low, low + range)
  uint64_t range = 0;  // kInteger: at least 1
};

/// The first key of the sequence: what a kernel gets in the place of the seed.
uint64_t random_key(uint64_t seed);

/// Number i of the sequence.
uint64_t random_word(uint64_t key, int64_t i);

/// Bits of precision of a float format: uniforms are multiples of 2^-bits, so that no rounding ever gives 1.
int uniform_bits(DType dtype);

/// Elements [first, first + count) of the sequence, packed, to `target`.
void random_elements(const RandomSpec& spec, int64_t first, int64_t count, void* target);

}  // namespace kiln::runtime
