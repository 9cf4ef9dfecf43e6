#include "profiler/profile/dispatch.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "profiler/profile/schedule.h"

namespace kiln::profiler {
namespace {

using trace::Step;

/// Made by hand: times in nanoseconds.
class Made {
 public:
  void span(Step step, Ns start, Ns end, std::string name = {}, uint32_t thread = 1) {
    trace::Event e;
    e.step = step, e.name = std::move(name), e.start_ns = start, e.end_ns = end, e.thread = thread;
    events_.push_back(std::move(e));
  }
  Timeline timeline() {
    Timeline t;
    t.device = "cuda:0";
    add_events(t, events_);
    join(t);
    return t;
  }

 private:
  std::vector<trace::Event> events_;
};

const DispatchStep* find(const Dispatch& d, std::string_view name) {
  for (const DispatchStep& s : d.steps)
    if (s.name == name) return &s;
  return nullptr;
}

TEST(Dispatch, StepsAreToldWithoutWhatIsInThem) {
  Made made;
  for (Ns run = 0; run < 3; ++run) {
    const Ns at = 1 + run * 100'000;
    made.span(Step::kRange, at, at + 20'000, std::string(kStepRange));
    made.span(Step::kStatement, at, at + 10'000, "k[(1,)](x)");
    made.span(Step::kLaunch, at + 2'000, at + 9'000, "k");
    made.span(Step::kKey, at + 2'500, at + 3'000);
    made.span(Step::kDriver, at + 4'000, at + 8'000);
    made.span(Step::kWait, at + 11'000, at + 19'000, "device");
  }
  made.span(Step::kDriver, 1'000'000, 2'000'000);  // of no run
  const Dispatch d = dispatch_of(made.timeline());
  EXPECT_EQ(d.runs, 3);
  EXPECT_EQ(d.launches, 1);
  ASSERT_NE(find(d, "interpret"), nullptr);
  EXPECT_DOUBLE_EQ(find(d, "interpret")->us, 3 + 2);  // around the launch, and around the wait
  EXPECT_DOUBLE_EQ(find(d, "launch")->us, 2.5);
  EXPECT_DOUBLE_EQ(find(d, "specialisation key")->us, 0.5);
  EXPECT_DOUBLE_EQ(find(d, "driver call")->us, 4);
  EXPECT_DOUBLE_EQ(d.wait_us, 8);
  EXPECT_DOUBLE_EQ(d.cpu_us, 12);
  EXPECT_EQ(find(d, "compile and load"), nullptr);
}

TEST(Dispatch, SelfTimesOfOneRunAddUpToIt) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  constexpr Step kSteps[] = {Step::kStatement, Step::kOperation, Step::kLaunch, Step::kDriver, Step::kCopyIn};
  for (int trial = 0; trial < 50; ++trial) {
    Made made;
    constexpr Ns kWhole = 1 << 20;
    made.span(Step::kRange, 1, 1 + kWhole, std::string(kStepRange));
    std::function<void(Ns, Ns, int)> fill = [&](Ns from, Ns to, int depth) {
      if (depth == 0 || to - from < 8) return;
      const Ns cut = from + 1 + static_cast<Ns>(random() % static_cast<uint64_t>(to - from - 2));
      made.span(kSteps[random() % std::size(kSteps)], from, cut);
      fill(from + 1, cut - 1, depth - 1);
      fill(cut + 1, to, depth - 1);
    };
    fill(2, kWhole, 5);
    const Dispatch d = dispatch_of(made.timeline());
    EXPECT_NEAR(d.cpu_us + d.wait_us, static_cast<double>(kWhole) / 1e3, 1e-6);
  }
}

TEST(Dispatch, TheVerdictSaysWhoWaitsForWhom) {
  DispatchReport r;
  r.dispatch.cpu_us = 12;
  r.ways.push_back({"as it is", 10, 11, ""});
  r.gpu_us = 40;
  EXPECT_EQ(
      dispatch_verdict(r),
      "GPU-bound: a run takes 40.00 us of the GPU and 10.00 us of the CPU, which could feed 4.0 such runs at once");
  r.gpu_us = 2.5;
  EXPECT_EQ(dispatch_verdict(r),
            "CPU-bound: a run takes 10.00 us of the CPU and 2.50 us of the GPU, which is idle 75 % of the time");
  r.gpu_us = -1, r.no_gpu = "no CUPTI";
  EXPECT_EQ(dispatch_verdict(r), "no verdict: the device's time is not known (no CUPTI)");
  r.on_gpu = false, r.dispatch.work_us = 9;
  EXPECT_EQ(dispatch_verdict(r), "25 % of a run is dispatch: 3.00 us around 9.00 us of kernels");
}

TEST(Dispatch, AWayThatIsNoneKeepsItsRowWithTheReason) {
  DispatchReport r;
  r.ways = {{"as it is", 10, 20, ""}, {"as one CUDA graph", -1, -1, "it waits"}, {"unfused", 30, 40, ""}};
  EXPECT_EQ(report::to_text(dispatch_ways_table(r)),
            "alternatives\n"
            "the same work      CPU us  elapsed us  saves %\n"
            "as it is            10.00       20.00\n"
            "as one CUDA graph       –           –\n"
            "unfused             30.00       40.00   -100.0\n"
            "– as one CUDA graph: it waits\n"
            "per run, without instrumentation; elapsed: many back to back, with the wait for the last\n");
}

TEST(Dispatch, NothingKeptIsNoRun) { EXPECT_EQ(dispatch_of(Made().timeline()).runs, 0); }

}  // namespace
}  // namespace kiln::profiler
