#include "support/stop.h"

#include <gtest/gtest.h>

#include <thread>

#include "kiln/interrupt.h"

namespace kiln {
namespace {

TEST(Stop, IsWantedOnlyByTheWorkOfTheThread) {
  EXPECT_FALSE(stop_wanted());
  request_interrupt();
  EXPECT_TRUE(interrupt_requested());
  EXPECT_FALSE(stop_wanted()) << "this thread does no work that can be stopped";
  {
    Stop work(0);
    StopScope scope(&work);
    EXPECT_EQ(work.cause(), StopCause::kNone);
    EXPECT_TRUE(stop_wanted());
    EXPECT_EQ(work.cause(), StopCause::kInterrupt);
    clear_interrupt();
    EXPECT_TRUE(work.wanted()) << "the other threads of the work must see it too";
  }
  EXPECT_FALSE(stop_wanted());
  EXPECT_EQ(stop_word.load(), 0u);
}

TEST(Stop, EndsWhenTheTimeIsOver) {
  Stop other(0), work(0.02);
  EXPECT_NE(stop_word.load(), 0u);
  EXPECT_FALSE(work.wanted());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(work.wanted());
  EXPECT_EQ(work.cause(), StopCause::kTimeout);
  EXPECT_FALSE(other.wanted());
}

TEST(Stop, TheWordIsClearAgain) {
  { Stop work(10), longest(1e300); }
  EXPECT_EQ(stop_word.load(), 0u);
}

}  // namespace
}  // namespace kiln
