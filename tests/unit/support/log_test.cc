#include "support/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace kiln {
namespace {

TEST(Log, ASinkThatThrowsLosesNothing) {
  set_log([](LogLevel, std::string_view) { throw std::runtime_error("no log today"); });
  ::testing::internal::CaptureStderr();
  write_log(LogLevel::kWarning, "a remark");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "kiln: warning: a remark\n");
  std::string got;
  set_log([&](LogLevel, std::string_view text) { got = text; });
  write_log(LogLevel::kNote, "another");
  set_log({});
  EXPECT_EQ(got, "another");
}

}  // namespace
}  // namespace kiln
