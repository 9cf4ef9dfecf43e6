#include "support/aside.h"

#include <gtest/gtest.h>

#include <latch>
#include <stdexcept>
#include <thread>

#include "kiln/interrupt.h"
#include "support/dynlib.h"
#include "support/stop.h"

namespace kiln {
namespace {

TEST(Aside, RunsOnThisThreadWhereNobodyListens) {
  std::thread::id ran_on;
  EXPECT_TRUE(run_aside([&] { ran_on = std::this_thread::get_id(); }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Aside, WaitsForTheWorkAndThrowsWhatItThrows) {
  InterruptListener listens;
  std::thread::id ran_on;
  EXPECT_TRUE(run_aside([&] { ran_on = std::this_thread::get_id(); }));
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_THROW((void)run_aside([] { throw std::runtime_error("no"); }), std::runtime_error);
}

TEST(Aside, LeavesTheWorkToItselfWithCtrlC) {
  InterruptListener listens;
  auto may_end = std::make_shared<std::latch>(1);
  auto done = std::make_shared<std::atomic<bool>>(false);
  std::thread user([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    request_interrupt();
  });
  EXPECT_FALSE(run_aside([=] {
    may_end->wait();
    *done = true;
  }));
  user.join();
  EXPECT_FALSE(*done);
  EXPECT_EQ(work_left_aside(), 1);
  EXPECT_FALSE(run_aside([=] { *done = true; })) << "nothing begins while the interrupt stands";
  clear_interrupt();
  may_end->count_down();
  while (work_left_aside() > 0) std::this_thread::yield();
  EXPECT_TRUE(*done);
}

TEST(Aside, LibrariesAreNotWaitedForWithCtrlC) {
  InterruptListener listens;
  const std::string names[] = {"libm.so.6"};
  request_interrupt();
  auto cut = DynLib::open(names, "maths library", DynLib::Absent::kNameFirst, DynLib::Wait::kUntilInterrupt);
  clear_interrupt();
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().kind, ErrorKind::kInterrupted);
  EXPECT_TRUE(DynLib::open(names, "maths library", DynLib::Absent::kNameFirst, DynLib::Wait::kUntilInterrupt).ok());
}

}  // namespace
}  // namespace kiln
