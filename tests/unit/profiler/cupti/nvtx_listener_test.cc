#include "profiler/cupti/nvtx_listener.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

namespace kiln::profiler::cupti {
namespace {

constexpr const char* kVariable = "NVTX_INJECTION64_PATH";

/// In a process of its own, which has one thread, as a program has at its start.
bool holds_at_start(const std::function<bool()>& claim) {
  const pid_t child = fork();
  if (child == 0) _exit(claim() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(NvtxListener, SaysWhyRangesOfLibrariesDoNotCome) {
  EXPECT_TRUE(holds_at_start([] {
    unsetenv(kVariable);
    return why_no_library_ranges("/cuda/libcupti.so.13") ==
           "NVTX_INJECTION64_PATH did not name CUPTI when the program began: set it to /cuda/libcupti.so.13 (`kiln "
           "profile FILE` does)";
  }));
  EXPECT_TRUE(holds_at_start([] {
    setenv(kVariable, "/opt/tool.so", 1);
    return why_no_library_ranges("/cuda/libcupti.so.13") ==
           "they go to /opt/tool.so, which NVTX_INJECTION64_PATH names";
  }));
  EXPECT_TRUE(holds_at_start([] {
    setenv(kVariable, "/proc/self/../self/exe", 1);
    return !why_no_library_ranges("/proc/self/exe") && !why_no_library_ranges("/proc/self/../self/exe");
  }));
}

TEST(NvtxListener, IsCuptiUnlessAToolIsNamed) {
  EXPECT_TRUE(holds_at_start([] {
    setenv(kVariable, "/opt/tool.so", 1);
    name_nvtx_listener();
    return std::string(std::getenv(kVariable)) == "/opt/tool.so";
  }));
#if KILN_HAS_CUPTI
  EXPECT_TRUE(holds_at_start([] {
    unsetenv(kVariable);
    setenv("KILN_CUPTI_LIBRARY", "/cuda/libcupti.so.13", 1);
    name_nvtx_listener();
    return std::string(std::getenv(kVariable)) == "/cuda/libcupti.so.13" &&
           !why_no_library_ranges("/cuda/libcupti.so.13");
  }));
#endif
}

}  // namespace
}  // namespace kiln::profiler::cupti
