// Random layouts for the property tests.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "compiler/layout/algebra.h"

namespace kiln::layout {

/// Runs `check(rng)` many times; the seed is in the trace of a failure.
template <class Fn>
void with_seeds(int count, Fn&& check) {
  uint32_t first = std::random_device{}();
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + static_cast<uint32_t>(i)));
    std::mt19937 rng(first + static_cast<uint32_t>(i));
    check(rng);
    if (::testing::Test::HasFailure()) return;
  }
}

inline uint32_t pick(std::mt19937& rng, uint32_t n) { return static_cast<uint32_t>(rng() % n); }

/// Up to three dimensions, at most `max_bits` bits of elements.
inline std::vector<int32_t> random_shape(std::mt19937& rng, int max_bits = 9) {
  std::vector<int32_t> shape;
  int rank = 1 + static_cast<int>(pick(rng, 3)), left = max_bits;
  for (int d = 0; d < rank; ++d) {
    int bits = static_cast<int>(pick(rng, static_cast<uint32_t>(std::min(left, 6) + 1)));
    left -= bits;
    shape.push_back(1 << bits);
  }
  return shape;
}

/// A surjective layout of 32 lanes and `warp_bits` warp bits with unit bases in a random order, copies where bits are
/// left over; with `mix`, a random invertible map is applied on top (as swizzles do).
inline LinearLayout random_layout(std::mt19937& rng, std::vector<int32_t> shape, int warp_bits, bool mix = false) {
  LinearLayout r(shape);
  int bits = index_bits(r);
  std::vector<uint64_t> bases;
  for (int i = 0; i < bits; ++i) bases.push_back(uint64_t{1} << i);
  std::shuffle(bases.begin(), bases.end(), rng);
  if (mix && bits > 1)
    for (int i = 0; i < 2 * bits; ++i) {
      size_t a = pick(rng, static_cast<uint32_t>(bits)), b = pick(rng, static_cast<uint32_t>(bits));
      if (a != b) bases[a] ^= bases[b];
    }
  int thread_bits = 5 + warp_bits;
  std::vector<uint64_t> threads, registers;
  for (uint64_t b : bases)
    (static_cast<int>(threads.size()) < thread_bits && pick(rng, 3) ? threads : registers).push_back(b);
  while (static_cast<int>(threads.size()) < thread_bits) threads.push_back(0);
  std::shuffle(threads.begin(), threads.end(), rng);
  if (pick(rng, 4) == 0)
    registers.insert(registers.begin() + pick(rng, static_cast<uint32_t>(registers.size() + 1)), 0);
  for (uint64_t b : registers) r.push(In::kRegister, coord_of(shape, b));
  for (int i = 0; i < thread_bits; ++i)
    r.push(i < 5 ? In::kLane : In::kWarp, coord_of(shape, threads[static_cast<size_t>(i)]));
  return r;
}

}  // namespace kiln::layout
