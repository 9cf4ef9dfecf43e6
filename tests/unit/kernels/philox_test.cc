#include "kernels/dropout/philox.h"

#include <gtest/gtest.h>

namespace kiln::kernels {
namespace {

// Known answer of Philox-4x32-10 for a zero counter and key: 6627e8d5 e169c58d bc57ac4c 9b00dbd8 (Random123's
// kat_vectors).
TEST(Philox, KnownAnswer) { EXPECT_EQ(philox_uniform(0, 0), static_cast<float>(0x6627e8d5) * 4.6566127342e-10f); }

TEST(Philox, NumbersFillTheUnitInterval) {
  double sum = 0;
  constexpr uint32_t kNumbers = 1 << 16;
  for (uint32_t i = 0; i < kNumbers; ++i) {
    float r = philox_uniform(0x1234567890ABCDEF, i);
    ASSERT_GE(r, 0);
    ASSERT_LT(r, 1);
    sum += static_cast<double>(r);
  }
  EXPECT_NEAR(sum / kNumbers, 0.5, 0.006);  // five standard errors
}

}  // namespace
}  // namespace kiln::kernels
