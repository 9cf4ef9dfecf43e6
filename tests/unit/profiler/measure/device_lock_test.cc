#include "profiler/measure/device_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "support/process.h"
#include "tests/unit/open_device.h"

namespace kiln::profiler {
namespace {

class DeviceLockTest : public ::testing::Test {
 protected:
  DeviceLockTest() : device_(*open_device("cpu")) {
    if (const char* before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
    setenv("XDG_RUNTIME_DIR", scratch_.path.c_str(), 1);
  }
  ~DeviceLockTest() override { before_ ? setenv("XDG_RUNTIME_DIR", before_->c_str(), 1) : unsetenv("XDG_RUNTIME_DIR"); }
  Result<DeviceLock> take(int* waits = nullptr) {
    return DeviceLock::take(
        device_, [] { return false; }, [waits] { waits ? ++*waits : 0; });
  }
  /// What somebody is told who does not want to wait.
  ErrorKind refused() {
    auto taken = DeviceLock::take(
        device_, [] { return true; }, [] {});
    EXPECT_FALSE(taken.ok());
    return taken.ok() ? ErrorKind::kInternal : taken.error().kind;
  }

  ScratchFolder scratch_;
  std::optional<std::string> before_;
  Device device_;
};

TEST_F(DeviceLockTest, OneAtATime) {
  int waits = 0;
  {
    auto lock = take(&waits);
    ASSERT_TRUE(lock.ok()) << render(lock.error());
    EXPECT_EQ(refused(), ErrorKind::kInterrupted);
  }
  EXPECT_TRUE(take(&waits).ok());
  EXPECT_EQ(waits, 0);
}

TEST_F(DeviceLockTest, WaitsForTheOtherAndSaysSoOnce) {
  std::optional<DeviceLock> held;
  held.emplace(*take());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    held.reset();
  });
  int waits = 0;
  EXPECT_TRUE(take(&waits).ok());
  EXPECT_EQ(waits, 1);
  other.join();
}

TEST_F(DeviceLockTest, WhoLetsItGoStandsBehindThoseWhoWait) {
  std::optional<DeviceLock> held;
  held.emplace(*take());
  std::atomic<bool> waiting{false};
  std::atomic<int> order{0};
  int theirs = 0;
  std::thread other([&] {
    auto lock = DeviceLock::take(
        device_, [] { return false; }, [&] { waiting = true; });
    theirs = ++order;
  });
  while (!waiting) std::this_thread::yield();
  held.reset();
  auto again = take();
  const int ours = ++order;
  other.join();
  EXPECT_LT(theirs, ours);
}

TEST_F(DeviceLockTest, AProcessThatDiesLetsItGo) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto lock = take();
    [[maybe_unused]] ssize_t n = write(ready[1], lock.ok() ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_EQ(refused(), ErrorKind::kInterrupted);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(take().ok());
  close(ready[0]), close(ready[1]);
}

TEST_F(DeviceLockTest, TheFolderIsThisUsersAlone) {
  ASSERT_TRUE(take().ok());
  struct stat st {};
  ASSERT_EQ(stat(DeviceLock::folder().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
  ASSERT_EQ(chmod(DeviceLock::folder().c_str(), 0777), 0);
  const auto shared = take();
  ASSERT_FALSE(shared.ok());
  EXPECT_NE(shared.error().message.find("is not this user's alone"), std::string::npos);
  ASSERT_EQ(chmod(DeviceLock::folder().c_str(), 0700), 0);
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(DeviceLock::folder(), "/tmp/kiln-" + std::to_string(geteuid()));
}

}  // namespace
}  // namespace kiln::profiler
