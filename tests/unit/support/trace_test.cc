#include "support/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace kiln::trace {
namespace {

TEST(Trace, KeepsNothingWhileNobodyWatches) {
  { Scope scope(kSpans, Step::kLaunch, "unseen"); }
  ASSERT_TRUE(start(kSpans));
  EXPECT_TRUE(stop().empty());
}

TEST(Trace, SpansNestAndCarryWhatTheyAreTold) {
  ASSERT_TRUE(start(kSpans | kMemory));
  EXPECT_FALSE(start(kSpans)) << "one watcher at a time";
  {
    Scope outer(kSpans, Step::kOperation, "outer");
    Scope step(kSteps, Step::kKey);  // not asked for
    Scope inner(kSpans, Step::kCopy, "inner", 64, 3);
    ASSERT_NE(inner.event(), nullptr);
    inner.event()->detail = "f32[16]";
    EXPECT_EQ(step.event(), nullptr);
    add_memory(Step::kMemory, "cpu", -64);
  }
  std::vector<Event> events = stop();
  ASSERT_EQ(events.size(), 3u);
  const Event &memory = events[0], &inner = events[1], &outer = events[2];
  EXPECT_EQ(memory.bytes, -64);
  EXPECT_EQ(memory.name, "cpu");
  EXPECT_EQ(inner.name, "inner");
  EXPECT_EQ(inner.detail, "f32[16]");
  EXPECT_EQ(inner.bytes, 64);
  EXPECT_EQ(inner.stream, 3u);
  EXPECT_LE(outer.start_ns, inner.start_ns);
  EXPECT_LE(inner.start_ns, memory.start_ns);
  EXPECT_LE(memory.end_ns, inner.end_ns);
  EXPECT_LE(inner.end_ns, outer.end_ns);
  EXPECT_EQ(inner.thread, outer.thread);
}

TEST(Trace, ASpanAroundTheStopBelongsToNoProfile) {
  ASSERT_TRUE(start(kSpans));
  {
    Scope open(kSpans, Step::kLaunch, "open");
    EXPECT_TRUE(stop().empty());
    ASSERT_TRUE(start(kSpans));  // nor to the next one
  }
  EXPECT_TRUE(stop().empty());
}

TEST(Trace, ThreadsKeepTheirOwnAlsoAfterTheirEnd) {
  constexpr int kThreads = 4, kEach = 20'000;  // more than there is spare room for
  ASSERT_TRUE(start(kSpans));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < kEach; ++i) Scope scope(kSpans, Step::kLaunch, "a name that needs memory of its own");
    });
  for (std::thread& t : threads) t.join();
  std::vector<Event> events = stop();
  ASSERT_EQ(events.size(), size_t{kThreads} * kEach);
  std::vector<uint32_t> ids;
  for (const Event& e : events) ids.push_back(e.thread);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()) - ids.begin(), kThreads);
}

TEST(Trace, EveryStepHasAName) {
#define KILN_STEP(id, text, meaning) EXPECT_FALSE(name(Step::k##id).empty());
#include "support/trace_step.def"
#undef KILN_STEP
}

}  // namespace
}  // namespace kiln::trace
