// Content hashes. Not cryptographic: whoever uses one as a key stores the full content beside the value and compares
// it.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace kiln {

namespace hash_detail {
/// Both halves of the 128-bit product, folded: the one mixing step of these hashes.
inline uint64_t mix(uint64_t a, uint64_t b) {
  auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}
inline uint64_t load64(const char* p, size_t n) {
  uint64_t v = 0;
  std::memcpy(&v, p, n);
  return v;
}
inline constexpr uint64_t kSecret[4] = {0x9e3779b97f4a7c15, 0xd1342543de82ef95, 0xa0761d6478bd642f, 0xe7037ed1a0b428db};
}  // namespace hash_detail

/// 64 bits of a short text: for hash tables in memory. Inline, a few nanoseconds for a launch key.
inline uint64_t hash64(std::string_view text, uint64_t seed = 0) {
  using namespace hash_detail;
  const char* p = text.data();
  size_t n = text.size();
  uint64_t h = seed ^ mix(n ^ kSecret[0], kSecret[1]);
  for (; n > 16; p += 16, n -= 16) h = mix(load64(p, 8) ^ kSecret[2], load64(p + 8, 8) ^ h);
  uint64_t a = load64(p, n < 8 ? n : 8), b = n > 8 ? load64(p + 8, n - 8) : 0;
  return mix(mix(a ^ kSecret[2], b ^ h), kSecret[3] ^ text.size());
}

struct Hash128 {
  uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits: the file name of a cache entry.
  std::string hex() const;
};

/// 128 bits of a text of any length; the same on every machine of the same byte order, and fixed: caches depend on it.
Hash128 hash128(std::string_view text);

}  // namespace kiln
