// The shell with a made-up terminal: entries in, what is printed out.
#include "repl/shell/shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>

#include "repl/editor/bindings.h"
#include "repl/shell/entry_text.h"
#include "repl/shell/interrupts.h"
#include "repl/shell/pager.h"
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
Typed entry(std::string text) { return {{}, {}, Input::entry(std::move(text))}; }
const Typed kCtrlC{LineRead::kInterrupted, {}, {}};

class TypedEntries : public EntrySource {
 public:
  explicit TypedEntries(std::deque<Typed> typed) : typed_(std::move(typed)) {}
  Input read(const std::string& first_prompt, const std::string& next_prompt) override {
    // A whole entry is given at once, lines go through the source that asks for more of them.
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
  // The shell prints here; errors go to stderr, which is captured around it.
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
  // The prompt of the entry that never came is the fourth.
  EXPECT_EQ(t.prompts, (std::vector<std::string>{"[1] ", "[2] ", "[3] ", "[4] "}));
}

TEST(Prompt, BlocksEndWithABlankLine) {
  Terminal t = type({line("def f(a):"), line("    return a * 2"), line(""), line("f(4)")});
  EXPECT_EQ(t.out, "8\n");
  EXPECT_EQ(t.prompts[1], "... ");
}

TEST(Prompt, ASemicolonHidesAValue) {
  auto shown = [](std::string text) {
    Terminal t = type({entry(std::move(text))});
    EXPECT_EQ(t.err, "");
    return t.out;
  };
  EXPECT_EQ(shown("5;"), "");
  EXPECT_EQ(shown("(5) ;  # quiet"), "");
  EXPECT_EQ(shown("1; 2"), "2\n");
  EXPECT_EQ(shown("1\n2\n"), "2\n");
  EXPECT_EQ(shown("1\n2;\n"), "");
  EXPECT_EQ(shown("5\nx = 2\n"), "");
  EXPECT_EQ(shown("for i in range(3): i\n"), "");
  // The command runs between the two and its own output is not a value.
  EXPECT_EQ(shown("5\n%target sm_80\n6\n"), "6\n") << "code on both sides of a command is one entry";
  // The value of the last statement is shown, and here a command was last.
  EXPECT_EQ(shown("5\n%target sm_80\n"), "");
  EXPECT_EQ(shown("x = randn(300, 300) + 1\ny = x + 1\n"),
            // Assigned tensors are told without being computed.
            "x: f32[300, 300] cpu · lazy · 1 kernel when fused\ny: f32[300, 300] cpu · lazy · 1 kernel when fused\n");
  EXPECT_EQ(shown("x = 3; x"), "3\n");
  EXPECT_EQ(shown("x = 3; x;"), "");
  EXPECT_EQ(shown("print(1); 2;"), "1\n");
  EXPECT_EQ(shown("4; x = 5"), "");
}

TEST(Prompt, EntriesOfATranscriptAreEntriesOfTheirOwn) {
  Terminal t =
      type({Typed{{}, {}, Input{Event::kEntry, "x = 20\nx\nx + 1\n", {"x = 20\n", "x\n", "x + 1\n"}}}, line("_"),
            line("Out[2], Out[3]"), Typed{{}, {}, Input{Event::kEntry, "boom\n3\n", {"boom\n", "3\n"}}}});
  EXPECT_EQ(t.out, "20\n21\n21\n(20, 21)\n");
  // The second entry of that transcript runs although the first fails.
  EXPECT_NE(t.err.find("'boom'"), std::string::npos) << t.err;
}

TEST(Prompt, ASemicolonEndsACommandThatTakesNoStatements) {
  Terminal t = type({line("x = %bench 1 + 1 budget=0.05; y = 3"), line("y"), line("r = %target; len(r.columns)"),
                     line("%format csv; %format json; 4"), line("%time a = 1; b = 2"), line("b"),
                     line("!echo a; echo b"), entry("%format text; x = (1 +\n 4)\nx\n")});
  EXPECT_EQ(t.err, "");
  EXPECT_TRUE(t.out.starts_with("3\n7\n4\n")) << t.out;
  EXPECT_TRUE(t.out.ends_with("\n2\n5\n")) << t.out;
}

TEST(Prompt, StatementsMayLeadACommandOnItsLine) {
  Terminal t = type({line("q = {}; q['t'] = %target"), line("len(q['t'])"), line("x = 3; %format csv"), line("x"),
                     line("s = 'a; %who'; s"), entry("y = 1\nz = 2; %format text\ny + z")});
  EXPECT_EQ(t.err, "");
  EXPECT_EQ(t.out, "8\n3\n'a; %who'\n3\n");
  // What stands in a block on its line stays there, and so does what cannot be a command.
  for (const char* text : {"if True: x = 1; %who", "x = (1; %who)", "for i in [1]: i; r = %who"}) {
    t = type({entry(text)});
    EXPECT_NE(t.err.find("error: "), std::string::npos) << text;
    // Refused as a mistake of the text and not as one of the shell.
    EXPECT_EQ(t.err.find("internal"), std::string::npos) << text << t.err;
  }
}

TEST(Prompt, CommandsThatTakeNothingSaySo) {
  Terminal t = type({line("%who all"), line("%env HOME")});
  EXPECT_EQ(t.out, "");
  EXPECT_NE(t.err.find("%who takes nothing behind it, got 'all'"), std::string::npos) << t.err;
  EXPECT_NE(t.err.find("help: os.environ has the variables"), std::string::npos) << t.err;
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
  Terminal t = type({entry("x = 7\n%format csv\ndef f():\n    return (x\n% 4)\n\n%help time\nprint(f())\nabs?\nboom")});
  // In the order of the text.
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
  // The whole entry is refused before its first line runs.
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
  // A source must not colour the terminal by what it quotes.
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
  // A style for each byte.
  EXPECT_EQ(styles("for i in x: # note"), "kkk...kk....cccccc");
  EXPECT_EQ(styles("s = 'open\nx = 1"), "....sssss.....n");
  // An open text ends at its line, an open long one at the end.
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
  // The interrupt came while nothing ran, so there was nothing to stop.
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
  // As a pipe ends: the block is complete.
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
  // A blank line counts.
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
    // A row without a command would crash when its name is typed.
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
  // The default stands behind the meaning.
  EXPECT_NE(t.out.find("budget=SECONDS  seconds for each cache state (default: 5)\n"), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("example:\n  %bench softmax(x, -1) "), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("\"command\":\"budget=SECONDS\",\"default\":\"5\""), std::string::npos) << t.out;
}

TEST(Magics, HelpOfWhatShowsAKernelHasWhatOverridesItsLaunch) {
  for (const std::string name : {"static", "ir", "ptx", "occupancy"}) {
    const Terminal t = type({line("%help " + name)});
    for (const char* option : {"  NAME=VALUE ", "  num_warps=N ", "  signature=TYPES "})
      // Of any kernel's own parameters, of the launch, and of the types.
      EXPECT_NE(t.out.find(option), std::string::npos) << t.out;
  }
  EXPECT_EQ(type({line("%help ast")}).out.find("NAME=VALUE"), std::string::npos) << "a tree has no values";
}

TEST(Magics, CommandsOfIPythonHaveANearestWay) {
  auto help = [](const std::string& command) { return type({line(command)}).err; };
  EXPECT_NE(help("%timeit x").find("%bench"), std::string::npos);
  EXPECT_NE(help("%lsmagic").find("%help"), std::string::npos);
  EXPECT_NE(help("%pip install x").find("!pip"), std::string::npos);
  EXPECT_NE(help("%ls").find("!ls"), std::string::npos);
  EXPECT_NE(help("%pwd").find("!pwd"), std::string::npos);
  EXPECT_NE(help("%%bench").find("%bench"), std::string::npos);
}

TEST(Magics, TablesAndPlotsFitTheWidth) {
  const std::string setup = "import torch\na = torch.zeros(300, 300)\nb = a.clone()\nb[7, 100:290] = 1\nr = %who\n";
  for (const int width : {50, 60, 80}) {
    Terminal t = type({entry(setup), line("%set width " + std::to_string(width)), line("%diff a, b"),
                       line("%diff a, b tile=4x4"), line("%sweep sum(range(n)) n=[100, 1000, 10000] budget=0.05"),
                       line("d = %diff a, b"), line("d.errors.plot('elements')")});
    EXPECT_EQ(t.err, "");
    // Every line that was printed, whichever command printed it.
    for (size_t at = 0; at < t.out.size();) {
      const size_t end = t.out.find('\n', at);
      const std::string_view text = std::string_view(t.out).substr(at, end - at);
      EXPECT_LE(report::display_width(text), width) << text;
      at = end + 1;
    }
  }
}

TEST(Magics, EnvKeepsItsMeaningsInEightyColumns) {
  Terminal t = type({line("%set width 80"), line("%env")});
  EXPECT_NE(t.out.find("meaning"), std::string::npos) << t.out;
  EXPECT_EQ(t.out.find("left out"), std::string::npos) << t.out;
}

TEST(Magics, BudgetsTellTheirDefault) {
  for (const Magic& m : magics())
    for (const MagicOption& o : magic_options(m.name))
      if (o.legal == Legal::kSeconds) {
        EXPECT_FALSE(o.otherwise.empty()) << m.name << " " << o.name;
      }
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
  // A question mark inside of a command's line is its own.
  EXPECT_EQ(about("%bench x?"), "none");
  // Only a name can be asked about: a call would run it.
  EXPECT_EQ(about("help(f(1))"), "none");
  EXPECT_EQ(about("x = 'why?'"), "none");
  EXPECT_EQ(about("x  # why?"), "none");
}

TEST(Questions, AreAnswered) {
  auto answer = [](const std::string& setup, const std::string& question) {
    Terminal t = type({entry(setup), line(question)});
    EXPECT_EQ(t.err, "") << question;
    // A question must not change what it asks about, nor complain.
    return t.out;
  };
  EXPECT_EQ(answer("def f(a, b=3):\n    '''Adds.\n\n    Both of them.\n    '''\n    return a + b\n", "f?"),
            // The indentation of the docstring is its own, not the function's.
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
  // What is shown of a lazy tensor is known without its elements.
  EXPECT_EQ(pending.find("mean"), std::string::npos) << "it computes nothing: " << pending;
}

TEST(Questions, FormsAreShownAsTheyAreCalled) {
  auto first_line = [](const std::string& setup, const std::string& question) {
    Terminal t = type({entry(setup), line(question)});
    EXPECT_EQ(t.err, "") << question;
    return t.out.substr(0, t.out.find('\n'));
  };
  EXPECT_EQ(first_line("def kw(a, *, b): pass", "kw?"), "kw(a, *, b)");
  EXPECT_EQ(first_line("def kw(a, /, b, *c, d=1, **e): pass", "kw?"), "kw(a, /, b, *c, d=1, **e)");
  EXPECT_EQ(first_line("def kw(a, b=2, /): pass", "kw?"), "kw(a, b=2, /)");
  EXPECT_EQ(first_line("class C:\n    def m(self, a, *, b): pass\nc = C()\n", "c.m?"), "m(a, *, b)");
  EXPECT_EQ(first_line("@triton.jit\ndef k(x, n=4, MODE: tl.constexpr = \"fast\"): pass\n", "k?"),
            "k(x, n=4, MODE: tl.constexpr = \"fast\")");
  EXPECT_EQ(first_line("x = 1", "tl.max?"),
            "tl.max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False)");
}

TEST(Questions, SourcesOfClassesAndMethods) {
  const std::string text =
      "def same(c): return c\n@same\nclass Foo:\n    '''A pair.'''\n    x = (1,\n         2)\n    def meth(self):\n"
      "        return '''a\nb'''\n";
  Terminal t = type({entry(text + "foo = Foo()\n"), line("Foo??"), line("foo.meth??"), line("foo??"), line("foo?")});
  EXPECT_EQ(t.err, "");
  const std::string klass = text.substr(text.find('@')), method = text.substr(text.find("def meth"));
  // The decorator belongs to the class's source; an object's is that of its class.
  EXPECT_TRUE(t.out.starts_with(klass + method + klass + "<")) << t.out;
  EXPECT_NE(t.out.find("\n  A pair.\nFoo\n"), std::string::npos) << t.out;
}

TEST(Questions, WhatHasNoSourceIsDescribed) {
  for (const char* name : {"x", "abs", "torch.softmax", "tl.load", "x.real"}) {
    // The same answer with one question mark and with two.
    const std::string about(name);
    EXPECT_EQ(type({line("x = 3"), line(about + "??")}).out, type({line("x = 3"), line(about + "?")}).out);
  }
  EXPECT_NE(type({line("nothing??")}).err.find("nothing"), std::string::npos);
  EXPECT_NE(type({line("bench??")}).out.find("%bench EXPRESSION"), std::string::npos);
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
  // What was measured of a kernel is shown where one asks about it.
  EXPECT_NE(t.out.find("\nlast measured: "), std::string::npos) << t.out;
  EXPECT_NE(t.out.find("\n@triton.jit\ndef k(x, n"), std::string::npos) << t.out;
}

TEST(Questions, AboutKeys) {
  Terminal t = type({line("d = {'a?': 12345}"), line("d['a?']?"), line("?d[\"a?\"]"), line("'what?'")});
  EXPECT_EQ(t.err, "");
  // The key has a question mark of its own, and a text alone is a value.
  EXPECT_EQ(t.out, "12345\nint\n12345\nint\n'what?'\n");
}

TEST(Pager, WithoutAShellIsLessAlone) {
  for (const char* command : {"less", " less -FRX", "/usr/bin/less -R"}) EXPECT_TRUE(is_less_alone(command)) << command;
  // Anything that a shell would have to read is none.
  for (const char* command : {"more", "less; sh", "less $(sh)", "lessx", "LESSSECURE=0 less", "./less", "vim -"})
    EXPECT_FALSE(is_less_alone(command)) << command;
}

// docs/prompt.md has the table that the keys are dispatched by.
TEST(Keys, AreDocumentedAsTheyAre) {
  std::string table;
  for (const editor::Binding& b : editor::bindings()) {
    std::string keys(b.keys);
    // Two blanks separate the keys of one row.
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
