// The shell with a made-up terminal: entries in, what is printed out.
#include "repl/shell/shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>

#include "repl/editor/bindings.h"
#include "repl/shell/completion.h"
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

TEST(Completion, OpenCall) {
  EXPECT_EQ(open_call("add_kernel[(4,)](x, BL"), "add_kernel");
  EXPECT_EQ(open_call("torch.randn(4, de"), "torch.randn");
  EXPECT_EQ(open_call("f(g(1), h[2]"), "f");
  EXPECT_EQ(open_call("x = [1, 2"), "");
  EXPECT_EQ(open_call("print(1)"), "");
  EXPECT_EQ(open_call("f(')', "), "f");
  EXPECT_EQ(open_call("f('(', "), "f");
  EXPECT_EQ(open_call("f(1,  # (\n  "), "f");
}

TEST(Completion, CommandsNamesAndPaths) {
  Options options;
  options.device = "cpu";
  Shell shell(options, [](std::string_view) {});
  ASSERT_TRUE(shell.session().run("alphabet = 1", "t").ok());
  EXPECT_EQ(shell.complete("%be").candidates, (std::vector<std::string>{"%bench "}));
  editor::Completion names = shell.complete("1 + alph");
  EXPECT_NE(std::find(names.candidates.begin(), names.candidates.end(), "alphabet"), names.candidates.end());
  EXPECT_EQ(names.replaced, 4u);
  editor::Completion paths = shell.complete("open('/pro");
  EXPECT_EQ(paths.candidates, (std::vector<std::string>{"/proc/"}));
  shell.complete("'");  // whatever is in the folder
  EXPECT_EQ(shell.complete("# it's\n%be").candidates, (std::vector<std::string>{"%bench "}));
  EXPECT_EQ(shell.complete("'''it's '/no\n").candidates, std::vector<std::string>{});
}

/// The candidates for what stands before the cursor, which must all begin as typed, separated by blanks.
std::string candidates(Shell& shell, const std::string& before) {
  const editor::Completion c = shell.complete(before);
  std::string out;
  for (const std::string& text : c.candidates) {
    EXPECT_TRUE(text.starts_with(std::string_view(before).substr(before.size() - c.replaced))) << before << " " << text;
    out += (out.empty() ? "" : " ") + text;
  }
  return out;
}

TEST(Completion, OptionsOfCommandsAndTheirValues) {
  Options options;
  options.device = "cpu";
  Shell shell(options, [](std::string_view) {});
  ASSERT_TRUE(shell.session()
                  .run("import torch, triton, triton.language as tl\nx = torch.zeros(4)\n@triton.jit\n"
                       "def add_kernel(x, n, BLOCK: tl.constexpr): pass\n",
                       "t")
                  .ok());
  EXPECT_EQ(candidates(shell, "%bench x + 1 bud"), "budget=");
  EXPECT_EQ(candidates(shell, "r = %bench x + 1 bud"), "budget=");
  EXPECT_EQ(candidates(shell, "d['k'] = %benc"), "%bench ");
  ASSERT_TRUE(shell.entry("r = %who").ok());
  EXPECT_EQ(candidates(shell, "r['ty"), "type']");
  EXPECT_EQ(candidates(shell, "r.sort('ty"), "type'");
  EXPECT_EQ(candidates(shell, "r[0].nothing('/pro"), "/proc/");
  EXPECT_EQ(candidates(shell, "%bench x budget=1 bud"), "");
  const editor::Completion behind = shell.complete("r = %bench x + 1 ");
  EXPECT_EQ(std::vector(behind.candidates.begin(), behind.candidates.begin() + 3),
            (std::vector<std::string>{"bytes=", "flop=", "budget="}));
  EXPECT_EQ(behind.leading, 3u) << "what was used more often does not come first";
  EXPECT_GT(behind.candidates.size(), 3u);
  EXPECT_EQ(shell.complete("%bench x + 1 b").leading, 0u) << "a name may be meant as well";
  EXPECT_EQ(candidates(shell, "%compare x, x cache="), "cache=cold cache=hot");
  EXPECT_EQ(candidates(shell, "%compare x, x out="), "out=x");
  EXPECT_EQ(candidates(shell, "%compare x, x dtype=bf"), "dtype=bf16");
  EXPECT_EQ(candidates(shell, "%source x --v"), "--variant ");
  EXPECT_EQ(candidates(shell, "%source x --variant unf"), "unfused");
  EXPECT_EQ(candidates(shell, "%ir "), "add_kernel");
  EXPECT_EQ(candidates(shell, "%ir add_kernel lic"), "licm");
  EXPECT_EQ(candidates(shell, "%ir add_kernel cse BL"), "BLOCK=");
  EXPECT_EQ(candidates(shell, "%static add_kernel num_w"), "num_warps=");
  EXPECT_EQ(candidates(shell, "%static add_kernel num_warps="),
            "num_warps=1 num_warps=2 num_warps=4 num_warps=8 num_warps=16 num_warps=32");
  EXPECT_EQ(candidates(shell, "%why add_k"), "add_kernel");
  EXPECT_EQ(candidates(shell, "%why add_kernel pass=select_w"), "pass=select_wgmma");
  EXPECT_EQ(candidates(shell, "%tune add_kernel[(1,)](x, 4, BLOCK=4) bud"), "budget=");
  EXPECT_EQ(candidates(shell, "%tune add_kernel[(1,)](x, 4, BL"), "BLOCK=");
  EXPECT_EQ(candidates(shell, "%target sm_9"), "sm_90 sm_90a");
  EXPECT_EQ(candidates(shell, "%format m"), "markdown");
  EXPECT_EQ(candidates(shell, "%help comp"), "compare");
  EXPECT_EQ(candidates(shell, "%counters x bundle=m"), "bundle=memory");
  EXPECT_EQ(candidates(shell, "%profile x sort=self_"), "sort=self_cpu sort=self_gpu sort=self_memory");
  EXPECT_EQ(candidates(shell, "%cubin add_kernel /pro"), "/proc/");
  EXPECT_EQ(candidates(shell, "%trace x > /pro"), "/proc/");
  EXPECT_EQ(candidates(shell, "!ls /pro"), "/proc/");
  EXPECT_EQ(candidates(shell, "r = !ls -l /pro"), "/proc/");
  EXPECT_EQ(candidates(shell, "%sh cat /pro"), "/proc/");
  EXPECT_EQ(candidates(shell, "!add_k"), "") << "no name of the session";
  EXPECT_NE((" " + candidates(shell, "!l") + " ").find(" ls "), std::string::npos);
  EXPECT_EQ(candidates(shell, "%set format m"), "markdown");
  EXPECT_EQ(candidates(shell, "%set target sm_9"), "sm_90 sm_90a");
  EXPECT_EQ(candidates(shell, "%set pag"), "pager");
  EXPECT_EQ(shell.complete("%set pag").notes.at("pager"), "what is longer than the screen goes to a pager");
  EXPECT_NE(shell.complete("%bench x bud").notes.at("budget=").find("default: 5"), std::string::npos);
}

TEST(Completion, KeywordsKeysAndValues) {
  Options options;
  options.device = "cpu";
  Shell shell(options, [](std::string_view) {});
  ASSERT_TRUE(shell.session()
                  .run("import torch\ndef scale(alpha, beta=2, *rest): pass\n"
                       "class C:\n    def __init__(self, width): pass\n    def grow(self, by): pass\n"
                       "c = C(1)\nd = {'cold': 1, 'hot': 2, \"it's\": 3, 4: 5}\n",
                       "t")
                  .ok());
  EXPECT_EQ(candidates(shell, "scale(alp"), "alpha=");
  EXPECT_EQ(candidates(shell, "scale(1, bet"), "beta=");
  EXPECT_EQ(candidates(shell, "C(wid"), "width=");
  EXPECT_EQ(candidates(shell, "c.grow(b").substr(0, 3), "by=");
  EXPECT_EQ(candidates(shell, "torch.zeros(4, dty"), "dtype=");
  EXPECT_EQ(candidates(shell, "torch.zeros(4, dtype=torch.bfl"), "torch.bfloat16");
  EXPECT_EQ(candidates(shell, "torch.zeros(4, device='c"), "cpu' cuda'");
  EXPECT_EQ(candidates(shell, "d['c"), "cold']");
  EXPECT_EQ(candidates(shell, "x = d[\"h"), "hot\"]");
  EXPECT_TRUE(candidates(shell, "d[").starts_with("'cold'] 'hot'] "));
  EXPECT_EQ(candidates(shell, "nothing['co"), "");
}

TEST(Completion, DescribesACandidateWithoutRunningScripts) {
  Options options;
  options.device = "cpu";
  std::string out;
  Shell shell(options, [&](std::string_view s) { out += s; });
  constexpr const char* kScript =
      "class C:\n    def __repr__(self):\n        print('ran')\n        return ''\nc = C()\nd = [c]\nx = 5\n";
  ASSERT_TRUE(shell.session().run(kScript, "t").ok());
  EXPECT_NE(shell.preview("%bench ").find("%bench EXPRESSION"), std::string::npos);
  EXPECT_NE(shell.preview("abs").find("abs("), std::string::npos);
  EXPECT_EQ(shell.preview("x"), "int · 5");
  EXPECT_EQ(shell.preview("c"), "C");
  EXPECT_EQ(shell.preview("d"), "list");
  EXPECT_EQ(shell.preview("nothing") + shell.preview("x="), "");
  EXPECT_EQ(out, "");
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
