// How what was seen apart is joined: spans by nesting, calls by thread and time, work by its correlation.
#include "profiler/profile/timeline.h"

#include <gtest/gtest.h>

namespace kiln::profiler {
namespace {

trace::Event event(trace::Step step, std::string name, Ns start, Ns end, uint32_t thread = 1) {
  trace::Event e;
  e.step = step, e.name = std::move(name), e.start_ns = start, e.end_ns = end, e.thread = thread;
  return e;
}

trace::Event memory(trace::Step step, std::string device, int64_t bytes, Ns at, uint32_t thread = 1) {
  // At one instant.
  trace::Event e = event(step, std::move(device), at, at, thread);
  e.bytes = bytes;
  return e;
}

ApiCall call(std::string name, Ns start, Ns end, uint32_t correlation, uint32_t thread = 1) {
  ApiCall c;
  c.name = std::move(name), c.start = start, c.end = end, c.correlation = correlation, c.thread = thread;
  return c;
}

Work kernel(std::string name, Ns start, Ns end, uint32_t correlation, uint32_t device = 0) {
  Work w;
  w.name = std::move(name), w.start = start, w.end = end, w.correlation = correlation, w.device = device;
  return w;
}

Timeline cuda() {
  Timeline t;
  t.device = "cuda:0";
  return t;
}

using trace::Step;

TEST(Join, SpansNestByTimeAndThread) {
  Timeline t;
  t.device = "cuda:0";
  // In the order in which they ended, as the host's trace has them: children first, thread by thread.
  add_events(t, {event(Step::kLaunch, "k", 20, 30), event(Step::kLaunch, "k", 40, 50),
                 event(Step::kOperation, "add", 15, 60), event(Step::kStatement, "s", 10, 100),
                 event(Step::kStatement, "after", 100, 110), event(Step::kLaunch, "other thread", 25, 28, 2)});
  join(t);
  ASSERT_EQ(t.spans.size(), 6u);
  std::vector<std::pair<std::string, int>> seen;
  // Sorted by their beginning, over all threads.
  for (const Span& s : t.spans) seen.emplace_back(s.name, s.parent);
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, int>>{
                      {"s", -1}, {"add", 0}, {"k", 1}, {"other thread", -1}, {"k", 1}, {"after", -1}}));
}

TEST(Join, SpansThatBeginTogetherNestByLength) {
  Timeline t = cuda();
  // Equal beginnings: the longer one is around the other.
  add_events(t, {event(Step::kLaunch, "inner", 10, 20), event(Step::kStatement, "outer", 10, 30),
                 event(Step::kMemory, "cpu", 10, 10)});
  join(t);
  ASSERT_EQ(t.spans.size(), 2u);
  EXPECT_EQ(t.spans[0].name, "outer");
  EXPECT_EQ(t.spans[1].parent, 0);
}

// An instant has no length, so it cannot be around anything.
TEST(Join, AnInstantAtASpansStartLiesWithinIt) {
  Timeline t = cuda();
  add_events(t, {event(Step::kRange, "mark", 10, 10), event(Step::kStatement, "s", 10, 30)});
  join(t);
  ASSERT_EQ(t.spans.size(), 2u);
  EXPECT_EQ(t.spans[0].name, "s");
  EXPECT_EQ(t.spans[1].parent, 0);
}

TEST(Join, WorkFindsItsCallAndTheSpanAroundIt) {
  Timeline t = cuda();
  add_events(t, {event(Step::kLaunch, "k", 20, 30), event(Step::kStatement, "s", 10, 60)});
  // Unsorted, as CUPTI delivers them.
  t.work = {kernel("late", 200, 300, 8), kernel("k", 100, 150, 7)};
  t.calls = {call("cuStreamSynchronize", 40, 55, 9), call("cuLaunchKernel", 32, 38, 8),
             call("cuLaunchKernel", 22, 29, 7)};
  // Waits belong to the call that waits.
  t.waits.resize(1);
  t.waits[0].kind = "stream", t.waits[0].start = 41, t.waits[0].end = 54, t.waits[0].correlation = 9;
  join(t);
  EXPECT_EQ(t.calls[0].span, 1);  // within the launch
  EXPECT_EQ(t.calls[1].span, 0);  // in the statement, after it
  // The work is sorted by its beginning.
  ASSERT_EQ(t.work[0].name, "k");
  EXPECT_EQ(t.work[0].call, 0);
  EXPECT_EQ(t.work[0].span, 1);
  EXPECT_EQ(t.work[1].call, 1);
  EXPECT_EQ(t.work[1].span, 0);
  EXPECT_EQ(t.waits[0].call, 2);
  EXPECT_EQ(t.waits[0].span, 0);
}

TEST(Join, WorkWithoutACallHasNone) {
  Timeline t = cuda();
  add_events(t, {event(Step::kStatement, "s", 10, 60)});
  // CUPTI gives 0 where it does not know a correlation.
  t.work = {kernel("of nobody", 20, 30, 77), kernel("without correlation", 25, 35, 0)};
  t.calls = {call("cuLaunchKernel", 12, 14, 5)};
  join(t);
  for (const Work& w : t.work) {
    EXPECT_EQ(w.call, -1) << w.name;
    EXPECT_EQ(w.span, -1) << w.name;
  }
}

TEST(Join, AGraphsNodesAndTwoDevices) {
  Timeline t = cuda();
  add_events(t, {event(Step::kGraphLaunch, "g", 10, 30), event(Step::kLaunch, "k", 40, 50)});
  t.calls = {call("cuGraphLaunch", 12, 28, 22), call("cuLaunchKernel", 42, 48, 23)};
  t.work = {kernel("a", 100, 110, 22), kernel("b", 120, 130, 22), kernel("second device", 105, 140, 23, 1)};
  // The correlation is one number for all devices.
  join(t);
  ASSERT_EQ(t.work.size(), 3u);
  EXPECT_EQ(t.work[0].call, 0);
  EXPECT_EQ(t.work[0].span, 0);
  EXPECT_EQ(t.work[1].name, "second device");
  EXPECT_EQ(t.work[1].call, 1);
  EXPECT_EQ(t.work[1].span, 1);
  EXPECT_EQ(t.work[1].device, 1u);
  EXPECT_EQ(t.work[2].call, 0);
}

TEST(Join, CallsOfAnotherThreadBelongToItsSpans) {
  Timeline t = cuda();
  add_events(t, {event(Step::kLaunch, "mine", 10, 50, 1), event(Step::kLaunch, "theirs", 20, 40, 2)});
  t.calls = {call("cuLaunchKernel", 25, 35, 1, 1), call("cuLaunchKernel", 25, 35, 2, 2),
             // A thread whose spans nobody recorded.
             call("cuLaunchKernel", 25, 35, 3, 3)};
  join(t);
  for (const ApiCall& c : t.calls) {
    if (c.thread == 3) {
      EXPECT_EQ(c.span, -1);
      continue;
    }
    ASSERT_GE(c.span, 0);
    EXPECT_EQ(t.spans[static_cast<size_t>(c.span)].name, c.thread == 1 ? "mine" : "theirs");
  }
}

TEST(Join, ACallThatOutlivesTheInnerSpanLiesInTheOuterOne) {
  Timeline t = cuda();
  add_events(t, {event(Step::kLaunch, "inner", 20, 30), event(Step::kStatement, "outer", 10, 60)});
  t.calls = {call("cuLaunchKernel", 25, 31, 1), call("cuCtxSynchronize", 5, 8, 2), call("cuCtxSynchronize", 55, 65, 3)};
  join(t);
  // Before any span.
  EXPECT_EQ(t.calls[0].span, -1);
  ASSERT_EQ(t.calls[1].span, 0);
  EXPECT_EQ(t.spans[0].name, "outer");
  // Beyond the end of the outer one as well.
  EXPECT_EQ(t.calls[2].span, -1);
}

TEST(Join, SpansThatOverlapWithoutNestingAreSiblings) {
  Timeline t = cuda();
  add_events(t, {event(Step::kRange, "a", 0, 10), event(Step::kRange, "b", 5, 15), event(Step::kLaunch, "k", 11, 14)});
  join(t);
  ASSERT_EQ(t.spans.size(), 3u);
  // Overlapping, not nested: neither is the other's parent.
  EXPECT_EQ(t.spans[1].parent, -1);
  EXPECT_EQ(t.spans[2].parent, 1);
}

TEST(Join, OverheadsFindTheirThreadsSpan) {
  Timeline t = cuda();
  add_events(t, {event(Step::kLaunch, "k", 10, 50)});
  t.overheads.resize(2);
  t.overheads[0].kind = "lazy loading", t.overheads[0].start = 20, t.overheads[0].end = 30, t.overheads[0].thread = 1;
  // No thread is told for this kind.
  t.overheads[1].kind = "activity buffer flush", t.overheads[1].start = 21, t.overheads[1].end = 30;
  join(t);
  EXPECT_EQ(t.overheads[0].span, 0);
  EXPECT_EQ(t.overheads[1].span, -1);
}

TEST(Join, MemoryAddsUpPerDevice) {
  Timeline t = cuda();
  add_events(t, {memory(Step::kMemory, "cuda:0", 100, 12), memory(Step::kReserve, "cuda:0", 2048, 11),
                 memory(Step::kMemory, "cpu", 7, 13), memory(Step::kMemory, "cuda:0", -40, 14),
                 event(Step::kStatement, "s", 10, 13)});
  join(t);
  ASSERT_EQ(t.memory.size(), 4u);
  EXPECT_TRUE(t.memory[0].reserve);
  EXPECT_EQ(t.memory[0].total, 2048);
  EXPECT_EQ(t.memory[1].total, 100);
  EXPECT_EQ(t.memory[1].span, 0);
  EXPECT_EQ(t.memory[2].total, 7);
  EXPECT_EQ(t.memory[2].span, 0);
  // Of that device alone: 100 less 40.
  EXPECT_EQ(t.memory[3].total, 60);
  EXPECT_EQ(t.memory[3].span, -1);
}

TEST(Join, OnTheCpuKernelsAreTheirOwnSpans) {
  Timeline t;
  t.device = "cpu";
  trace::Event k = event(Step::kHostKernel, "add_kernel", 22, 28);
  k.grid = {8, 1, 1};
  add_events(t, {k, event(Step::kLaunch, "add_kernel", 20, 30)});
  join(t);
  ASSERT_EQ(t.work.size(), 1u);
  EXPECT_EQ(t.work[0].name, "add_kernel");
  EXPECT_EQ(t.work[0].span, 1);
  EXPECT_EQ(t.work[0].call, -1);
  EXPECT_EQ(t.work[0].duration(), 6);
  EXPECT_EQ(t.work[0].grid[0], 8u);
  // A host kernel has no registers that anybody counts.
  EXPECT_EQ(t.work[0].registers, -1);
  EXPECT_FALSE(t.is_cuda());
}

TEST(Join, NothingIsNothing) {
  Timeline t = cuda();
  add_events(t, {});
  join(t);
  EXPECT_TRUE(t.spans.empty());
}

}  // namespace
}  // namespace kiln::profiler
