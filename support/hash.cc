#include "support/hash.h"

namespace kiln {

Hash128 hash128(std::string_view text) {
  using namespace hash_detail;
  // Two lanes with different secrets, each fed every byte, crossed at the end.
  const char* p = text.data();
  size_t n = text.size();
  uint64_t a = mix(n ^ kSecret[0], kSecret[1]), b = mix(n ^ kSecret[2], kSecret[3]);
  while (n > 0) {
    size_t take = n < 16 ? n : 16;
    uint64_t x = load64(p, take < 8 ? take : 8), y = take > 8 ? load64(p + 8, take - 8) : 0;
    // The added words keep a zero factor (which would forget the lane) from lasting more than one step.
    a = mix(x ^ kSecret[1], y ^ a) + y + kSecret[0];
    b = mix(y ^ kSecret[3], x ^ b) + x + kSecret[2];
    p += take;
    n -= take;
  }
  return {mix(a ^ kSecret[2], b ^ kSecret[1]), mix(b ^ kSecret[0], a ^ kSecret[3])};
}

std::string Hash128::hex() const {
  std::string text(32, '0');
  for (int i = 0; i < 32; ++i) {
    uint64_t word = i < 16 ? high : low;
    text[static_cast<size_t>(i)] = "0123456789abcdef"[(word >> (60 - 4 * (i % 16))) & 15];
  }
  return text;
}

}  // namespace kiln
