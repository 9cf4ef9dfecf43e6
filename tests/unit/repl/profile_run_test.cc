// Which runs of a statement a profile keeps, and what it says when it keeps none.
#include "repl/profile_run.h"

#include <gtest/gtest.h>

#include "repl/shell.h"

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
    auto cpu = Device::open("cpu");
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

TEST_F(ProfileRun, EveryKeptRunIsAStep) {
  ProfileRunOptions o;
  o.schedule.wait = 1, o.schedule.warmup = 2, o.schedule.active = 3, o.schedule.repeat = 2;
  auto cycles = profile_cycles(shell.session(), "f()", o);
  ASSERT_TRUE(cycles.ok()) << cycles.error().message;
  EXPECT_EQ(*shell.session().evaluate("n[0]"), "12");
  ASSERT_EQ(cycles->size(), 2u);
  for (const profiler::Timeline& t : *cycles) {
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

TEST_F(ProfileRun, KeepsAtLeastOneRun) {
  ProfileRunOptions o;
  o.schedule.active = 0;
  EXPECT_EQ(profile_cycles(shell.session(), "f()", o).error().kind, ErrorKind::kValue);
  EXPECT_EQ(profile_cycles(shell.session(), "exit()").error().kind, ErrorKind::kValue);
}

}  // namespace
}  // namespace kiln::repl
