// The kiln program on a pseudo-terminal, typed at.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/files.h"
#include "tests/unit/repl/prompt/prompt_fixture.h"

namespace kiln {
namespace {

using editor::PseudoTerminal;

TEST_F(Prompt, TypesAKernelWithNestedBlocksAndAnyCharacters) {
  auto t = start();
  t->type("import triton, torch\rimport triton.language as tl\r");
  t->type("@triton.jit\rdef k(o, n, B: tl.constexpr):\ri = tl.arange(0, B)\r");
  t->type("for j in range(n):\rif j > 1:\rtl.store(o + i, i + j)  # é日本\r\r");
  EXPECT_TRUE(t->wait_for("\n[4]")) << t->screen().text();
  EXPECT_NE(t->screen().text().find("...             tl.store(o + i, i + j)  # é日本\n"), std::string::npos)
      << t->screen().text();
  t->type("o = torch.zeros(4, dtype=torch.int32)\rk[(1,)](o, 3, B=4)\rs = 'é日本'; print(o.tolist(), len(s), s)\r");
  EXPECT_TRUE(t->wait_for("[2, 3, 4, 5] 3 é日本\n", 60)) << t->screen().text();
}

TEST_F(Prompt, TypesAFunction) {
  auto t = start();
  t->type("def g(n):\rfor i in range(n):\rprint('it is', i)\r\rg(2)\r");
  EXPECT_TRUE(t->wait_for("it is 0\nit is 1\n[3]")) << t->screen().text();
}

TEST_F(Prompt, RunsAPastedTranscript) {
  auto t = start();
  t->send("\033[200~\033[201~");  // of an empty clipboard
  t->send("\033[200~[1] x = 20\r[2] def f():\r...     return x + 1\r...\r[3] f()\r21\r[4] %who\r\033[201~");
  EXPECT_TRUE(t->wait_for("%who"));
  t->type("\r");
  EXPECT_TRUE(t->wait_for("\n21\n")) << t->screen().text();
  EXPECT_TRUE(t->wait_for("\n[5]")) << t->screen().text();
  EXPECT_NE(t->screen().text().find("function"), std::string::npos) << t->screen().text();
}

TEST_F(Prompt, OddKeysHarmNothing) {
  auto t = start();
  t->type("\033x'\t\003");
  t->type("\"\033\"\t\003");
  t->type("1 + 1\r");
  EXPECT_TRUE(t->wait_for("\n2\n")) << t->screen().text();
}

TEST_F(Prompt, CompletesAndDescribes) {
  auto t = start();
  t->type("import torch\rtorch.zeros\t\t");
  EXPECT_TRUE(t->wait_for("zeros(")) << t->screen().text();
  t->type("\003%benc\tx");
  EXPECT_TRUE(t->wait_for("%bench x"));
}

TEST_F(Prompt, DeathLeavesACookedTerminalAndTheHistory) {
  for (int number : {SIGTERM, SIGHUP, SIGKILL}) {
    auto t = start();
    t->type("kept_" + std::to_string(number) + " = 1\r");
    EXPECT_TRUE(t->wait_for("[2]"));
    t->type("half");
    t->signal(number);
    EXPECT_EQ(WTERMSIG(t->end()), number);
    EXPECT_TRUE(number == SIGKILL || t->is_cooked()) << number;
  }
  // While a statement runs, the terminal is as it was before.
  auto t = start();
  t->type("while True: pass\r\r");
  EXPECT_TRUE(t->wait([&] { return t->is_cooked(); }));
  t->signal(SIGKILL);
  t->end();
  auto again = start();
  again->type("\033[A\033[A\033[A");
  EXPECT_TRUE(again->wait_for("kept_1 = 1"));
  again->type("\003kept_9\033[A");
  EXPECT_TRUE(again->wait_for("kept_9 = 1"));
  again->type("\003\004");
  EXPECT_EQ(again->end(), 0);
  EXPECT_TRUE(again->is_cooked());
}

TEST_F(Prompt, SessionsShareTheirHistory) {
  auto a = start(), b = start();
  a->type("from_a = 1\r");
  b->type("from_b = 1\r");
  EXPECT_TRUE(a->wait_for("[2]") && b->wait_for("[2]"));
  a->type("\022from_b");
  EXPECT_TRUE(a->wait_for("search: from_b"));
  EXPECT_TRUE(a->wait_for("from_b = 1")) << a->screen().text();
  auto c = start();
  c->type("\022from_a");
  EXPECT_TRUE(c->wait_for("from_a = 1"));
}

TEST_F(Prompt, AHistoryThatCannotBeKeptIsTold) {
  // A file stands where its folder would be made.
  { std::ofstream(state_.path + "/kiln") << "in the way"; }
  auto t = start();
  t->type("x = 40 + 2\r");
  EXPECT_TRUE(t->wait_for("the history of this session is not kept")) << t->screen().text();
  t->type("x\r");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
  t->type("\033[A\033[A");
  EXPECT_TRUE(t->wait_for("[3] x = 40 + 2")) << t->screen().text();
}

TEST_F(Prompt, MatchIsABlock) {
  auto t = start();
  t->type("match [1, 2]:\rcase [a]:\rprint('one')\rcase [a, b]:\rprint('two', a + b)\r\r");
  EXPECT_TRUE(t->wait_for("\ntwo 3\n")) << t->screen().text();
  t->type("match = 5\rmatch + 1\r");
  EXPECT_TRUE(t->wait_for("\n6\n")) << t->screen().text();
}

TEST_F(Prompt, PlainLinesOnADumbTerminal) {
  auto t = start(40, 100, "dumb");
  EXPECT_TRUE(t->is_cooked());
  t->type("def f():\r    return 41 + 1\r\rf()\r");
  EXPECT_TRUE(t->wait_for("42\n")) << t->screen().text();
  EXPECT_EQ(t->raw_output().find('\033'), std::string::npos);
}

TEST_F(Prompt, CtrlCDropsTheLineOfADumbTerminal) {
  auto t = start(40, 100, "dumb");
  t->send("x = 20\r");
  EXPECT_TRUE(t->wait_for("\n[2]"));
  t->send("def f():\r");
  EXPECT_TRUE(t->wait_for("\n..."));
  t->send("x = 1");
  EXPECT_TRUE(t->wait_for("... x = 1"));
  t->send("\003");
  EXPECT_TRUE(t->wait_for("^C\n[2]")) << t->screen().text();
  t->send("x + 1\r");
  EXPECT_TRUE(t->wait_for("\n21\n")) << t->screen().text();
  t->send("\004");
  EXPECT_EQ(t->end(), 0);
}

TEST_F(Prompt, CtrlCAndCtrlDAtOnce) {
  for (int i = 0; i < 5; ++i) {
    auto t = start();
    t->send("half");
    EXPECT_TRUE(t->wait_for("[1] half"));
    t->send("\003\r\003\004");
    EXPECT_EQ(t->end(), 0);
    EXPECT_TRUE(t->is_cooked());
  }
}

TEST_F(Prompt, CtrlCBetweenStatementsEndsNothing) {
  auto t = start();
  for (int i = 0; i < 100; ++i) {
    t->type("1\r");
    t->signal(SIGINT);  // four within one statement end it: one for each
  }
  const bool goes_on = t->wait([&] {
    t->type("6 * 7\r");  // the last signal may still be under way, and drop it
    return t->screen().text().find("\n42\n") != std::string::npos;
  });
  EXPECT_TRUE(goes_on) << t->screen().text();
}

TEST_F(Prompt, AHeldCtrlCEndsTheStatementAlone) {
  auto t = start();
  t->type("x = 41\r");
  // Says when it runs: the terminal is cooked a moment before, when a signal still belongs to no statement.
  t->type("for i in range(1 << 62): i or print('runs')\r\r");
  EXPECT_TRUE(t->wait_for("\nruns\n"));
  for (int i = 0; i < 20; ++i) t->signal(SIGINT);
  EXPECT_TRUE(t->wait_for("interrupted")) << t->screen().text();
  t->type("x + 1\r");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
}

TEST_F(Prompt, TheSecondCtrlCEndsAStatementThatCatchesTheFirst) {
  auto t = start();
  t->type("x = 41\ry = 0\r");
  t->type(
      "while True:\rtry:\rprint('r' + 'uns')\rwhile True: pass\r\bexcept KeyboardInterrupt:\rprint('cau' + 'ght')\r\r");
  ASSERT_TRUE(t->wait_for("\nruns\n")) << t->screen().text();
  t->send("\003");
  ASSERT_TRUE(t->wait_for("caught\nruns\n")) << t->screen().text();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // what comes sooner is the same press
  t->send("\003");
  EXPECT_TRUE(t->wait_for("stopped; 2 variables kept")) << t->screen().text();
  t->type("x + 1\r");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
}

TEST_F(Prompt, FirstLaunchesOnTheCpuAreChecked) {
  auto t = start(60, 120);
  t->type(
      "import triton, triton.language as tl\r@triton.jit\rdef add(x, y, o, n, BLOCK: tl.constexpr):\r"
      "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\rtl.store(o + i, tl.load(x + i) + tl.load(y + i))\r\r"
      "x, y, out = torch.ones(100_352), torch.ones(100_352), torch.zeros(100_000)\r");
  ASSERT_TRUE(t->wait_for("\n[4]")) << t->screen().text();
  t->type("add[(98,)](x, y, out, 100_000, BLOCK=1024)\r");
  ASSERT_TRUE(t->wait_for("\n[5]")) << t->screen().text();
  const std::string screen = t->screen().text();
  for (const char* part : {"writes element 100000 of 'o', which has 100000 elements, in program 97",
                           "help: give it a mask", "variables are kept"})
    EXPECT_NE(screen.find(part), std::string::npos) << part << "\n" << screen;
  // What is right is compiled as it is too, for what looks at it.
  t->type("add[(97,)](x, y, out, 100_000, BLOCK=1024).name\rprint('sum', out.sum().item() == 200_000)\r");
  EXPECT_TRUE(t->wait_for("\nsum True\n")) << t->screen().text();
  t->type("%ir add\r");
  EXPECT_TRUE(t->wait_for("\nkernel @add(")) << t->screen().text();
}

TEST_F(Prompt, CtrlCBehindQuitEndsItSooner) {
  auto t = start();
  t->type("x = [[] for i in range(3000000)]\r");  // freeing them takes a moment
  EXPECT_TRUE(t->wait_for("\n[2]"));
  const size_t before = t->raw_output().size();
  t->send("quit\r");
  // The line is taken, so that no Ctrl-C drops it.
  EXPECT_TRUE(t->wait([&] { return t->raw_output().find("\033[?2004l", before) != std::string::npos; }));
  for (int i = 0; i < 1000; ++i) {
    t->signal(SIGINT);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EXPECT_EQ(t->end(), 0);
  EXPECT_TRUE(t->is_cooked());
}

/// Presses Ctrl-C, with time for the answer: the terminal drops what it has not shown when the next one comes. More
/// than one, for a shell that is about to become its last command loses it.
bool is_stopped_by_keyboard(editor::PseudoTerminal& t) {
  for (int press = 0; press < 10; ++press) {
    t.send("\003");
    if (t.wait_for("interrupted", 2)) return true;
  }
  return false;
}

TEST_F(Prompt, CtrlCEndsACommandWhoseOutputIsTaken) {
  auto t = start();
  t->type("r = !echo started >&2; sleep 100 & echo a\r");
  EXPECT_TRUE(t->wait_for("\nstarted\n"));
  EXPECT_TRUE(is_stopped_by_keyboard(*t)) << t->screen().text();
}

TEST_F(Prompt, CtrlCDoesNotWaitForALibrary) {
  // Opening a pipe waits until somebody writes to it: a library on a disk that does not answer.
  const std::string library = state_.path + "/libopenblas.so";
  ASSERT_EQ(mkfifo(library.c_str(), 0600), 0);
  setenv("KILN_OPENBLAS_LIBRARY", library.c_str(), 1);
  auto t = start();
  unsetenv("KILN_OPENBLAS_LIBRARY");
  t->type("print('begun')\r%doctor\r");
  EXPECT_TRUE(t->wait_for("\nbegun\n"));
  EXPECT_TRUE(is_stopped_by_keyboard(*t)) << t->screen().text();
  t->type("6 * 7\r");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
  t->type("quit\r");
  EXPECT_EQ(t->end(), 0) << "what still waits does not hold up the end";
}

TEST_F(Prompt, ColourIsASetting) {
  auto t = start();
  t->type("%set color always\r1/0\r");
  EXPECT_TRUE(t->wait([&] { return t->raw_output().find("\033[1;31merror") != std::string::npos; })) << t->raw_output();
  const size_t before = t->raw_output().size();
  t->type("%set color never\r2/0\r");
  EXPECT_TRUE(t->wait_for("[5]"));
  const size_t second = t->raw_output().find("2/0", before);
  EXPECT_EQ(t->raw_output().find("\033[1;31m", second), std::string::npos) << t->raw_output();
}

TEST_F(Prompt, CtrlCEndsAShellCommandAlone) {
  auto t = start();
  t->type("!echo started; sleep 100\r");
  EXPECT_TRUE(t->wait_for("\nstarted\n"));
  EXPECT_TRUE(is_stopped_by_keyboard(*t)) << t->screen().text();
  t->type("!echo $((6 * 7))\r");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
  t->type("%history\r");
  EXPECT_TRUE(t->wait_for("] !echo started; sleep 100\n")) << t->screen().text();
}

TEST_F(Prompt, CtrlCEndsAProgramThatIsBeingTyped) {
  auto t = start();
  t->type("%run -\r");
  EXPECT_TRUE(t->wait_for("gives it up\n"));  // the terminal shows what is typed from here on
  t->send("print('not yet')\r");
  EXPECT_TRUE(t->wait_for("\nprint('not yet')"));
  EXPECT_TRUE(is_stopped_by_keyboard(*t)) << t->screen().text();
  t->type("%run -\r");
  EXPECT_TRUE(t->wait([&] {
    const std::string text = t->screen().text();
    return text.find("gives it up\n", text.find("[2] %run -")) != std::string::npos;
  }));
  t->send("print(6 * 7)\r\x04");
  EXPECT_TRUE(t->wait_for("\n42\n")) << t->screen().text();
}

TEST_F(Prompt, ReadsItsSettings) {
  ASSERT_TRUE(make_directories(state_.path + "/kiln").ok());
  ASSERT_TRUE(write_file_atomic(state_.path + "/kiln/config.toml", "format = \"csv\"\ncolour = 1\n").ok());
  auto t = start();
  EXPECT_NE(t->screen().text().find("config.toml:2: there is no setting 'colour'"), std::string::npos)
      << t->screen().text();
  t->type("x = 1\r%who\r");
  EXPECT_TRUE(t->wait_for("x,int,1")) << t->screen().text();
}

TEST_F(Prompt, EscapesOfAScriptReachNoTerminal) {
  auto t = start();
  t->type("raise ValueError('\\x1b]0;title\\x07 \\x1b[2J')\r");
  EXPECT_TRUE(t->wait_for("ValueError"));
  EXPECT_TRUE(t->wait_for("[2]"));
  EXPECT_EQ(t->screen().unknown(), "");
  EXPECT_EQ(t->raw_output().find("\033[2J"), std::string::npos);
}

}  // namespace
}  // namespace kiln
