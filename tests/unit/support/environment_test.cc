#include "support/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "support/process.h"

namespace kiln {
namespace {

constexpr const char* kName = "KILN_TEST_OF_ENVIRONMENT";

std::string printed() {
  auto output = run_process({"/usr/bin/env"});
  return output.ok() ? output->out : output.error().message;
}

TEST(Environment, BesideOtherThreadsOnlyProgramsGetChanges) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) std::this_thread::yield();
  });
  const std::string line = std::string(kName) + "=of mine\n";
  set_environment(kName, "of mine");
  EXPECT_EQ(environment(kName), "of mine");
  EXPECT_EQ(std::getenv(kName), nullptr);
  EXPECT_NE(printed().find(line), std::string::npos);
  set_environment(kName, std::nullopt);
  EXPECT_EQ(environment(kName), std::nullopt);
  EXPECT_EQ(printed().find(line), std::string::npos);

  set_environment("PATH", std::nullopt);
  EXPECT_NE(std::getenv("PATH"), nullptr);
  EXPECT_EQ(environment("PATH"), std::nullopt);
  const auto all = environment_list();
  EXPECT_TRUE(std::none_of(all.begin(), all.end(), [](const std::string& v) { return v.starts_with("PATH="); }));
  set_environment("PATH", std::getenv("PATH"));
  stop = true;
  other.join();
}

TEST(Environment, LibrariesSeeChangesOfASingleThread) {
  set_environment(kName, "for all");
  EXPECT_STREQ(std::getenv(kName), "for all");
  set_environment(kName, std::nullopt);
  EXPECT_EQ(std::getenv(kName), nullptr);
}

}  // namespace
}  // namespace kiln
