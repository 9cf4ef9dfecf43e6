#include "profiler/measure/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln::profiler {
namespace {

struct Library {
  explicit Library(const char* path) { setenv("KILN_NVML_LIBRARY", path, 1); }
  ~Library() { unsetenv("KILN_NVML_LIBRARY"); }
};

TEST(Nvml, ReadsClockAndReasons) {
  Library library(FAKE_NVML);
  auto nvml = Nvml::open("0000:18:00.0");
  ASSERT_TRUE(nvml.ok()) << nvml.error().message;
  EXPECT_EQ(*nvml->sm_clock(), 1755);
  EXPECT_EQ(*nvml->max_sm_clock(), 1980);
  EXPECT_EQ(*nvml->throttle_reasons(), 0x5u);
}

TEST(Nvml, SaysWhatIsMissing) {
  {
    Library library("/no/such/libnvidia-ml.so.1");
    auto nvml = Nvml::open("0000:18:00.0");
    ASSERT_FALSE(nvml.ok());
    EXPECT_EQ(nvml.error().message, "no NVML: /no/such/libnvidia-ml.so.1 not found");
  }
  Library library(FAKE_NVML);
  auto nvml = Nvml::open("0000:99:00.0");
  ASSERT_FALSE(nvml.ok());
  EXPECT_EQ(nvml.error().message, "nvmlDeviceGetHandleByPciBusId failed: Not Found");
}

TEST(Nvml, NamesOfReasons) {
  EXPECT_EQ(reason_names(0), "");
  EXPECT_EQ(reason_names(0x24), "power cap, thermal slowdown");
  EXPECT_EQ(reason_names(0x1000), "reason 0x1000");
  EXPECT_EQ(slowing_reasons(0x5), 0x4u);  // an idle GPU is not held down
}

}  // namespace
}  // namespace kiln::profiler
