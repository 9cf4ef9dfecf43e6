#include "support/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <vector>

namespace kiln {
namespace {

TEST(Hash, IsFixed) {
  // The disk cache of one version is read by the next: a change of these is a change of format.
  EXPECT_EQ(hash128("").hex(), "87788ecee4caf7bac75ee3ccccc6f0f1");
  EXPECT_EQ(hash128("kiln").hex(), "215f12f8e80f604b875657349d541e57");
  EXPECT_NE(hash128("kiln"), hash128("kilm"));
}

TEST(Hash, ZerosOfDifferentLengthsDiffer) {
  std::set<std::string> seen;
  std::set<uint64_t> seen64;
  for (size_t n = 0; n < 200; ++n) {
    EXPECT_TRUE(seen.insert(hash128(std::string(n, '\0')).hex()).second) << n;
    EXPECT_TRUE(seen64.insert(hash64(std::string(n, '\0'))).second) << n;
  }
}

// Flipping one input bit flips about half of the output bits, wherever it stands.
TEST(Hash, EveryBitCounts) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (size_t length : {1, 7, 8, 9, 15, 16, 17, 31, 33, 100}) {
    std::string text(length, '\0');
    for (char& c : text) c = static_cast<char>(random());
    Hash128 base = hash128(text);
    uint64_t base64 = hash64(text);
    double flips = 0, flips64 = 0;
    for (size_t bit = 0; bit < length * 8; ++bit) {
      std::string changed = text;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      Hash128 h = hash128(changed);
      int n = std::popcount(h.high ^ base.high) + std::popcount(h.low ^ base.low);
      EXPECT_GT(n, 30) << "length " << length << " bit " << bit;
      flips += n;
      flips64 += std::popcount(hash64(changed) ^ base64);
      EXPECT_NE(hash64(changed), base64);
    }
    EXPECT_NEAR(flips / static_cast<double>(length * 8), 64, 8);
    EXPECT_NEAR(flips64 / static_cast<double>(length * 8), 32, 5);
  }
}

TEST(Hash, NoCollisionsAmongSimilarTexts) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  std::set<uint64_t> seen64;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = "BLOCK=" + std::to_string(i) + ";num_warps=4";
    Hash128 h = hash128(text);
    EXPECT_TRUE(seen.insert({h.high, h.low}).second);
    EXPECT_TRUE(seen64.insert(hash64(text)).second);
  }
}

}  // namespace
}  // namespace kiln
