// Which runs of a statement a profile keeps, and what it says when it keeps none.
#include "repl/magics/profile_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "repl/shell/shell.h"
#include "tests/unit/open_device.h"

namespace kiln::repl {
namespace {

using profiler::StepAction;

TEST(Schedule, WaitsWarmsUpKeepsAndRepeats) {
  profiler::Schedule s;
  s.wait = 1, s.warmup = 2, s.active = 3, s.repeat = 2, s.skip_first = 1;
  std::string seen;
  for (int64_t i = 0; i < 15; ++i)
    seen += s.at(i) == StepAction::kWait ? '-' : s.at(i) == StepAction::kWarmup ? 'w' : s.ends_cycle(i) ? 'A' : 'a';
  EXPECT_EQ(seen, "--wwaaA-wwaaA--");
  s.repeat = 0;
  EXPECT_EQ(s.at(1 + 6 * 1000 + 3), StepAction::kActive);
}

class ProfileRun : public testing::Test {
 protected:
  ProfileRun() : shell(options(), [this](std::string_view s) { out += s; }) {
    auto cpu = open_device("cpu");
    EXPECT_TRUE(cpu.ok());
    shell.session().set_device(*cpu);
    EXPECT_TRUE(
        shell.session().run("import torch\nn = [0]\nx = torch.ones(1 << 20)\ndef f():\n    n[0] += 1\n", "t.py").ok());
  }
  static Options options() {
    Options o;
    o.device = "cpu";
    return o;
  }
  std::string out;
  Shell shell;
};

TEST_F(ProfileRun, APendingTensorIsComputedAnewByEachRun) {
  ASSERT_TRUE(shell.session().run("z = torch.exp(x) * 2\n", "z.py").ok());
  ProfileRunOptions o;
  o.schedule.active = 3;
  auto cycles = profile_cycles(shell.session(), "z", o);
  ASSERT_TRUE(cycles.ok()) << cycles.error().message;
  EXPECT_EQ(std::ranges::count(cycles->timelines.at(0).work, profiler::WorkKind::kKernel, &profiler::Work::kind), 3);
  EXPECT_FALSE(shell.session().computed_tensor("z"));
  for (const std::string command : {"%dispatch z", "%profile z"}) {
    out.clear();
    ASSERT_TRUE(shell.entry(command).ok());
    EXPECT_NE(out.find("kernels on the CPU"), std::string::npos) << command << "\n" << out;
  }
}

TEST_F(ProfileRun, EveryKeptRunIsAStep) {
  ProfileRunOptions o;
  o.schedule.wait = 1, o.schedule.warmup = 2, o.schedule.active = 3, o.schedule.repeat = 2;
  auto cycles = profile_cycles(shell.session(), "f()", o);
  ASSERT_TRUE(cycles.ok()) << cycles.error().message;
  EXPECT_EQ(*shell.session().evaluate("n[0]"), "12");
  ASSERT_EQ(cycles->timelines.size(), 2u);
  for (const profiler::Timeline& t : cycles->timelines) {
    int steps = 0;
    for (const profiler::Span& s : t.spans) steps += s.step == trace::Step::kRange && s.name == profiler::kStepRange;
    EXPECT_EQ(steps, 3);
    EXPECT_EQ(t.device, "cpu");
    EXPECT_GT(t.end, t.start);
  }
}

TEST_F(ProfileRun, WhatAStatementAssignsIsComputed) {
  auto cycles = profile_cycles(shell.session(), "y = x + 1");
  ASSERT_TRUE(cycles.ok()) << cycles.error().message;
  EXPECT_EQ(*shell.session().evaluate("y.is_lazy()"), "False");
}

TEST_F(ProfileRun, AStatementThatFailsGivesItsOwnError) {
  auto failed = profile_cycles(shell.session(), "f(); nothing");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kName);
  EXPECT_EQ(profile_cycles(shell.session(), "f(").error().kind, ErrorKind::kSyntax);
  // Nobody is left watching.
  EXPECT_TRUE(profile_cycles(shell.session(), "f()").ok());
}

TEST_F(ProfileRun, CtrlCKeepsWhatWasSeenUntilThen) {
  ASSERT_TRUE(shell.session()
                  .run("def g():\n    n[0] += 1\n    y = (x + 1).sum().item()\n    if n[0] == stop:\n"
                       "        raise KeyboardInterrupt\n",
                       "t.py")
                  .ok());
  auto interrupted_at = [&](int run) {
    EXPECT_TRUE(shell.session().run(fmt::format("n[0] = 0\nstop = {}\n", run), "t.py").ok());
    ProfileRunOptions o;
    o.schedule.wait = 0, o.schedule.warmup = 1, o.schedule.active = 3, o.schedule.repeat = 2;
    return profile_cycles(shell.session(), "g()", o);
  };
  auto steps = [](const profiler::Timeline& t) {
    return std::count_if(t.spans.begin(), t.spans.end(), [](const profiler::Span& s) {
      return s.step == trace::Step::kRange && s.name == profiler::kStepRange;
    });
  };
  auto second = interrupted_at(3);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->interrupted.error().kind, ErrorKind::kInterrupted);
  ASSERT_EQ(second->timelines.size(), 1u);
  EXPECT_EQ(steps(second->timelines[0]), 2);
  EXPECT_GT(second->timelines[0].work.size(), 0u);
  ASSERT_EQ(second->timelines[0].unknown.size(), 1u);
  EXPECT_EQ(second->timelines[0].unknown[0].why, "interrupted by Ctrl-C: the profile ends there");

  auto warming_again = interrupted_at(5);  // of the second cycle: the first is whole
  ASSERT_TRUE(warming_again.ok());
  EXPECT_FALSE(warming_again->interrupted.ok());
  ASSERT_EQ(warming_again->timelines.size(), 1u);
  EXPECT_TRUE(warming_again->timelines[0].unknown.empty());

  EXPECT_EQ(interrupted_at(1).error().kind, ErrorKind::kInterrupted) << "nothing was kept";
  EXPECT_TRUE(interrupted_at(-1)->interrupted.ok());
}

TEST_F(ProfileRun, LaunchesOfGraphsAreTimedWithoutAProfiler) {
  ASSERT_TRUE(shell.session().run("g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g):\n    x += 1\n", "t.py").ok());
  auto cpu = shell.session().device();
  auto calls_of = [&](const std::string& statement) {
    auto run = shell.session().prepare_statements(statement, "t.py");
    EXPECT_TRUE(run.ok());
    auto calls = plain_calls(*cpu, *run, 3);
    EXPECT_TRUE(calls.ok());
    return *calls;
  };
  EXPECT_GT(calls_of("g.replay()").graph_us, 0);
  EXPECT_LT(calls_of("f()").graph_us, 0);
}

TEST_F(ProfileRun, KeepsAtLeastOneRun) {
  ProfileRunOptions o;
  o.schedule.active = 0;
  EXPECT_EQ(profile_cycles(shell.session(), "f()", o).error().kind, ErrorKind::kValue);
  EXPECT_EQ(profile_cycles(shell.session(), "exit()").error().kind, ErrorKind::kValue);
}

}  // namespace
}  // namespace kiln::repl
