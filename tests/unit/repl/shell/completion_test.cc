// Tab: what is offered for what stands before the cursor, and the line about a candidate.
#include "repl/shell/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "repl/shell/shell.h"
#include "support/files.h"
#include "support/process.h"

namespace kiln::repl {
namespace {

/// A shell on the CPU that has run a text.
struct Typing {
  explicit Typing(const std::string& setup = "") : shell(options(), [this](std::string_view s) { out += s; }) {
    const Status ran = shell.session().run(setup, "t");
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
  }
  static Options options() {
    Options o;
    o.device = "cpu";
    return o;
  }
  std::string out;
  Shell shell;
};

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

TEST(Completion, ModulesAndTheirNames) {
  Typing t;
  EXPECT_EQ(candidates(t.shell, "import tor"), "torch");
  EXPECT_EQ(candidates(t.shell, "import math, torch.nn.f"), "torch.nn.functional");
  EXPECT_EQ(candidates(t.shell, "import triton.langu"), "triton.language");
  EXPECT_EQ(candidates(t.shell, "import triton.language.extra.l"), "triton.language.extra.libdevice");
  EXPECT_EQ(candidates(t.shell, "import _ran"), "_random");
  EXPECT_EQ(candidates(t.shell, "from tor"), "torch");
  EXPECT_EQ(candidates(t.shell, "from torch "), "import ");
  EXPECT_EQ(candidates(t.shell, "from triton import la"), "language");
  EXPECT_EQ(candidates(t.shell, "from torch import zeros, ones_l"), "ones_like");
  EXPECT_EQ(candidates(t.shell, "from torch import (zeros,\n    ones_l"), "ones_like");
  EXPECT_EQ(candidates(t.shell, "x = 1; from math import sq"), "sqrt");
  EXPECT_EQ(candidates(t.shell, "from dataclasses import repl"), "replace");
  EXPECT_EQ(candidates(t.shell, "from triton.language import load_t"), "load_tensor_descriptor");
  EXPECT_GT(t.shell.complete("from torch import ").candidates.size(), 100u);
  EXPECT_EQ(candidates(t.shell, "from nothing import "), "");
}

TEST(Completion, ModulesBesideTheScriptAreNotRun) {
  ScratchFolder folder;
  ASSERT_TRUE(write_file_atomic(folder.path + "/helpers_of_mine.py",
                                "import math as m\nprint('ran')\nSIZE, REST = 4, 5\ndef first(): pass\n"
                                "if SIZE:\n    class Second: pass\n"
                                "try:\n    import none_such\nexcept ImportError:\n    missing = 1\n"
                                "else:\n    found = 2\nfinally:\n    done = 3\n")
                  .ok());
  Typing t("import sys\nsys.path.append('" + folder.path + "')\n");
  EXPECT_EQ(candidates(t.shell, "import helpers_of"), "helpers_of_mine");
  EXPECT_EQ(candidates(t.shell, "from helpers_of_mine import "),
            "REST SIZE Second done first found m missing none_such");
  EXPECT_EQ(t.out, "");
}

TEST(Completion, ArgumentsOfTheKernelLanguage) {
  Typing t;
  EXPECT_TRUE(candidates(t.shell, "tl.load(x, ").starts_with("mask= other= boundary_check= "));
  EXPECT_EQ(candidates(t.shell, "tl.load(x, mask=m, oth"), "other=");
  EXPECT_EQ(candidates(t.shell, "tl.load(x, mask=m, mas"), "");
  EXPECT_EQ(t.shell.complete("tl.load(x, oth").notes.at("other=").substr(0, 26), "tl.load(pointer, mask=None");
  EXPECT_EQ(candidates(t.shell, "tl.dot(x, y, input_precision="), "'tf32' 'tf32x3' 'ieee' 'bf16x3' 'bf16x6'");
  EXPECT_EQ(candidates(t.shell, "tl.dot(x, y, input_precision='i"), "ieee'");
  EXPECT_EQ(candidates(t.shell, "tl.store(x, y, cache_modifier='"), ".cg' .cs' .wb' .wt'");
  EXPECT_EQ(candidates(t.shell, "tl.atomic_add(x, y, sem='re"), "release' relaxed'");
  EXPECT_EQ(candidates(t.shell, "tl.load(x, volatile=Tr"), "True");
  EXPECT_EQ(candidates(t.shell, "tl.zeros((4,), dtype=tl.float8e4n"), "tl.float8e4nv");
  EXPECT_EQ(candidates(t.shell, "tl.sum(x, keep_d"), "keep_dims=");
}

// Each word that is offered is one that the compiler takes.
TEST(Completion, WordsOfTheKernelLanguageCompile) {
  const std::string head =
      "@triton.jit\ndef k(x, N: tl.constexpr = 16):\n    i = tl.arange(0, N)\n"
      "    m = x + i[:, None] * N + i[None, :]\n    t = tl.load(m)\n    ";
  Typing t;
  for (const std::string call :
       {"tl.dot(t, t, input_precision=", "tl.load(m, cache_modifier=", "tl.store(m, t, cache_modifier=",
        "tl.load(m, eviction_policy=", "tl.atomic_add(m, t, sem=", "tl.atomic_add(m, t, scope=",
        "tl.maximum(t, t, propagate_nan="})
    for (const std::string& word : t.shell.complete(call).candidates) {
      if (!word.starts_with("'") && !word.starts_with("tl.Prop")) continue;
      const Status done = t.shell.entry(head + call + word + ")\nx = torch.zeros(16, 16)\nk[(1,)](x)\n");
      EXPECT_TRUE(done.ok()) << call << word << ": " << (done.ok() ? "" : done.error().message);
    }
}

TEST(Completion, ArgumentsThatAreStillToCome) {
  Typing t(
      "import torch, triton, triton.language as tl\n@triton.jit\n"
      "def add_kernel(x, y, o, n, MODE: tl.constexpr = 'fast', BLOCK: tl.constexpr = 64): pass\n"
      "def f(a, b, /, c, *, d=True, e=3): pass\nx = torch.zeros(4)\n"
      "add_kernel[(1,)](x, x, x, 4, BLOCK=128)\n");
  EXPECT_TRUE(candidates(t.shell, "add_kernel[(1,)](x, y, o, 1000, ").starts_with("MODE= BLOCK= num_warps= "));
  EXPECT_TRUE(candidates(t.shell, "add_kernel[(1,)](x, o=o, ").starts_with("y= n= MODE= "));
  EXPECT_EQ(candidates(t.shell, "add_kernel[(1,)](x, num_warps=4, num_w"), "");
  EXPECT_EQ(candidates(t.shell, "add_kernel[(1,)](x, MODE="), "'fast'");
  EXPECT_EQ(candidates(t.shell, "add_kernel[(1,)](x, MODE='f"), "fast'");
  EXPECT_EQ(candidates(t.shell, "add_kernel[(1,)](x, BLOCK="), "64 128") << "the last launch's too";
  EXPECT_EQ(candidates(t.shell, "add_kernel[(1,)](x, num_warps="), "1 2 4 8 16 32");
  EXPECT_EQ(t.shell.complete("add_kernel[(1,)](BLO").notes.at("BLOCK=").substr(0, 21), "add_kernel(x, y, o, n");
  EXPECT_TRUE(candidates(t.shell, "f(1, ").starts_with("c= d= e= ")) << "not b, which has no name for callers";
  EXPECT_TRUE(candidates(t.shell, "f(1, 2, 3, ").starts_with("d= e= "));
  EXPECT_EQ(candidates(t.shell, "f(1, d="), "True False");
  EXPECT_TRUE(candidates(t.shell, "torch.softmax(x, di").starts_with("dim= "));
}

TEST(Completion, KeysThatAreNoStringsAndNestedOnes) {
  Typing t("d = {'k': {'in': [{'deep': 1}]}, 7: {'seven': 2}, -1: 0, None: 3, (1, 2): 4, 'a.b': {'dot': 1}}\n");
  EXPECT_TRUE(candidates(t.shell, "d[").starts_with("'k'] 7] -1] None] 'a.b'] "));
  EXPECT_EQ(candidates(t.shell, "d['"), "k'] a.b']");
  EXPECT_EQ(candidates(t.shell, "d[\"k\"][\""), "in\"]");
  EXPECT_EQ(candidates(t.shell, "x = 1 + d['k']['in'][0]['"), "deep']");
  EXPECT_EQ(candidates(t.shell, "d[7]['s"), "seven']");
  EXPECT_EQ(candidates(t.shell, "d['a.b']['d"), "dot']");
  EXPECT_EQ(candidates(t.shell, "d['k'].ke"), "d['k'].keys");
  EXPECT_EQ(candidates(t.shell, "d[8]['"), "");
}

TEST(Completion, NamesOfTheBlockThatIsTyped) {
  Typing t("alpaca = 1\n");
  EXPECT_EQ(candidates(t.shell, "def f(alphabet):\n    return alp"), "alpaca alphabet");
  EXPECT_EQ(candidates(t.shell, "def f(a, *alp1, alp2=(1, alp9), **alp3):\n    alp"), "alp1 alp2 alp3 alpaca");
  EXPECT_EQ(candidates(t.shell, "def f(x):\n    alp_a, alp_b = x\n    alp_c: int = 3\n    alp_d += 1\n    return alp_"),
            "alp_a alp_b alp_c");
  EXPECT_EQ(candidates(t.shell, "for alp_i, (alp_j, k) in x:\n    print(alp_"), "alp_i alp_j");
  EXPECT_EQ(candidates(t.shell, "with open(f) as alp_f:\n    alp_"), "alp_f");
  EXPECT_EQ(candidates(t.shell, "def alp_g(): pass\nalp_"), "alp_g");
  EXPECT_EQ(candidates(t.shell, "x = g(alp_k=3,\n   alp_"), "") << "a keyword of a call is no name";
  EXPECT_EQ(candidates(t.shell, "x.alp_q = 3\nalp_"), "");
  EXPECT_EQ(candidates(t.shell, "f = lambda alp_p: alp_"), "alp_p");
}

TEST(Completion, TheLineAboutValues) {
  Typing t("import triton, triton.language as tl\n@triton.jit\ndef k(x, n): pass\n");
  ASSERT_TRUE(t.shell.entry("r = %who").ok());
  EXPECT_NE(t.shell.complete("%target sm_90").notes.at("sm_90a").find("shared memory"), std::string::npos);
  EXPECT_EQ(t.shell.complete("%set format te").notes.at("text"), "how tables are printed");
  EXPECT_EQ(t.shell.complete("%format te").notes.at("text"), "set how tables are printed");
  EXPECT_EQ(t.shell.complete("%compare x cache=c").notes.at("cache=cold"), "which the verdicts are of");
  EXPECT_EQ(t.shell.complete("k[(1,)](x").notes.at("x="), "k(x, n)");
  EXPECT_NE(t.shell.complete("r.sort(b").notes.at("by=").find("sort("), std::string::npos);
  EXPECT_EQ(candidates(t.shell, "r.sort(by='ty"), "type'");
  EXPECT_EQ(candidates(t.shell, "r.sort(by="), "'name' 'type' 'value'");
}

TEST(Completion, CommandsTakeWhatTheyTake) {
  ScratchFolder folder;
  for (const char* name : {"/with blank", "/plain"}) std::filesystem::create_directory(folder.path + name);
  for (const char* name : {"/with file.py", "/it's mine.py", "/other.py"})
    ASSERT_TRUE(write_file_atomic(folder.path + name, "print('it ran')\n").ok());
  Typing t("import triton, triton.language as tl\n@triton.jit\ndef kern(x): pass\nkernels = 3\n");
  const std::string& f = folder.path;
  EXPECT_EQ(candidates(t.shell, "%cd " + f + "/p"), f + "/plain/");
  EXPECT_EQ(t.shell.complete("%cd " + f + "/").candidates.size(), 2u) << "no files";
  EXPECT_EQ(t.shell.complete("%cd " + f + "/w").candidates, std::vector{"'" + f + "/with blank/'"});
  EXPECT_EQ(t.shell.complete("%run " + f + "/o").candidates, std::vector{f + "/other.py"});
  EXPECT_EQ(t.shell.complete("%run " + f + "/wi").candidates,
            (std::vector{"'" + f + "/with blank/'", "'" + f + "/with file.py'"}));
  EXPECT_EQ(t.shell.complete("%run " + f + "/it").candidates, std::vector{"\"" + f + "/it's mine.py\""});
  EXPECT_EQ(t.shell.complete("!cat " + f + "/with").candidates[1], "'" + f + "/with file.py'");
  EXPECT_EQ(candidates(t.shell, "%run '" + f + "/with f"), f + "/with file.py'");
  EXPECT_EQ(candidates(t.shell, "%run '" + f + "/with b"), f + "/with blank/");
  ASSERT_TRUE(t.shell.entry("%run " + t.shell.complete("%run " + f + "/it").candidates[0]).ok());
  EXPECT_EQ(t.out, "it ran\n");
  EXPECT_EQ(candidates(t.shell, "%history "), "-g ");
  EXPECT_EQ(candidates(t.shell, "%edit ker"), "kern");
  EXPECT_TRUE(candidates(t.shell, "%edit ").starts_with("kern --variant ")) << "no other names";
  EXPECT_EQ(candidates(t.shell, "   %benc"), "%bench ");
}

}  // namespace
}  // namespace kiln::repl
