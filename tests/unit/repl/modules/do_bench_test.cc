// What do_bench puts in front of each timed run.
#include <gtest/gtest.h>

#include "repl/modules/triton/kernel.h"

namespace kiln::script {
namespace {

DeviceInfo device_with(const char* target, int64_t l2_bytes) {
  DeviceInfo info;
  info.target = target;
  info.l2_bytes = l2_bytes;
  return info;
}

TEST(DoBench, FillsAtLeastWhatTritonFills) {
  EXPECT_EQ(bytes_over_caches(device_with("sm_90a", 50 << 20)), 256 << 20);
  EXPECT_EQ(bytes_over_caches(device_with("sm_90a", 200 << 20)), 400 << 20);
  EXPECT_EQ(bytes_over_caches(device_with("host", 32 << 20)), 64 << 20);
  EXPECT_EQ(bytes_over_caches(device_with("host", 0)), 1 << 20);
}

TEST(DoBench, FillsUntilSlowLaunchesAreQueued) {
  EXPECT_EQ(fills_ahead(0.005, 0.075), 1);
  EXPECT_EQ(fills_ahead(0.060, 0.075), 2);
  EXPECT_EQ(fills_ahead(0.300, 0.075), 6);
  EXPECT_EQ(fills_ahead(50, 0.075), 16);  // waits for the device, or nearly: no fill is long enough
  EXPECT_EQ(fills_ahead(0.005, 0), 1);
}

}  // namespace
}  // namespace kiln::script
