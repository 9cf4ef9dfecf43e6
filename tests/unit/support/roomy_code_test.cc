#include "support/roomy_code.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(RoomyCode, FitsWhereAllBlocksRunAtOnce) {
  EXPECT_TRUE(fits_at_once({1, 1, 1}, 264));
  EXPECT_TRUE(fits_at_once({264, 1, 1}, 264));
  EXPECT_TRUE(fits_at_once({2, 3, 44}, 264));
  EXPECT_FALSE(fits_at_once({265, 1, 1}, 264));
  EXPECT_FALSE(fits_at_once({2, 3, 45}, 264));
  EXPECT_FALSE(fits_at_once({1, 1, 1}, 0));
  // A product of 2^64 and more.
  EXPECT_FALSE(fits_at_once({UINT32_MAX, UINT32_MAX, UINT32_MAX}, UINT32_MAX));
  EXPECT_FALSE(fits_at_once({1u << 31, 1u << 31, 4}, 264));
}

TEST(RoomyCode, IsToldAsTheKernelsOwn) {
  KernelInfo info;
  info.name = "k", info.cubin = "own", info.ptx = "text", info.registers = 64, info.spill_bytes = 0;
  const KernelInfo roomy = roomy_info(info, {"other", 120, 2});
  EXPECT_EQ(roomy.cubin, "other");
  EXPECT_EQ(roomy.registers, 120);
  EXPECT_EQ(roomy.name, "k");
  EXPECT_EQ(roomy.ptx, "text");
}

}  // namespace
}  // namespace kiln
