// Random inputs of kernels, from a seed that is printed, so that a failure can be repeated.
#pragma once
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace kiln::frontend::testing {

inline uint64_t seed() {
  static const uint64_t value = std::random_device{}();
  return value;
}

inline std::mt19937_64 generator() {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  return std::mt19937_64(seed());
}

template <class T>
std::vector<T> random_ints(std::mt19937_64& rng, size_t n, int64_t low, int64_t high) {
  std::vector<T> out(n);
  for (T& v : out) v = static_cast<T>(std::uniform_int_distribution<int64_t>(low, high)(rng));
  return out;
}

inline std::vector<float> random_floats(std::mt19937_64& rng, size_t n) {
  std::vector<float> out(n);
  for (float& v : out) v = std::normal_distribution<float>()(rng);
  return out;
}

}  // namespace kiln::frontend::testing
