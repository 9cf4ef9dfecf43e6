// %run, %history, %cd, !, %set, %save, %load, %stats, %diff and %doctor.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "repl/commands/doctor.h"
#include "repl/magics/settings.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/process.h"
#include "tests/unit/profiler/cupti/cupti_or_skip.h"
#include "tests/unit/repl/run_prompt.h"

namespace kiln::repl {
namespace {

class Lab : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = folder_.path + "/" + name;
    // A test that cannot write its file would test nothing.
    KILN_ASSERT(write_file_atomic(path, content).ok(), "{}", path);
    return path;
  }
  bool has(const std::string& text, const std::string& part) const { return text.find(part) != std::string::npos; }

  ScratchFolder folder_;
};

TEST_F(Lab, DiffShowsVariantsOfAnExpression) {
  const std::string x = "import torch\nx = torch.ones(64, 64)\n";
  Said s = run(x + "%diff torch.softmax(x * 2, 1) variant=fused, variant=unfused\n");
  EXPECT_TRUE(has(s.out, "lines differ")) << s.out << s.err;
  EXPECT_TRUE(has(s.out, "(unfused)")) << s.out;
  EXPECT_TRUE(has(run(x + "%diff x * 2 variant=fused, x * 2\n").out, "the source of both is the same"));
  EXPECT_TRUE(has(run(x + "%diff x * 2 variant=nope, x * 2\n").err, "there is no variant 'nope'"));
  EXPECT_TRUE(has(run(x + "%diff 3 variant=fused, x * 2\n").err, "'3' gives no tensor"));
  // One variant alone has nothing to differ from.
  EXPECT_TRUE(has(run(x + "%diff x * 2 variant=fused\n").err, "compares two variants, got 1"));
}

TEST_F(Lab, CommandsThatShowCodeNameTheTargetsCommand) {
  const std::string kernel = "import triton\n@triton.jit\ndef k(x):\n    pass\n\n";
  for (std::string_view command : {"%ptx k target=sm_80\n", "%layout k x=1 target=sm_80\n"}) {
    Said s = run(kernel + std::string(command));
    EXPECT_TRUE(has(s.err, "the kernel k has no parameter 'target'")) << s.out << s.err;
    EXPECT_TRUE(has(s.err, "%target NAME chooses the target")) << s.err;
  }
}

TEST_F(Lab, LinesOfACommandAreAValue) {
  Said s =
      // `x = 1 != 2` is a comparison: no command begins with !=.
      run("r = !printf 'a\\nb c\\n\\nd'\nprint(r, _exit_code)\nr = !exit 3\nprint(r, _exit_code)\nx = 1 != 2\n"
          "print(x)\n");
  EXPECT_EQ(s.out, "['a', 'b c', '', 'd'] 0\n[] 3\nTrue\n") << s.err;
  s = run("r = !kill -9 $$\n");
  EXPECT_NE(s.err.find("signal 9"), std::string::npos) << s.err;
}

TEST_F(Lab, RunSharesTheVariablesAndGivesArguments) {
  const std::string path =
      // A blank in the name, so that quoting is tested.
      file("s p.py",
           "import sys\nprint(sys.argv[1:], n)\nm = n + 1\n%format text\nif __name__ == '__main__': print('main')\n");
  Said s = run("n = 4\nimport sys\n%run '" + path + "' a 'b c' --x=1\nprint(m, len(sys.argv))\n");
  // Afterwards sys.argv is the session's again.
  EXPECT_EQ(s.out, "['a', 'b c', '--x=1'] 4\nmain\n5 0\n") << s.err;
}

TEST_F(Lab, RunKeepsWhatWasDoneBeforeAnErrorAndShowsItsPlace) {
  const std::string path = file("bad.py", "kept = 1\ndef f():\n    return 1 / 0\nf()\n");
  Said s = run("%run " + path + "\n");
  EXPECT_EQ(s.code, 1);
  EXPECT_TRUE(has(s.err, path + ":3:")) << s.err;
  EXPECT_TRUE(has(s.err, path + ":4")) << s.err;
  // At the prompt the variables stay.
  Options options;
  options.device = "cpu";
  std::string out;
  Shell shell(options, [&](std::string_view text) { out += text; });
  EXPECT_FALSE(shell.entry("%run " + path).ok());
  EXPECT_TRUE(shell.entry("kept").ok());
  EXPECT_EQ(out, "1\n");
}

TEST_F(Lab, RunMistakes) {
  EXPECT_TRUE(has(run("%run /nowhere/x.py").err, "cannot open '/nowhere/x.py': No such file or directory"));
  EXPECT_TRUE(has(run("%run /tmp").err, "cannot read '/tmp': Is a directory"));
  EXPECT_TRUE(has(run("%run").err, "%run needs FILE"));
  EXPECT_TRUE(has(run("%run 'x").err, "a quote is not closed"));
  const std::string self = folder_.path + "/self.py";
  file("self.py", "%run " + self + "\n");
  // Deeper is a circle, as here.
  EXPECT_TRUE(has(run("%run " + self).err, "files that run each other 16 deep"));
  EXPECT_TRUE(has(run("%run " + file("exit.py", "import sys\nsys.exit(3)")).err, "ended with exit code 3"));
  // exit() ends the file and not what runs it.
  EXPECT_EQ(run("%run " + file("fine.py", "exit()") + "\nprint('on')").out, "on\n");
}

TEST_F(Lab, FoldersAreLeftAndFoundAgain) {
  const std::string before = std::filesystem::current_path();
  const std::string inner = folder_.path + "/a b";
  std::filesystem::create_directory(inner);
  Said s = run("%cd '" + inner + "'\n%cd -\n%cd -\n%cd -\n");
  // %cd - goes back and forth between two folders.
  EXPECT_EQ(s.out, inner + "\n" + before + "\n" + inner + "\n" + before + "\n") << s.err;
  EXPECT_TRUE(has(run("%cd /no/where").err, "/no/where: No such file or directory"));
  EXPECT_TRUE(has(run("%cd " + file("f", "")).err, "Not a directory"));
  EXPECT_TRUE(has(run("%cd -").err, "no folder was left yet"));
  EXPECT_TRUE(has(run("%cd a b").err, "one folder"));
  EXPECT_EQ(std::filesystem::current_path(), before);
}

TEST_F(Lab, ShellCommands) {
  const std::string path = folder_.path + "/out";
  EXPECT_EQ(run("!echo \"$((6 * 7))\" > " + path + "\n").code, 0);
  EXPECT_EQ(*read_file(path), "42\n");
  // A change of os.environ reaches the commands.
  EXPECT_EQ(run("import os\nos.environ['KILN_TEST_X'] = 'seen'\n%sh printenv KILN_TEST_X > " + path + "\n").code, 0);
  EXPECT_EQ(*read_file(path), "seen\n");
  Said failed = run("!exit 3\nprint('not reached')\n");
  EXPECT_TRUE(has(failed.err, "the command ended with exit code 3"));
  EXPECT_EQ(failed.out, "");
  EXPECT_TRUE(has(run("!kill -TERM $$").err, "ended by signal 15"));
  EXPECT_TRUE(has(run("!").err, "%sh needs COMMAND"));
  // A line that begins with != inside of a bracket goes on with the expression.
  EXPECT_EQ(run("x = (3\n!= 4)\nprint(x)\n").out, "True\n");
  Options options;
  options.no_shell = true;
  Shell shell(options, [](std::string_view) {});
  EXPECT_EQ(shell.entry("!echo x").error().message, "shell commands are off: Kiln was started with --no-shell");
}

TEST_F(Lab, HistoryOfThisSession) {
  const auto before = environment("XDG_STATE_HOME");
  // Both: the runtime reads a copy of the environment, the shell's history C's own.
  set_environment("XDG_STATE_HOME", folder_.path);
  setenv("XDG_STATE_HOME", folder_.path.c_str(), 1);
  ASSERT_TRUE(make_directories(folder_.path + "/kiln").ok());
  // y = 2 stands in both and is told once.
  file("kiln/prompt_history", "#1\n old = 'find'\n#2\n y = 2\n");
  Options options;
  options.device = "cpu";
  std::string out;
  Shell shell(options, [&](std::string_view text) { out += text; });
  shell.context().history = {"x = 1", "def f():\n    return 'find'", "y = 2"};
  auto said = [&](const std::string& line) {
    out.clear();
    Status s = run_magic(shell.context(), line);
    return s.ok() ? out : s.error().message;
  };
  EXPECT_EQ(said("%history"), "[1] x = 1\n[2] def f():\n...     return 'find'\n[3] y = 2\n");
  EXPECT_EQ(said("%history 1"), "[3] y = 2\n");
  EXPECT_EQ(said("%history -g find"), "    old = 'find'\n[2] def f():\n...     return 'find'\n");
  EXPECT_EQ(said("%history -g nothing"), "no entry contains 'nothing'\n");
  EXPECT_EQ(said("%history x"), "%history takes a number of entries and -g TEXT, not 'x'");
  EXPECT_EQ(said("%history -g"), "-g needs a text to look for");
  set_environment("XDG_STATE_HOME", before);
  unsetenv("XDG_STATE_HOME");
}

// --- settings --------------------------------------------------------------------------------------------------------

class SettingsTest : public Lab {
 protected:
  SettingsTest() : before_(environment("XDG_CONFIG_HOME")) { set_environment("XDG_CONFIG_HOME", folder_.path); }
  ~SettingsTest() override { set_environment("XDG_CONFIG_HOME", before_); }
  std::string config() const { return folder_.path + "/kiln/config.toml"; }
  std::optional<std::string> before_;
};

TEST_F(SettingsTest, AreTypedListedAndChanged) {
  EXPECT_EQ(
      run("%set format csv\n%set target\n%set target sm_80\n%set target\n").out,
      "target = \"\": what kernels are compiled for when their code is shown; \"\": as launched (a name of %target)\n"
      "target = \"sm_80\": what kernels are compiled for when their code is shown; \"\": as launched (a name of "
      "%target)\n");
  Said all =
      run("r = %set\nprint(r.setting.to_list(), r[0].value)\n%set format=markdown\nr = %set\nprint(r[0].value)\n");
  // The order of the table, in which they are listed.
  EXPECT_EQ(all.out, "['format', 'target', 'color', 'width', 'pager', 'budget', 'check'] text\nmarkdown\n") << all.err;
  EXPECT_TRUE(has(run("%set fromat csv").err, "did you mean 'format'?"));
  EXPECT_TRUE(has(run("%set format xml").err, "format is text, csv, json or markdown, not 'xml'"));
  EXPECT_TRUE(has(run("%set budget soon").err, "a budget is a time like 10s or 500ms, not 'soon'"));
  EXPECT_TRUE(has(run("x = randn(8)\n%bench x+1 budget=inf").err, "a budget is a time like 10s or 500ms, not 'inf'"));
  EXPECT_TRUE(has(run("%set target sm_1").err, "unknown target 'sm_1'"));
  EXPECT_TRUE(has(run("%set width -3").err, "width is 0 or a number of columns from 20 to 10000, not '-3'"));
  // With 20 columns nothing is padded to more.
  EXPECT_EQ(run("%set width 20\nx = 'a b c d e f g h i j k'\n%who\n").out.find(std::string(30, ' ')),
            std::string::npos);
  EXPECT_TRUE(has(run("%set check maybe").err, "check is on or off, not 'maybe'"));
  EXPECT_TRUE(has(run("%set format text csv").err, "takes one value, got also 'csv'"));
  // Without --save nothing is written.
  EXPECT_FALSE(std::filesystem::exists(config()));
}

TEST_F(SettingsTest, CheckBoundsChecksEveryLaunch) {
  const std::string kernel =
      "import torch, triton\nimport triton.language as tl\n@triton.jit\ndef k(o, n, B: tl.constexpr):\n"
      "    tl.store(o + tl.arange(0, B), 1.0)\no = torch.zeros(3)\n%set check on\nk[(1,)](o, 3, B=4)\n";
  // One element of four lies outside of the tensor.
  EXPECT_TRUE(has(run(kernel).err, "writes element 3 of 'o'")) << run(kernel).err;
}

TEST_F(SettingsTest, AreKeptInAFileWhoseOtherLinesStay) {
  file("x", "");
  ASSERT_TRUE(make_directories(folder_.path + "/kiln").ok());
  ASSERT_TRUE(write_file_atomic(config(), "# mine\ncolor = \"auto\"\nnonsense = 3\n").ok());
  EXPECT_EQ(run("%set color never\n%set budget 2s --save\n").out, "settings are kept in " + config() + "\n");
  // What Kiln does not know stays where it is.
  EXPECT_EQ(*read_file(config()), "# mine\ncolor = \"never\"\nnonsense = 3\nbudget = \"2s\"\n");
  ASSERT_EQ(chmod(folder_.path.c_str(), 0500), 0);
  set_environment("XDG_CONFIG_HOME", folder_.path + "/none");
  // Root may write anywhere.
  EXPECT_TRUE(geteuid() == 0 || has(run("%set --save").err, "cannot create folder"));
  ASSERT_EQ(chmod(folder_.path.c_str(), 0700), 0);
}

TEST_F(SettingsTest, BadLinesAreToldByTheirNumberAndIgnored) {
  Options options;
  options.device = "cpu";
  Shell shell(options, [](std::string_view) {});
  const std::string path = file("config.toml",
                                "# settings\n\nformat = 'csv' # of tables\nfarmat = \"csv\"\n[kiln]\nbudget = \n"
                                "target = \"sm_80\ncolor = \"never\" x\ncheck = true\n");
  std::vector<std::string> said;
  // Without the path, which differs in each run.
  for (const Diagnostic& d : read_config(shell.context(), path)) said.push_back(d.message.substr(path.size()));
  const std::string unknown =
      ":4: there is no setting 'farmat'; there are format, target, color, width, pager, budget, check; the line is "
      "ignored";
  EXPECT_EQ(said, (std::vector<std::string>{unknown, ":5: expected NAME = VALUE, got '[kiln]'; the line is ignored",
                                            ":6: budget has no value; the line is ignored",
                                            ":7: a string does not end: \"sm_80; the line is ignored",
                                            // Lines that are right count, whatever stands around them.
                                            ":8: 'x' follows the value; the line is ignored"}));
  EXPECT_EQ(shell.context().format, report::Format::kCsv);
  EXPECT_TRUE(shell.session().checks_accesses());
  EXPECT_TRUE(read_config(shell.context(), folder_.path + "/none").empty());
  EXPECT_EQ(read_config(shell.context(), folder_.path).size(), 1u);  // a folder
}

// --- sessions --------------------------------------------------------------------------------------------------------

TEST_F(Lab, SessionsComeBack) {
  const std::string path = folder_.path + "/s.kiln";
  Said saved =
      run("import torch, triton\nimport triton.language as tl\nfrom triton import cdiv\n"
          "n, f, s, t = 3, 2.5, 'é\\n\"', (1, None, True)\nwide = 2 ** 100\ninf = [float('inf'), -float('inf')]\n"
          "d = {'w': torch.arange(4), 2: [torch.bfloat16, {1, 2}, range(1, 9, 2)], (1, 2): torch.ones(3).shape}\n"
          "x = torch.ones(2, 3, dtype=torch.bfloat16)\nlazy = torch.ones(100, 100) * 2\n"
          "def g(a, b=n):\n    return a + b\nh = lambda a: g(a) * 2\n"
          "@triton.jit\ndef k(o, B: tl.constexpr):\n    tl.store(o + tl.arange(0, B), 7.0)\n"
          "class C:\n    pass\nc = C()\nloop = []\nloop.append(loop)\ndef outer():\n    v = 1\n    return lambda: v\n"
          "closure = outer()\ng2 = g\nit = iter([1])\n%save " +
          path + "\n");
  // Counted by kind: another name of a function is no definition of its own.
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_TRUE(has(saved.out, path + ": saved 10 values, 3 tensors, 5 definitions, 4 imports\n")) << saved.out;
  for (const char* name : {"loop  ", "closure  ", "g2  ", "it  "})
    EXPECT_TRUE(has(saved.out, std::string("\n") + name)) << name << "\n" << saved.out;
  EXPECT_TRUE(has(saved.out, "it is another name of 'g'")) << saved.out;
  Said loaded =
      run("%load " + path.substr(0, path.size() - 5) +
          "\nprint(n, f, repr(s), t, wide, inf, g(1), h(1), cdiv(7, 2))\nprint(d)\nprint(x.dtype, x.tolist(), "
          "lazy.sum().item())\no = torch.zeros(4)\nk[(1,)](o, B=4)\nprint(o.tolist())\n");
  // Behind the line that says what was loaded.
  EXPECT_EQ(loaded.out.substr(loaded.out.find('\n') + 1),
            "3 2.5 'é\\n\"' (1, None, True) 1267650600228229401496703205376 [inf, -inf] 4 8 4\n"
            "{'w': tensor([0, 1, 2, 3]), 2: [torch.bfloat16, {1, 2}, range(1, 9, 2)], (1, 2): torch.Size([3])}\n"
            "torch.bfloat16 [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]] 20000.0\n[7.0, 7.0, 7.0, 7.0]\n")
      << loaded.err << loaded.out;
}

TEST_F(Lab, SessionsKeepClassesAndTheirInstances) {
  const std::string path = folder_.path + "/c.kiln";
  const Said saved = run(
      "from collections import OrderedDict, namedtuple, defaultdict\nfrom dataclasses import dataclass\n"
      "from math import sqrt\nfrom enum import Enum\nimport torch\n"
      "@dataclass\nclass Config:\n    width: int = 4\n    layers: list = None\n"
      "class Base:\n    kind = 'base'\n    def __init__(self, w): self.w = w\n    def twice(self):\n        return "
      "self.w * 2\n"
      "class Mine(Base):\n    def twice(self): return super().twice() + 1\n"
      "class Color(Enum):\n    RED = 1\n    BLUE = 2\n"
      "config = Config(8, [1, {'a': (2, 3)}])\nbase = Base(torch.ones(2))\nall = {'m': Mine(5), 'c': [Color.BLUE]}\n"
      "od = OrderedDict([('b', 1), ('a', 2)])\nP = namedtuple('P', 'x y')\np = P(1, 2)\ncounts = defaultdict(int)\n"
      "counts['x'] += 3\ndef outer():\n    class Inner: pass\n    return Inner\nInner = outer()\ninner = "
      "Inner()\n%save " +
      path + "\n");
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_TRUE(has(saved.out, "\nInner ")) << saved.out;
  // The class can only be made again by running the function.
  EXPECT_TRUE(has(saved.out, "it was defined inside of a function or a class")) << saved.out;
  EXPECT_FALSE(has(saved.out, "\nP ")) << saved.out;
  const Said loaded = run("%load " + path +
                          "\nprint(config, config == Config(8, [1, {'a': (2, 3)}]), base.twice().tolist(), base.kind)\n"
                          "print(all['m'].twice(), all['c'][0] is Color.BLUE, sqrt(4), od, type(od) is OrderedDict)\n"
                          "od.move_to_end('b')\nprint(od, counts['x'], counts['y'])\n");
  // Objects are equal and identical where they were.
  EXPECT_TRUE(has(loaded.out,
                  "Config(width=8, layers=[1, {'a': (2, 3)}]) True [2.0, 2.0] base\n"
                  "11 True 2.0 OrderedDict([('b', 1), ('a', 2)]) True\nOrderedDict([('a', 2), ('b', 1)]) 3 0\n"))
      << loaded.out << loaded.err;
}

TEST_F(Lab, SessionsKeepNamedTuplesSlotsAndEnumerations) {
  const std::string path = folder_.path + "/n.kiln";
  const Said saved = run(
      "from collections import namedtuple\nfrom typing import NamedTuple\nfrom enum import Flag, IntEnum, auto\n"
      "from dataclasses import dataclass, field\nimport functools\n"
      "P = namedtuple('P', 'x y', defaults=[5])\nAlias = P\nShape = namedtuple('Other', ['class', 'n'], rename=True)\n"
      "p, ps, shape = P(1, 2), {'k': [P(3), (P(4, P(5)),)]}, Shape(1, 2)\n"
      "class N(NamedTuple):\n    a: int\n    b: float = 2.5\n    def total(self): return self.a + self.b\nn = N(1)\n"
      "class Pair(namedtuple('Pair', 'l r')):\n    __slots__ = ()\n    def both(self): return self.l + self.r\n"
      "pair = Pair(1, torch.ones(2))\n"
      "class Slotted:\n    __slots__ = ('a', 'b')\n    def __init__(self, a): self.a = a\nslotted = Slotted(7)\n"
      "class Open(Slotted): pass\nwide = Open(8)\nwide.z = 5\n"
      "class Perm(Flag):\n    R = auto()\n    W = auto()\nperm = Perm.R | Perm.W\n"
      "class Num(IntEnum):\n    ONE = 1\nnum = [Num.ONE]\n"
      "@dataclass(frozen=True, order=True)\nclass F:\n    x: int\n    y: list = field(default_factory=list)\nf = F(1)\n"
      "@dataclass(slots=True)\nclass D:\n    x: int\nd = D(P(1))\n"
      "class Outer:\n    class Inner: pass\n    count = 0\n    seen = []\n    def m(self): pass\n"
      "inner = Outer.Inner()\nOuter.count += 3\nOuter.seen.append(inner)\nOuter.made = 4\nOuter.it = iter([])\n"
      "class MyInt(int): pass\nclass MyStr(str): pass\nclass MyTuple(tuple): pass\n"
      "mine = [MyInt(4), MyStr('a'), MyTuple((1, 2)), b'\\x00a', functools.partial(max, 3)]\n"
      "def g(): pass\ng.calls = 2\n%save " +
      path + "\n");
  EXPECT_EQ(saved.code, 0) << saved.err;
  // What stays out is named, each in a line.
  const std::string left = saved.out.substr(saved.out.find("left out"));
  // Three values in all.
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), 3) << left;
  EXPECT_TRUE(has(left, "\nOuter.seen  classes and instances in attributes are not saved\n")) << left;
  EXPECT_TRUE(has(left, "\nOuter.it    values of type 'iterator' are not saved\n")) << left;
  const Said loaded =
      run("%load " + path +
          "\nprint(p, ps, shape, P(9), Alias is P, type(p) is P, P)\nprint(n, n.total(), pair, pair.both().tolist())\n"
          "print(slotted.a, hasattr(slotted, 'b'), wide.a, wide.z)\n"
          "print(perm is Perm.R | Perm.W, num[0] is Num.ONE, f, f < F(2), d)\n"
          "print(type(inner) is Outer.Inner, Outer.count, Outer.made)\n"
          "print(mine[:4], [type(m).__name__ for m in mine[:4]], mine[4](1), g.calls)\n"
          "try: slotted.c = 1\nexcept AttributeError: print('closed')\n");
  // What was shared is shared again, and what was closed stays closed.
  EXPECT_EQ(loaded.out.substr(loaded.out.find('\n') + 1),
            "P(x=1, y=2) {'k': [P(x=3, y=5), (P(x=4, y=P(x=5, y=5)),)]} Other(_0=1, n=2) P(x=9, y=5) True True "
            "<class '__main__.P'>\n"
            "N(a=1, b=2.5) 3.5 Pair(l=1, r=tensor([1., 1.])) [2.0, 2.0]\n"
            "7 False 8 5\nTrue True F(x=1, y=[]) True D(x=P(x=1, y=5))\nTrue 3 4\n"
            "[4, 'a', (1, 2), b'\\x00a'] ['MyInt', 'MyStr', 'MyTuple', 'bytes'] 3 2\nclosed\n")
      << loaded.err << loaded.out;
}

TEST_F(Lab, WhatDoesNotFitStaysOutOfASession) {
  const std::string path = folder_.path + "/large.kiln";
  // Ten million numbers are more than a session takes.
  const Said saved = run("many = list(range(10_000_000))\nx = 3\n%save " + path + "\n");
  EXPECT_TRUE(has(saved.out, "\nmany ")) << saved.out << saved.err;
  EXPECT_TRUE(has(run("%load " + path + "\nprint('x', x)\n").out, "\nx 3\n"));
}

TEST_F(Lab, NamesOfFilesDoNotReachTheTerminalAsTheyAre) {
  const std::string path = folder_.path + "/a\x1b[2Jb";
  const std::string text = "x = torch.ones(8)\n%save " + path + "\n%load " + path + "\n%source x + 1 --script '" +
                           path + ".py'\n%plan x + 1 --svg '" + path + ".svg'\n%save " + path + "/none\n";
  Said s = run(text);
  EXPECT_TRUE(has(s.out, "/a\\x1b[2Jb.kiln: saved 1 value")) << s.out << s.err;
  EXPECT_TRUE(has(s.out, "/a\\x1b[2Jb.kiln: loaded")) << s.out;
  // No byte of the name may command the terminal.
  EXPECT_FALSE(has(s.out, "\x1b")) << s.out;
  EXPECT_FALSE(has(s.err, "\x1b")) << s.err;
}

TEST_F(Lab, SessionsKeepTables) {
  const std::string path = folder_.path + "/t.kiln";
  Said saved =
      run("import torch\nr = %stats torch.arange(10).float()\nb = %compare 1 + 1, 2 + 2 pairs=12 budget=1\ne = %env\n"
          "print(r[0].mean, r.quantiles[0].max, b[0].verdict, len(b[0].samples) > 0, e.to_markdown() != '')\n%save " +
          path);
  EXPECT_EQ(saved.code, 0) << saved.err;
  Said loaded = run("%load " + path +
                    "\nprint(r[0].mean, r.quantiles[0].max, b[0].verdict, len(b[0].samples) > 0, "
                    "e.to_markdown() != '')\nf = %env\nprint(e.to_json() == f.to_json(), r.title)\n");
  // The same line before and after.
  const std::string line = saved.out.substr(0, saved.out.find('\n') + 1);
  EXPECT_TRUE(has(line, "4.5 9.0 ")) << line;
  EXPECT_TRUE(has(loaded.out, line)) << line << loaded.out << loaded.err;
  EXPECT_TRUE(has(loaded.out, "True f32[10] cpu\n")) << loaded.out;
}

TEST_F(Lab, SessionMistakes) {
  const std::string tensors = folder_.path + "/w.safetensors";
  Said s = run("import torch\ntorch.save({'w': torch.ones(2)}, '" + tensors + "')\n%load " + tensors + "\n");
  EXPECT_TRUE(has(s.err, "it holds tensors, but no session")) << s.err;
  EXPECT_TRUE(has(run("x = 1\n%save " + tensors).err, "the file is there and is no session"));
  EXPECT_TRUE(has(run("%load " + folder_.path + "/none").err, "none.kiln: No such file or directory"));
  EXPECT_TRUE(has(run("%save " + folder_.path + "/x.py").err, "ends with .kiln or .safetensors, not '.py'"));
  EXPECT_TRUE(has(run("%save /no/where/x").err, "cannot write '/no/where/x.kiln'"));
  EXPECT_TRUE(has(run("%load " + file("bad.kiln", "no session at all")).err, "it is no .safetensors file"));
  // What a function needs at its definition may be missing by then; the rest is loaded.
  const std::string path = folder_.path + "/late.kiln";
  run("class C:\n    v = 1\ny = 5\ndef f(a=C.v):\n    return a\nC2 = C\ndel C\n%save " + path);
  Said late = run("%load " + path + "\nprint(y)\n");
  // The rest is there, with the function named as missing.
  EXPECT_TRUE(has(late.out, "\n5\n")) << late.out << late.err;
  EXPECT_TRUE(has(late.out, "f     ")) << late.out;
}

// --- tensors and kernels ---------------------------------------------------------------------------------------------

TEST_F(Lab, StatsCountAndSummarise) {
  Said s =
      run("import torch\nx = torch.arange(1001).float()\nx[3] = float('nan')\nx[4] = float('inf')\nr = %stats x\n"
          "c = r[0]\nprint(c.elements, c.nan, c['+inf'], c.zeros, r.title)\n"
          "v = r.quantiles[0]\nprint(v.min, v.max, round(v.median), round(v.q01))\n");
  // The quantiles leave NaN and infinity out.
  EXPECT_EQ(s.out, "1001 1 1 1 f32[1001] cpu\n0.0 1000.0 501 12\n") << s.err;
  EXPECT_TRUE(has(run("%stats torch.zeros(0)").err, ""));
  Said plain =
      run("import torch\n%stats torch.full((2, 2), float('nan'))\n%stats torch.zeros(0)\n%stats torch.ones(3)\n");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(has(run("%stats 3").err, "'3' is no tensor but 'int'"));
  EXPECT_TRUE(has(run("%stats nowhere").err, "nowhere"));
}

TEST_F(Lab, DiffOfTensorsFindsTheFirstBadElementAndItsTile) {
  Said s =
      run("import torch\na = torch.ones(64, 64)\nb = a.clone()\nb[40, 9] = 1.5\nb[41, 9] = float('nan')\nb[0, 0] = 1 + "
          "1e-7\n"
          "r = %diff b, a\nd = r[0]\nprint(d.elements, d.differ, d.bad, d.max_abs)\n%diff b, a tile=32\n");
  // Three differ, two of them by more than is tolerated.
  EXPECT_TRUE(has(s.out, "4096 3 2 0.5\n")) << s.out << s.err;
  EXPECT_TRUE(has(s.out, "first bad: [40, 9] is 1.5, expected 1")) << s.out;
  EXPECT_TRUE(has(s.out, "tile of 32 × 32, rows down, columns right\n       0 ··\n      32 ░·\n")) << s.out;
  EXPECT_TRUE(has(s.out, "NaN or inf")) << s.out;
  EXPECT_TRUE(has(run("import torch\na = torch.ones(3)\n%diff a a\n").out, "elements"));
  EXPECT_TRUE(has(run("import torch\n%diff torch.ones(3), torch.ones(4)").err, "the shapes differ: [3] and [4]"));
  EXPECT_TRUE(has(run("import torch\n%diff torch.ones(3)").err, "%diff compares two, got 1"));
  EXPECT_TRUE(has(run("import torch\n%diff torch.ones(3), torch.ones(3) tile=0").err, "tile= is a number from 1 on"));
  EXPECT_TRUE(has(run("import torch\nx=torch.ones(3)\n%diff x, 3").err, "'3' is no tensor"));
  // No element, and no dimension.
  EXPECT_EQ(
      run("import torch\n%diff torch.zeros(0, 3), torch.zeros(0, 3)\n%diff torch.zeros(()), torch.zeros(())").code, 0);
}

TEST_F(Lab, DiffOfKernelsShowsCodeSideBySide) {
  const std::string kernel =
      "import torch, triton\nimport triton.language as tl\n@triton.jit\ndef k(o, B: tl.constexpr):\n"
      "    i = tl.arange(0, B)\n    tl.store(o + i, i * 2.0)\n@triton.jit\ndef m(o, B: tl.constexpr):\n"
      "    i = tl.arange(0, B)\n    tl.store(o + i, i * 3.0)\no = torch.zeros(64)\nk[(1,)](o, B=64)\nm[(1,)](o, "
      "B=64)\n";
  Said ir = run(kernel + "%diff k m\n");
  EXPECT_TRUE(has(ir.out, "lines differ")) << ir.out << ir.err;
  EXPECT_TRUE(has(ir.out, " | ")) << ir.out;
  EXPECT_TRUE(has(run(kernel + "%diff k, k").out, "the ir of both is the same"));
  Said ptx = run(kernel +
                 "%diff k target=sm_80, target=sm_90a\n%diff k target=sm_80, num_warps=8 target=sm_80 --stage llvm\n");
  EXPECT_EQ(ptx.code, 0) << ptx.err;
  EXPECT_TRUE(has(ptx.out, ".target sm_80")) << ptx.out;
  EXPECT_TRUE(has(run(kernel + "%diff k target=sm_7, k").err, "unknown target 'sm_7'"));
  EXPECT_TRUE(has(run(kernel + "%diff k, nowhere").err, "nowhere"));
  EXPECT_TRUE(has(run(kernel + "%diff k").err, "%diff compares two kernels, got 1"));
}

TEST_F(Lab, EditOfAKernelChecksAndComparesIt) {
  const std::string source =
      "@triton.jit\ndef k(o, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(o + i, 2.0, mask=i < n)\n";
  const std::string program =
      "import torch, triton\nimport triton.language as tl\n" + source + "o = torch.zeros(3)\nk[(1,)](o, 3, B=4)\n";
  auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = source;
    text.replace(text.find(from), from.size(), to);
    return file("k.py", text);
  };
  Said s = run(program + "%edit k --file " + edited("2.0", "5.0") +
               " --budget 200ms\nprint(o.tolist())\nk_before[(1,)](o, 3, B=4)\nprint(o.tolist())\n");
  EXPECT_TRUE(has(s.out, "k is compiled from it; k_before is the one before")) << s.out << s.err;
  // The old one is still there under another name.
  EXPECT_TRUE(has(s.out, "[2.0, 2.0, 2.0]\n")) << s.out << s.err;
  // Results are compared where the tensor that it writes is named.
  const Said wrong = run(program + "%edit k out=o --budget 200ms --file " + edited("2.0", "5.0") + "\n");
  EXPECT_EQ(wrong.code, kExitMismatch) << wrong.out << wrong.err;
  EXPECT_TRUE(has(wrong.err, "1 of 2 contenders give a wrong result: k\n")) << wrong.err;
  EXPECT_TRUE(has(wrong.out, "\nk_before ")) << wrong.out;
  EXPECT_EQ(run(program + "%edit k out=o --budget 200ms --file " + edited("2.0", "1.0 + 1.0") + "\n").code, 0);
  EXPECT_TRUE(has(run("x = randn(99)\n%edit exp(x) out=x\n").err, "out= is for kernels; 'exp(x)' is none"));
  // What reaches outside, does not parse or is no kernel leaves the old one.
  Said outside = run(program + "%edit k --file " + edited(", mask=i < n", "") + "\n");
  EXPECT_TRUE(has(outside.err, "k stays as it was; change")) << outside.err;
  EXPECT_TRUE(
      has(run(program + "%edit k --file " + edited("tl.store(", "tl.store((") + "\n").err, "k stays as it was"));
  EXPECT_TRUE(has(run(program + "%edit k --file " + edited("def k", "def other") + "\n").err, "defines no kernel k"));
  // The same text compiles to nothing new.
  EXPECT_TRUE(has(run(program + "%edit k --file " + file("k.py", source) + "\n").out, "k is as it was"));
  EXPECT_TRUE(has(run(program + "%edit k --kernel k").err, "--kernel is for expressions"));
}

TEST_F(Lab, DoctorTellsWhatIsMissing) {
  SKIP_WHERE_CUPTI_ENDS_THE_PROCESS();
  Said s = run("r = %doctor\nprint(r.columns)\nprint('CPU' in r.what.to_list(), 'kernel cache' in r.what.to_list())\n");
  EXPECT_EQ(s.out, "['what', 'state', 'found', 'cost']\nTrue True\n") << s.err;
}

TEST(Doctor, CountersForRootAlone) {
  // Three states: for root alone, for all, not known.
  EXPECT_EQ(counters_for_root_alone("A: 1\nRmProfilingAdminOnly: 1\nB: 0\n"), true);
  EXPECT_EQ(counters_for_root_alone("RmProfilingAdminOnly: 0"), false);
  EXPECT_EQ(counters_for_root_alone("RmProfilingAdminOnly: "), std::nullopt);
  EXPECT_EQ(counters_for_root_alone(""), std::nullopt);
}

}  // namespace
}  // namespace kiln::repl
