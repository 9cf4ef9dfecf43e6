// The shell with a made-up terminal: entries in, what is printed out.
#include "repl/shell/shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>

#include "repl/editor/bindings.h"
#include "repl/shell/entry_text.h"
#include "repl/shell/interrupts.h"
#include "repl/shell/question.h"
#include "support/files.h"

namespace kiln::repl {
namespace {

using Input = EntrySource::Input;
using Event = EntrySource::Event;

/// What is typed: lines, and whole entries as the editor gives them.
struct Typed {
  LineRead read = LineRead::kLine;
  std::string line;
  std::optional<Input> entry;
};
Typed line(std::string text) { return {LineRead::kLine, std::move(text), std::nullopt}; }
Typed entry(std::string text) { return {{}, {}, Input{Event::kEntry, std::move(text)}}; }
const Typed kCtrlC{LineRead::kInterrupted, {}, {}};

class TypedEntries : public EntrySource {
 public:
  explicit TypedEntries(std::deque<Typed> typed) : typed_(std::move(typed)) {}
  Input read(const std::string& first_prompt, const std::string& next_prompt) override {
    if (!typed_.empty() && typed_[0].entry) {
      Input input = *typed_[0].entry;
      typed_.pop_front();
      return input;
    }
    return lines_->read(first_prompt, next_prompt);
  }
  std::vector<std::string> prompts;

 private:
  std::deque<Typed> typed_;
  std::unique_ptr<EntrySource> lines_ = make_line_source([this](const std::string& prompt, std::string& line) {
    prompts.push_back(prompt);
    if (typed_.empty()) return LineRead::kEnd;
    const Typed typed = typed_[0];
    typed_.pop_front();
    line = typed.line;
    return typed.read;
  });
};

struct Terminal {
  std::string out, err;
  int code = -1;
  std::vector<std::string> prompts;
};

Terminal type(std::deque<Typed> typed) {
  Options options;
  options.device = "cpu";
  Terminal t;
  Shell shell(options, [&](std::string_view s) { t.out += s; });
  TypedEntries entries(std::move(typed));
  testing::internal::CaptureStderr();
  t.code = shell.prompt(entries);
  t.err = testing::internal::GetCapturedStderr();
  t.prompts = entries.prompts;
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
}

TEST(Prompt, OpenBracketsContinue) {
  Terminal t = type({line("(1 +"), line(" 2)")});
  EXPECT_EQ(t.out, "3\n");
}

TEST(Prompt, APastedBlockIsOneEntry) {
  Terminal t = type({entry("def f(a):\n    b = a\n\n    return b + 1\n\nprint(f(1))\n"), line("f(2)")});
  EXPECT_EQ(t.out, "2\n3\n");
}

TEST(Prompt, APastedFileMayHoldCommands) {
  Terminal t = type({entry("x = 7\n%format csv\ndef f():\n    return (x\n% 4)\n\n%help time\nf()\nabs?\nboom")});
  EXPECT_LT(t.out.find("%time"), t.out.find("\n3\n"));
  EXPECT_LT(t.out.find("\n3\n"), t.out.find("abs("));
  EXPECT_NE(t.err.find("[1]:10:"), std::string::npos) << t.err;  // lines are counted through
}

TEST(Prompt, BlanksMayLeadACommand) {
  Terminal t = type({line("   %target sm_80"), line("  r = %target"), line("   r.target[0]?"), line("   exit")});
  EXPECT_EQ(t.err, "");
  EXPECT_EQ(t.out, "'host'\nstr\n");
}

TEST(Prompt, AnIndentedLineBehindCodeIsOfItsBlock) {
  Terminal t = type({entry("for i in (1, 2):\n    print(i)\n    %target\n")});
  EXPECT_EQ(t.out, "") << "nothing runs";
  EXPECT_NE(t.err.find("a command stands outside of blocks"), std::string::npos) << t.err;
}

TEST(Prompt, NestedBlocksContinue) {
  Terminal t = type({line("def g(n):"), line("    for i in range(n):"), line("        if i:"),
                     line("            print(i)"), line(""), line("g(3)")});
  EXPECT_EQ(t.err, "");
  EXPECT_EQ(t.out, "1\n2\n");
}

TEST(Prompt, StartsOnALineOfItsOwn) { EXPECT_EQ(type({line("print('a', end='')"), line("print('b')")}).out, "a\nb\n"); }

TEST(Prompt, SourcesAreShownEscaped) {
  Terminal t = type({entry("def f():\n    return '\033[31m'\n"), line("f??")});
  EXPECT_NE(t.out.find("'\\x1b[31m'"), std::string::npos) << t.out;
}

TEST(Highlight, ColoursWhatIsUnfinished) {
  using editor::Style;
  auto styles = [](std::string_view text) {
    std::string out(text.size(), '.');
    for (const editor::Styled& s : highlight(text))
      for (size_t i = s.begin; i < s.end; ++i)
        out[i] = s.style == Style::kKeyword   ? 'k'
                 : s.style == Style::kString  ? 's'
                 : s.style == Style::kNumber  ? 'n'
                 : s.style == Style::kComment ? 'c'
                 : s.style == Style::kCommand ? '%'
                                              : '@';
    return out;
  };
  EXPECT_EQ(styles("for i in x: # note"), "kkk...kk....cccccc");
  EXPECT_EQ(styles("s = 'open\nx = 1"), "....sssss.....n");
  EXPECT_EQ(styles("'"), "s");
  EXPECT_EQ(styles("\"\"\"a\nif 1"), "sssssssss");
  EXPECT_EQ(styles("x = (1,\n  'a')"), ".....n....sss.");
  EXPECT_EQ(styles(")) 1\nif"), ".....kk");
  EXPECT_EQ(styles("%ptx k"), "%%%%..");
  EXPECT_EQ(styles("@triton.jit\ndef"), "@@@@@@@@@@@.kkk");
  EXPECT_EQ(styles("é = '日'"), ".....sssss");
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
    InterruptGuard guard(shell.session(), Interrupts::kOfPrompt);
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
  Terminal t = type({kCtrlC, line("def f():"), kCtrlC, line("1 + 1")});
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

TEST(Magics, RowsOfTheTablesAreOfCommands) {
  std::vector<std::string> names;
#define KILN_MAGIC_OPTION(MAGIC, ...) names.push_back(#MAGIC);
#define KILN_MAGIC_OPERAND(MAGIC, ...) names.push_back(#MAGIC);
#define KILN_MAGIC_EXAMPLE(MAGIC, ...) names.push_back(#MAGIC);
#include "repl/magics/magic_option.def"
  for (const std::string& name : names)
    EXPECT_TRUE(std::ranges::any_of(magics(), [&](const Magic& m) { return m.name == name; })) << name;
  for (const Magic& m : magics()) {
    EXPECT_FALSE(magic_examples(m.name).empty()) << m.name;
    for (const MagicExample& e : magic_examples(m.name))
      EXPECT_TRUE(e.line.starts_with("%" + std::string(m.name))) << e.line;
  }
}

TEST(Magics, HelpShowsOptionsDefaultsAndAnExample) {
  Terminal t = type({line("%help bench"), line("%format json"), line("%help %bench")});
  EXPECT_EQ(t.err, "");
  EXPECT_NE(t.out.find("budget=SECONDS  seconds for each cache state (default: 5)\n"), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("example:\n  %bench softmax(x, -1) "), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("\"command\":\"budget=SECONDS\",\"default\":\"5\""), std::string::npos) << t.out;
}

TEST(Magics, BenchMeasuresColdAndHot) {
  Terminal t = type({line("%format csv"), line("%bench sum(range(20000))")});
  EXPECT_EQ(t.err, "");
  EXPECT_NE(t.out.find("\ncold,"), std::string::npos);
  EXPECT_NE(t.out.find("\nhot,"), std::string::npos);
}

TEST(Magics, BenchSaysWhichCachesAnInterruptLeftOut) {
  // Samples with hot caches run it twice in a row; with cold ones the caches are flushed in between.
  Terminal t = type({entry("import time\n"
                           "last, calls = [0.0], [0]\n"
                           "def f():\n"
                           "    calls[0] += 1\n"
                           "    if calls[0] > 4 and time.perf_counter() - last[0] < 1e-3: raise KeyboardInterrupt\n"
                           "    last[0] = time.perf_counter()\n"),
                     line("%bench f() budget=200ms")});
  EXPECT_EQ(t.err, "");
  EXPECT_NE(t.out.find("\ncold "), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("interrupted: no samples with hot caches\n"), std::string::npos) << t.out;
}

TEST(Questions, WhatIsOne) {
  auto about = [](std::string_view line) {
    const auto q = question_of(line);
    return q ? std::string(q->about) + (q->source ? " source" : "") : "none";
  };
  EXPECT_EQ(about("x?"), "x");
  EXPECT_EQ(about(" ?x "), "x");
  EXPECT_EQ(about("a.b??"), "a.b source");
  EXPECT_EQ(about("??k"), "k source");
  EXPECT_EQ(about("help(k)"), "k");
  EXPECT_EQ(about("help()"), "");
  EXPECT_EQ(about("?"), "");
  EXPECT_EQ(about("%bench?"), "%bench");
  EXPECT_EQ(about("?%bench"), "%bench");
  EXPECT_EQ(about("%bench x?"), "none");
  EXPECT_EQ(about("help(f(1))"), "none");
  EXPECT_EQ(about("x = 'why?'"), "none");
  EXPECT_EQ(about("x  # why?"), "none");
}

TEST(Questions, AreAnswered) {
  auto answer = [](const std::string& setup, const std::string& question) {
    Terminal t = type({entry(setup), line(question)});
    EXPECT_EQ(t.err, "") << question;
    return t.out;
  };
  EXPECT_EQ(answer("def f(a, b=3):\n    '''Adds.\n\n    Both of them.\n    '''\n    return a + b\n", "f?"),
            "f(a, b=3)\n  Adds.\n\n  Both of them.\nfunction, line 1 of [1]\n");
  EXPECT_EQ(answer("class C(ValueError):\n    def __init__(self, n=2): pass\n", "help(C)"),
            "C(n=2)\nclass of base ValueError\n");
  EXPECT_EQ(answer("d = {'a': [1, 2]}", "d?"), "{'a': [1, 2]}\ndict, 1 item\n");
  EXPECT_EQ(answer("d = {1: [1, 2]}", "d[1]?"), "[1, 2]\nlist, 2 items\n");
  EXPECT_EQ(answer("x = 1", "torch.softmax?"),
            "torch.softmax(input, dim, dtype=None)\n  exp(x) over its sum along a dimension\n");
  EXPECT_TRUE(answer("x = 1", "?tl.load").starts_with("tl.load(pointer, mask=None"));
  const std::string tensor = answer("x = torch.zeros(4, 6)\ny = x.t()", "y?");
  EXPECT_TRUE(tensor.starts_with("f32[6, 4] cpu\n  24 elements, 96 B, strides (1, 6)\ntorch.Tensor\n")) << tensor;
  EXPECT_NE(tensor.find("mean"), std::string::npos) << tensor;
  const std::string pending = answer("x = torch.zeros(400, 600)\ny = x + 1", "y?");
  EXPECT_NE(pending.find("lazy"), std::string::npos);
  EXPECT_EQ(pending.find("mean"), std::string::npos) << "it computes nothing: " << pending;
}

TEST(Questions, AboutKernels) {
  const std::string define =
      "@triton.jit\ndef k(x, n, B: tl.constexpr):\n    'Doubles.'\n    i = tl.arange(0, B)\n"
      "    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)\nx = torch.zeros(64)\n";
  Terminal t = type({entry(define), line("k?"), line("k[(1,)](x, 64, B=64)"), line("k?"),
                     line("%bench k[(1,)](x, 64, B=64) budget=0.1"), line("k?"), line("k??")});
  EXPECT_EQ(t.err, "");
  EXPECT_TRUE(t.out.starts_with("k(x, n, B: tl.constexpr)\n  Doubles.\nJITFunction, line 2 of [1]\nk(x")) << t.out;
  EXPECT_NE(t.out.find("occupancy"), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("\nlast measured: "), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("\n@triton.jit\ndef k(x, n"), std::string::npos) << t.out;
}

TEST(Questions, AboutKeys) {
  Terminal t = type({line("d = {'a?': 12345}"), line("d['a?']?"), line("?d[\"a?\"]"), line("'what?'")});
  EXPECT_EQ(t.err, "");
  EXPECT_EQ(t.out, "12345\nint\n12345\nint\n'what?'\n");
}

// docs/prompt.md has the table that the keys are dispatched by.
TEST(Keys, AreDocumentedAsTheyAre) {
  std::string table;
  for (const editor::Binding& b : editor::bindings()) {
    std::string keys(b.keys);
    for (size_t at = 0; (at = keys.find("  ", at)) != std::string::npos;) keys.replace(at, 2, "`, `");
    table += "| `" + keys + "` | " + std::string(b.help) + " |\n";
  }
  auto text = read_file(KILN_SOURCE_DIR "/docs/prompt.md");
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find(table), std::string::npos) << "docs/prompt.md should have these rows:\n" << table;
  Terminal t = type({line("%help keys")});
  EXPECT_NE(t.out.find("Alt-Enter"), std::string::npos);
}

}  // namespace
}  // namespace kiln::repl
