// kiln::Session: the prompt in another program.
#include <gtest/gtest.h>

#include <thread>

#include "kiln/session.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln {
namespace {

struct Embedded {
  Session::Options options(bool may_run_shell = false) {
    return {
        .output = [this](std::string_view text) { printed += text; }, .device = "cpu", .may_run_shell = may_run_shell};
  }
  std::thread interrupted_in(std::chrono::milliseconds time) {
    return std::thread([this, time] {
      std::this_thread::sleep_for(time);
      session.interrupt();
    });
  }
  std::string printed;
  Session session{options()};
};

TEST(EmbeddedSession, RunsWhatThePromptRuns) {
  Embedded e;
  ASSERT_TRUE(e.session.run("def f(x):\n    return x + 1\n\nf(41)").ok());
  EXPECT_EQ(e.printed, "42\n");
  ASSERT_TRUE(e.session.run("import sys\nprint('é', file=sys.stderr)").ok());
  EXPECT_EQ(e.printed, "42\né\n") << "there is one output";
  Status failed = e.session.run("y = 1\nx = 1 / 0");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().place.line, 2);
  EXPECT_EQ(e.session.evaluate("y")->json, "1");
  EXPECT_TRUE(e.session.run("exit(3)").ok());
  EXPECT_EQ(e.session.evaluate("f(1)")->json, "2") << "exit() ends no session";
}

TEST(EmbeddedSession, EntriesAreNumbered) {
  Embedded e;
  ASSERT_TRUE(e.session.run("10").ok());
  ASSERT_TRUE(e.session.run("20").ok());
  EXPECT_EQ(e.session.evaluate("(_1, Out[2], _)")->json, "[10,20,20]");
}

TEST(EmbeddedSession, ValuesHaveAForm) {
  Embedded e;
  using Kind = SessionValue::Kind;
  EXPECT_EQ(e.session.evaluate("None")->kind, Kind::kNone);
  EXPECT_EQ(e.session.evaluate("[True, 1.5, float('-inf'), 'a\"\\n', {'k': ()}]")->json,
            R"([true,1.5,-Infinity,"a\"\n",{"k":[]}])");
  for (const char* other : {"{1: 2}", "[len]", "{1, 2}"})
    EXPECT_EQ(e.session.evaluate(other)->kind, Kind::kOther) << other;
  ASSERT_TRUE(e.session.run("a = []\na.append(a)").ok());
  EXPECT_EQ(e.session.evaluate("a")->kind, Kind::kOther) << "a list that holds itself";
  ASSERT_TRUE(e.session.run("import torch").ok());
  auto tensor = e.session.evaluate("torch.arange(6).reshape(2, 3).float() * 2");
  ASSERT_TRUE(tensor.ok()) << render(tensor.error());
  EXPECT_EQ(tensor->kind, Kind::kTensor);
  EXPECT_EQ(*tensor->tensor.to_doubles(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
}

TEST(EmbeddedSession, TensorsShareMemory) {
  Embedded e;
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  const std::vector<int64_t> shape = {4};
  auto tensor = Tensor::zeros(*device, DType::kF32, shape);
  ASSERT_TRUE(tensor.ok() && e.session.set("x", *tensor).ok());
  ASSERT_TRUE(e.session.run("y = x.fill_(3.0)").ok());
  EXPECT_EQ(*tensor->to_doubles(), (std::vector<double>{3, 3, 3, 3}));
  EXPECT_FALSE(e.session.set("not a name", *tensor).ok());
  EXPECT_FALSE(e.session.set("x", Tensor()).ok());
  e.session.remove("x");
  EXPECT_FALSE(e.session.evaluate("x").ok());
}

TEST(EmbeddedSession, CommandsGiveTablesAndTexts) {
  Embedded e;
  SessionCommandResult help = e.session.command("help bench");
  ASSERT_TRUE(help.status.ok());
  ASSERT_EQ(help.value.kind, SessionValue::Kind::kTable);
  EXPECT_EQ(e.printed, "");
  ASSERT_TRUE(e.session.set("t", help.value).ok());
  EXPECT_EQ(e.session.evaluate("len(t)")->json, e.session.evaluate("len(t.rows)")->json);
  const SessionTable& table = help.value.tables[0];
  EXPECT_NE(table.html.find("<table>"), std::string::npos);
  EXPECT_NE(table.html.find("seconds for each cache state"), std::string::npos);
  SessionCommandResult wrong = e.session.command("%bnch 1");
  ASSERT_FALSE(wrong.status.ok());
  EXPECT_EQ(wrong.value.kind, SessionValue::Kind::kNone);
  EXPECT_FALSE(e.session.command("sh echo 1").status.ok()) << "no shell unless it is asked for";
}

TEST(EmbeddedSession, DefinitionsKeepTheirPlace) {
  Embedded e;
  Status failed = e.session.define("def f():\n    return 1 / 0\nf()\n", "mine.py", 10);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().place.file, "mine.py");
  EXPECT_EQ(failed.error().place.line, 11);
}

TEST(EmbeddedSession, InterruptsComeFromOtherThreads) {
  Embedded e;
  std::thread later = e.interrupted_in(std::chrono::milliseconds(100));
  Status status = e.session.run("while True: pass");
  later.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInterrupted);
  EXPECT_TRUE(e.session.run("1").ok());
}

TEST(EmbeddedSession, ValuesMayGoInAnotherThread) {
  auto e = std::make_unique<Embedded>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    auto value = e->session.evaluate("[1, 2, 3]");
    ASSERT_TRUE(value.ok());
    threads.emplace_back([v = *std::move(value)]() mutable { v = {}; });
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(e->session.evaluate("[4]").ok());
  auto last = e->session.evaluate("[5]");
  e.reset();
  for (std::thread& t : threads) t.join();
}

TEST(EmbeddedSession, TellsWhetherAVariableIsStillTheSame) {
  Embedded e;
  ASSERT_TRUE(e.session.run("a = [1]\nn = 5").ok());
  const SessionValue list = e.session.variable("a"), number = e.session.variable("n");
  EXPECT_TRUE(e.session.holds("a", list));
  ASSERT_TRUE(e.session.run("a.append(2)\nn = 4 + 1").ok());
  EXPECT_TRUE(e.session.holds("a", list)) << "the same object";
  EXPECT_TRUE(e.session.holds("n", number));
  ASSERT_TRUE(e.session.run("a = [1]\nn = 6").ok());
  EXPECT_FALSE(e.session.holds("a", list));
  EXPECT_FALSE(e.session.holds("n", number));
  EXPECT_EQ(e.session.variable("none").kind, SessionValue::Kind::kNone);
  EXPECT_FALSE(e.session.holds("none", e.session.variable("none")));
}

TEST(EmbeddedSession, AnInterruptCutsALongText) {
  std::string printed;
  Session* running = nullptr;
  Session session({.output =
                       [&](std::string_view text) {
                         printed += text;
                         running->interrupt();
                       },
                   .device = "cpu"});
  running = &session;
  (void)session.run("'ab' * 1000000");
  EXPECT_LT(printed.size(), 200'000u);
  EXPECT_GT(printed.size(), 10'000u);
  printed.clear();
  ASSERT_TRUE(session.run("x = 'ab' * 1000000").ok());
  EXPECT_EQ(session.evaluate("len(x)")->json, "2000000");
}

TEST(EmbeddedSession, AmountsAreNotNegative) {
  Embedded e;
  for (const char* line : {"bench 1 flop=-3", "bench 1 bytes=1e999", "diff 1 2 atol=-1"}) {
    SessionCommandResult r = e.session.command(line);
    ASSERT_FALSE(r.status.ok()) << line;
    EXPECT_NE(r.status.error().message.find("takes a number of at least 0"), std::string::npos)
        << line << ": " << r.status.error().message;
  }
}

// A measurement that is interrupted gives what it has, and what follows it does not run.
TEST(EmbeddedSession, AnInterruptedCommandEndsTheEntry) {
  Embedded e;
  std::thread later = e.interrupted_in(std::chrono::milliseconds(700));
  Status status = e.session.run("%bench sum(range(10)) budget=60\nafter = 1");
  later.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInterrupted);
  EXPECT_NE(e.printed.find("interrupted"), std::string::npos) << e.printed;
  EXPECT_FALSE(e.session.evaluate("after").ok());
  EXPECT_FALSE(e.session.command("help").was_interrupted);
}

TEST(EmbeddedSession, Completes) {
  Embedded e;
  const SessionCompletion found = e.session.complete("%benc");
  EXPECT_EQ(found.candidates, (std::vector<std::string>{"%bench "}));
  EXPECT_EQ(found.replaced, 5u);
  EXPECT_GT(Session::commands().size(), 30u);
}

}  // namespace
}  // namespace kiln
