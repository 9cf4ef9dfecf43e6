#include "kernels/dropout/philox.h"

#include <array>

namespace kiln::kernels {

float philox_uniform(uint64_t seed, uint32_t offset) {
  // Philox 4x32-10 with the constants of Salmon et al. (2011), as Triton's tl.rand.
  constexpr uint64_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::array<uint32_t, 4> c = {offset, 0, 0, 0};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = kMul0 * c[0], p1 = kMul1 * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0, k1 += kWeyl1;
  }
  // Folded onto the non-negative ints, then scaled by just under 2^-31.
  int32_t x = static_cast<int32_t>(c[0]);
  return static_cast<float>(x < 0 ? ~x : x) * 4.6566127342e-10f;
}

}  // namespace kiln::kernels
