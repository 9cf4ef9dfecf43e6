// Tables at the prompt, on terminals of several sizes.
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "support/files.h"
#include "support/text_width.h"
#include "tests/unit/repl/prompt/prompt_fixture.h"

namespace kiln {
namespace {

/// Of the lines that the program wrote since `from`, as it wrote them.
int widest(const std::string& raw, size_t from) {
  int widest = 0;
  for (size_t at = from; at < raw.size();) {
    const size_t end = std::min(raw.find("\r\n", at), raw.size());
    const std::string line = raw.substr(at, end - at);
    if (line.find('\033') == std::string::npos) widest = std::max(widest, text_width(line));
    at = end + 2;
  }
  return widest;
}

class PromptTables : public Prompt {};

TEST_F(PromptTables, FitTheTerminal) {
  for (int columns : {80, 160}) {
    auto t = start(300, columns);
    const size_t before = t->raw_output().size();
    t->type("%help\r");
    ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
    t->type("%env\r");
    ASSERT_TRUE(t->wait_for("\n[3]")) << t->screen().text();
    EXPECT_LE(widest(t->raw_output(), before), columns);
    EXPECT_GT(widest(t->raw_output(), before), columns - 40);
  }
}

TEST_F(PromptTables, NothingIsLeftOfProgress) {
  auto t = start(60, 62);
  EXPECT_NE(t->screen().text().find("? for help\n"), std::string::npos) << t->screen().text();
  t->type(
      "import triton, triton.language as tl\r@triton.jit\rdef k(x, n, BLOCK: tl.constexpr):\ri = tl.program_id(0) * "
      "BLOCK + "
      "tl.arange(0, BLOCK)\rtl.store(x + i, 1, mask=i < n)\r\rx = torch.ones(100000)\r");
  ASSERT_TRUE(t->wait_for("\n[4]")) << t->screen().text();
  t->type("%tune k[lambda m: (triton.cdiv(100000, m['BLOCK']),)](x, 100000, BLOCK=256) BLOCK=[256, 512] budget=2s\r");
  ASSERT_TRUE(t->wait_for("\n[5]", 60)) << t->screen().text();
  EXPECT_NE(t->raw_output().find("measuring: "), std::string::npos);
  EXPECT_EQ(t->screen().text().find("measuring: "), std::string::npos) << t->screen().text();
}

TEST_F(PromptTables, LongCommandsShowHowFarTheyAre) {
  auto t = start(100, 80);
  t->type("x = torch.randn(256, 256)\r");
  ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
  int number = 3;  // of the prompt behind each
  for (const auto& [command, part] : {std::pair{"%bench x @ x budget=1s", "hot caches, best so far "},
                                      {"%roofline x @ x budget=1s", "x @ x, best so far "},
                                      {"%dispatch x @ x runs=3000", "in a profile  "},
                                      {"%sweep x @ x n=[1,2,3] budget=1s", "3 of 3: 3  "}}) {
    const size_t before = t->raw_output().size();
    t->type(std::string(command) + "\r");
    ASSERT_TRUE(t->wait_for("\n[" + std::to_string(number++) + "]", 60)) << command << "\n" << t->screen().text();
    const std::string raw = t->raw_output().substr(before);
    EXPECT_NE(raw.find(part), std::string::npos) << raw;
    EXPECT_NE(raw.find(" s left"), std::string::npos) << raw;
    EXPECT_EQ(t->screen().text().find(" s left"), std::string::npos) << t->screen().text();
    t->type("\x0c");
  }
}

TEST_F(PromptTables, WhatIsTypedAheadIsNotInTheProgress) {
  auto t = start(60, 120);
  t->type("x = torch.ones(100_000)\r");
  ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
  t->type("%compare x + 1, x * 2 budget=2s\r");
  ASSERT_TRUE(t->wait([&] { return t->is_quiet(); })) << t->screen().text();
  t->send("y = 41 + 1\rprint(y, 'done')\r");
  ASSERT_TRUE(t->wait_for("\n42 done\n", 60)) << t->screen().text();
  const std::string screen = t->screen().text();
  // Once, at the prompt that read it.
  EXPECT_EQ(screen.find("y = 41 + 1"), screen.rfind("y = 41 + 1")) << screen;
  EXPECT_NE(screen.find("\n[3] y = 41 + 1\n"), std::string::npos) << screen;
  t->type("!stty -a | tr ' ' '\\n' | grep '^-*echo$'\r");
  EXPECT_TRUE(t->wait_for("\necho\n")) << t->screen().text();
}

TEST_F(PromptTables, CtrlCEndsRooflinesAndSweeps) {
  auto t = start(60, 120);
  t->type("x = torch.randn(512, 512)\r");
  ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
  int number = 3;  // of the prompt behind each
  for (const auto& [command, ms] : {std::pair{"%roofline x@x budget=1s", 300},
                                    {"%roofline x@x budget=1s", 2500},  // the ceilings
                                    {"%sweep x@x, x+x n=[1,2,3] budget=20s", 1500}}) {
    t->type(std::string(command) + "\r");
    ASSERT_TRUE(t->wait([&] { return t->is_quiet(); })) << t->screen().text();
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    t->send("\x03");
    ASSERT_TRUE(t->wait_for("\n[" + std::to_string(number++) + "]", 6)) << command << "\n" << t->screen().text();
  }
  t->type("print(6 * 7)\r");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
}

TEST_F(PromptTables, AnInterruptedRooflineHasThePointsThatAreDone) {
  auto t = start(80, 120);
  t->type("x = torch.randn(512, 512)\r");
  ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
  t->type("%roofline x + x, x @ x budget=3s\r");
  ASSERT_TRUE(t->wait([&] { return t->is_quiet(); })) << t->screen().text();
  // The first is over after three seconds, or earlier; the second takes as long again.
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  t->send("\x03");
  ASSERT_TRUE(t->wait_for("\n[3]", 3)) << t->screen().text();  // the ceilings would take longer
  std::string screen = t->screen().text();
  EXPECT_NE(screen.find("\nx + x "), std::string::npos) << screen;
  // The second keeps the samples that it has.
  EXPECT_NE(screen.find("\nx @ x "), std::string::npos) << screen;
  EXPECT_NE(screen.find("\nx @ x: interrupted after "), std::string::npos) << screen;

  // And in the ceilings.
  t->type("%roofline x + x budget=100ms\r");
  ASSERT_TRUE(t->wait([&] { return t->is_quiet(); })) << t->screen().text();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  t->send("\x03");
  ASSERT_TRUE(t->wait_for("\n[4]", 3)) << t->screen().text();
  screen = t->screen().text();
  EXPECT_NE(screen.find("interrupted: not all ceilings were measured"), std::string::npos) << screen;
}

TEST_F(PromptTables, AStatementThatCatchesCtrlCDoesNotKeepACommandGoing) {
  auto t = start(120, 120);
  t->type("import time\rdef f(n):\rtry:\rtime.sleep(0.02)\r\bexcept KeyboardInterrupt:\rpass\r\r");
  ASSERT_TRUE(t->wait_for("\n[3]")) << t->screen().text();
  int number = 4;  // of the prompt behind each
  for (const std::string command : {"%sweep f(n) n=[1,2,3] budget=20s", "%bench f(1) budget=20s",
                                    "%compare f(1), f(2) budget=20s", "%roofline f(1), f(2) flop=1 budget=20s"}) {
    t->type(command + "\r");
    ASSERT_TRUE(t->wait([&] { return t->is_quiet(); })) << t->screen().text();
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    t->send("\x03");
    ASSERT_TRUE(t->wait_for("\n[" + std::to_string(number++) + "]", 5)) << command << "\n" << t->screen().text();
    EXPECT_NE(t->screen().text().find("interrupted"), std::string::npos) << t->screen().text();
    t->type("\x0c");
  }
}

TEST_F(PromptTables, LongLinesOfWordsAreBrokenAtBlanks) {
  auto t = start(100, 60);
  const size_t before = t->raw_output().size();
  t->type("%help counters\r");
  ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
  EXPECT_LE(widest(t->raw_output(), before), 60) << t->screen().text();
  EXPECT_NE(t->screen().text().find("\n    [bundle="), std::string::npos) << t->screen().text();
}

TEST_F(PromptTables, CtrlCEndsAWholeBench) {
  auto t = start(60, 120);
  // So long that the ten samples of one cache state take longer than the wait below.
  t->type("import time\rdef f(): time.sleep(0.5)\r\r");
  ASSERT_TRUE(t->wait_for("\n[3]")) << t->screen().text();
  t->type("%bench f() budget=20s\r");
  ASSERT_TRUE(t->wait([&] { return t->is_quiet(); })) << t->screen().text();
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));  // some samples, on a machine that does much else
  t->send("\x03");
  ASSERT_TRUE(t->wait_for("\n[4]", 5)) << t->screen().text();
  const std::string screen = t->screen().text();
  EXPECT_NE(screen.find("\ncold "), std::string::npos) << screen;
  EXPECT_NE(screen.find("interrupted"), std::string::npos) << screen;
  EXPECT_EQ(screen.find("\nhot "), std::string::npos) << "what was stopped goes on with the other caches\n" << screen;
}

TEST_F(PromptTables, ContinueBelowWhenNarrow) {
  auto narrow = start(60, 80), wide = start(60, 200);
  for (auto* t : {narrow.get(), wide.get()}) {
    t->type("x = torch.ones(100)\rr = %compare x + 1, x + 1.0 budget=200ms\rr\r");
    ASSERT_TRUE(t->wait_for("\n[4]", 60)) << t->screen().text();
  }
  auto heads = [](const std::string& text) {
    int n = 0;
    for (size_t at = text.find("\nvariant"); at != std::string::npos; at = text.find("\nvariant", at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(heads(wide->screen().text()), 1) << wide->screen().text();
  EXPECT_EQ(heads(narrow->screen().text()), 2) << narrow->screen().text();
  narrow->type("len(_), r.verdict[0], Out[3].columns == r.columns\r");
  EXPECT_TRUE(narrow->wait_for("(2, 'baseline', True)")) << narrow->screen().text();
}

TEST_F(PromptTables, LongOnesGoToThePager) {
  auto t = start(20, 100, "xterm", "sed -n 1,2p; echo paged");
  t->type("%env\r");
  ASSERT_TRUE(t->wait_for("paged")) << t->screen().text();
  EXPECT_EQ(t->screen().text().find("KILN_CACHE_DIR"), std::string::npos);
  ASSERT_TRUE(t->wait_for("\n[2]")) << t->screen().text();
  t->type("list(range(1000))\r");
  EXPECT_TRUE(
      t->wait([&] { return t->raw_output().find("paged", t->raw_output().find("paged") + 1) != std::string::npos; }));
  t->type("%who\r");
  EXPECT_TRUE(t->wait_for("\n[4]"));
  // One that is not there, one that ends before it has read all, and none.
  for (const char* pager : {"no_such_pager_at_all", "true", "0"}) {
    auto other = start(20, 100, "xterm", pager);
    other->type("%env\r");
    EXPECT_TRUE(other->wait_for("\n[2]")) << other->screen().text();
    EXPECT_EQ(other->raw_output().find("KILN_CACHE_DIR") == std::string::npos, std::string(pager) == "true") << pager;
    other->type("1 + 1\r");
    EXPECT_TRUE(other->wait_for("\n2\n")) << other->screen().text();
  }
}

TEST_F(PromptTables, WithoutAShellThePagerIsLessInItsSecureMode) {
  const std::string less = state_.path + "/less";
  ASSERT_TRUE(write_file_atomic(less, "#!/bin/sh\nsed -n 1,2p\necho \"secure: $LESSSECURE.\"\n").ok());
  ASSERT_EQ(chmod(less.c_str(), 0700), 0);
  const char* before = std::getenv("PATH");
  const std::string path = before ? before : "";
  setenv("PATH", (state_.path + ":" + path).c_str(), 1);
  unsetenv("PAGER");
  auto with = start(20, 100, "xterm", ""), without = start(20, 100, "xterm", "", "--no-shell"),
       other = start(20, 100, "xterm", "sed -n 1,2p; echo not here", "--no-shell");
  setenv("PATH", path.c_str(), 1);
  for (auto* t : {with.get(), without.get(), other.get()}) t->type("%env\r");
  EXPECT_TRUE(with->wait_for("secure: .")) << with->screen().text();
  EXPECT_TRUE(without->wait_for("secure: 1.")) << without->screen().text();
  EXPECT_TRUE(other->wait_for("\n[2]"));
  EXPECT_EQ(other->raw_output().find("\nnot here"), std::string::npos);
  EXPECT_NE(other->raw_output().find("KILN_CACHE_DIR"), std::string::npos) << "printed as it is";
}

TEST_F(PromptTables, ATerminalOfOneColumn) {
  auto t = start(60, 80);
  t->resize(60, 1);
  t->type("%who\r");
  t->resize(60, 80);
  t->type("\003");
  t->type("1 + 1\r");
  EXPECT_TRUE(t->wait_for("\n2\n")) << t->screen().text();
}

}  // namespace
}  // namespace kiln
