// The shell with a made-up terminal: entries in, what is printed out.
#include "repl/shell/shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>

#include "repl/shell/completion.h"

namespace kiln::repl {
namespace {

class Lines : public LineSource {
 public:
  explicit Lines(std::deque<Input> inputs) : inputs_(std::move(inputs)) {}
  Input read(const std::string& prompt, int indent) override {
    prompts.push_back(prompt);
    indents.push_back(indent);
    if (inputs_.empty()) return {};
    Input next = inputs_.front();
    inputs_.pop_front();
    return next;
  }
  std::vector<std::string> prompts;
  std::vector<int> indents;

 private:
  std::deque<Input> inputs_;
};

struct Terminal {
  std::string out, err;
  int code = -1;
  std::vector<std::string> prompts;
  std::vector<int> indents;
};

LineSource::Input line(std::string text) { return {LineSource::Event::kLine, std::move(text)}; }

Terminal type(std::deque<LineSource::Input> inputs) {
  Options options;
  options.device = "cpu";
  Terminal t;
  Shell shell(options, [&](std::string_view s) { t.out += s; });
  Lines lines(std::move(inputs));
  testing::internal::CaptureStderr();
  t.code = shell.prompt(lines);
  t.err = testing::internal::GetCapturedStderr();
  t.prompts = lines.prompts;
  t.indents = lines.indents;
  return t;
}

int run(const std::string& text, std::string* out = nullptr, std::string* err = nullptr) {
  Options options;
  options.device = "cpu";
  std::string printed;
  Shell shell(options, [&](std::string_view s) { printed += s; });
  testing::internal::CaptureStderr();
  int code = shell.run_program(text, "prog.py");
  std::string errors = testing::internal::GetCapturedStderr();
  if (out) *out = printed;
  if (err) *err = errors;
  return code;
}

TEST(Prompt, ShowsValuesAndKeepsVariables) {
  Terminal t = type({line("x = 20"), line("x + 22"), line("None")});
  EXPECT_EQ(t.out, "42\n");
  EXPECT_EQ(t.code, 0);
  EXPECT_EQ(t.prompts, (std::vector<std::string>{"[1] ", "[2] ", "[3] ", "[4] "}));
}

TEST(Prompt, BlocksEndWithABlankLine) {
  Terminal t = type({line("def f(a):"), line("    return a * 2"), line(""), line("f(4)")});
  EXPECT_EQ(t.out, "8\n");
  EXPECT_EQ(t.prompts[1], "... ");
  EXPECT_EQ(t.indents[1], 4);
  EXPECT_EQ(t.indents[2], 4);
}

TEST(Prompt, OpenBracketsContinue) {
  Terminal t = type({line("(1 +"), line(" 2)")});
  EXPECT_EQ(t.out, "3\n");
}

TEST(Prompt, APastedBlockIsOneEntry) {
  Terminal t =
      type({{LineSource::Event::kPasted, "def f(a):\n    b = a\n\n    return b + 1\n\nprint(f(1))\n"}, line("f(2)")});
  EXPECT_EQ(t.out, "2\n3\n");
}

TEST(Prompt, AnErrorEndsTheEntryOnly) {
  Terminal t = type({line("x = 1"), line("y = x + nothing"), line("x")});
  EXPECT_EQ(t.out, "1\n");
  EXPECT_NE(t.err.find("nothing"), std::string::npos);
  EXPECT_EQ(t.code, 0);
}

TEST(Prompt, ALateInterruptStopsNothing) {
  std::string out;
  Options options;
  options.device = "cpu";
  Shell shell(options, [&](std::string_view s) { out += s; });
  {
    InterruptGuard guard(shell.session());
    raise(SIGINT);
  }
  EXPECT_TRUE(shell.entry("for i in range(2): print(i)").ok());
  EXPECT_EQ(out, "0\n1\n");
}

TEST(Prompt, ExitAndQuitEndIt) {
  for (const char* word : {"exit", "quit", "exit()", "quit()"}) {
    Terminal t = type({line(word), line("print('never')")});
    EXPECT_EQ(t.out + t.err, "") << word;
    EXPECT_EQ(t.code, 0);
  }
  EXPECT_EQ(type({line("exit(3)")}).code, 3);
}

TEST(Prompt, InterruptDropsTheLines) {
  Terminal t = type({line("def f():"), {LineSource::Event::kInterrupted, ""}, line("1 + 1")});
  EXPECT_EQ(t.out, "2\n");
}

TEST(Prompt, EndOfInputEndsABlock) {
  Terminal t = type({line("for i in range(2):"), line("    print(i)")});
  EXPECT_EQ(t.out, "0\n1\n");
}

TEST(Prompt, CommandsAndQuestions) {
  Terminal t = type({line("%help time"), line("?"), line("%tim x"), line("abs?")});
  EXPECT_NE(t.out.find("%time"), std::string::npos);
  EXPECT_NE(t.out.find("%occupancy"), std::string::npos);
  EXPECT_NE(t.err.find("did you mean %time?"), std::string::npos);
  EXPECT_NE(t.out.find("abs("), std::string::npos);
}

TEST(Program, PrintsAndExits) {
  std::string out, err;
  EXPECT_EQ(run("print('a')\n1 + 1\n", &out), kExitOk);
  EXPECT_EQ(out, "a\n");
  EXPECT_EQ(run("import sys\nsys.exit(7)\n"), 7);
  EXPECT_EQ(run("x = 1\n\nx.nope\n", nullptr, &err), kExitError);
  EXPECT_NE(err.find("prog.py:3:"), std::string::npos);
  EXPECT_EQ(run("assert 1 == 2, 'differs'\n"), kExitMismatch);
}

TEST(Program, CommandsStandBetweenStatementsAndKeepLineNumbers) {
  std::string out, err;
  EXPECT_EQ(run("x = 1\n%format csv\n%help time\nprint(x)\ny = boom\n", &out, &err), kExitError);
  EXPECT_NE(out.find("command,"), std::string::npos);
  EXPECT_NE(out.find("1\n"), std::string::npos);
  EXPECT_NE(err.find("prog.py:5:"), std::string::npos);
}

TEST(Program, APercentSignInsideAStatementIsAnOperator) {
  std::string out;
  EXPECT_EQ(run("x = (7\n% 4)\nprint(x)\n", &out), kExitOk);
  EXPECT_EQ(out, "3\n");
}

TEST(Magics, EveryRowHasHelpAndTheTableIsSound) {
  for (const Magic& m : magics()) {
    EXPECT_FALSE(m.name.empty());
    EXPECT_FALSE(m.help.empty()) << m.name;
    EXPECT_NE(m.run, nullptr) << m.name;
  }
  // What the first release promises.
  for (std::string_view name :
       {"help", "time", "bench", "ir", "llvm", "ptx", "cubin", "static", "target", "devices", "env"})
    EXPECT_TRUE(std::any_of(magics().begin(), magics().end(), [&](const Magic& m) { return m.name == name; })) << name;
}

TEST(Magics, TargetIsCheckedAndShown) {
  Terminal t = type({line("%target sm_99"), line("%target sm_80"), line("%target")});
  EXPECT_NE(t.err.find("unknown target 'sm_99'"), std::string::npos);
  EXPECT_NE(t.out.find("*  sm_80"), std::string::npos);
}

TEST(Magics, BenchMeasuresColdAndHot) {
  Terminal t = type({line("%format csv"), line("%bench sum(range(20000))")});
  EXPECT_EQ(t.err, "");
  EXPECT_NE(t.out.find("\ncold,"), std::string::npos);
  EXPECT_NE(t.out.find("\nhot,"), std::string::npos);
}

TEST(Completion, OpenCall) {
  EXPECT_EQ(open_call("add_kernel[(4,)](x, BL"), "add_kernel");
  EXPECT_EQ(open_call("torch.randn(4, de"), "torch.randn");
  EXPECT_EQ(open_call("f(g(1), h[2]"), "f");
  EXPECT_EQ(open_call("x = [1, 2"), "");
  EXPECT_EQ(open_call("print(1)"), "");
}

TEST(Completion, CommandsNamesAndPaths) {
  Options options;
  options.device = "cpu";
  Shell shell(options, [](std::string_view) {});
  ASSERT_TRUE(shell.session().run("alphabet = 1", "t").ok());
  EXPECT_EQ(shell.complete("%be").candidates, (std::vector<std::string>{"%bench "}));
  Completion names = shell.complete("1 + alph");
  EXPECT_NE(std::find(names.candidates.begin(), names.candidates.end(), "alphabet"), names.candidates.end());
  EXPECT_EQ(names.replaced, 4u);
  Completion paths = shell.complete("open('/pro");
  EXPECT_EQ(paths.candidates, (std::vector<std::string>{"/proc/"}));
}

}  // namespace
}  // namespace kiln::repl
