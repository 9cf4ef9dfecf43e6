// Scripts of tests/golden/python print what Python prints (record.py), and modules beside a script.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

/// What a script prints; an error behind it, as the command line would show it.
std::string run_file(const fs::path& path) {
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.error_output = [](std::string_view) {};
  options.argv = {path.string(), "a", "b"};
  options.device = *open_device("cpu");
  Session session(std::move(options));
  const Status status = session.run(text_of(path), path.string());
  if (!status.ok()) out += render(status.error());
  return out;
}

std::vector<fs::path> scripts() {
  std::vector<fs::path> out;
  for (const auto& e : fs::directory_iterator(fs::path(KILN_SOURCE_DIR) / "tests/golden/python"))
    if (e.path().extension() == ".py" && e.path().stem() != "record") out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

class PythonPrints : public ::testing::TestWithParam<fs::path> {};
TEST_P(PythonPrints, TheSame) {
  fs::path recorded = GetParam();
  recorded.replace_extension(".txt");
  EXPECT_EQ(run_file(GetParam()), text_of(recorded));
}
INSTANTIATE_TEST_SUITE_P(Scripts, PythonPrints, ::testing::ValuesIn(scripts()),
                         [](const auto& path) { return path.param.stem().string(); });

class Modules : public ::testing::Test {
 protected:
  Modules() {
    std::string name = (fs::temp_directory_path() / "kiln_modules_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Modules() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  std::string run(const std::string& text) {
    write("main.py", text);
    std::string out = run_file(folder_ / "main.py");
    for (size_t at = 0; (at = out.find(folder_.string() + "/")) != std::string::npos;)
      out.erase(at, folder_.string().size() + 1);
    return out;
  }
  fs::path folder_;
};

TEST_F(Modules, BesideTheScriptHaveVariablesOfTheirOwn) {
  write("mine.py",
        "import os\nx = 1\n_y = 2\ndef get(): return x\ndef put(v):\n  global x\n  x = v\n"
        "print(__name__, os.path.basename(__file__))\n");
  EXPECT_EQ(run("import mine\nimport mine as again\nx = 5\nmine.put(7)\nfrom mine import get, x as theirs\n"
                "print(mine.get(), get(), x, theirs, again is mine, mine.x, hasattr(mine, '_y'))\n"
                "mine.x = 9\nprint(get())\nfrom mine import *\nprint(x, '_y' in globals(), __name__)\n"),
            "mine mine.py\n7 7 5 7 True 7 True\n9\n9 False __main__\n");
}

TEST_F(Modules, OfAScriptAreNotTheLibrarysThatHaveNoSuchModule) {
  write("queue.py", "def push(x): return x\n");
  EXPECT_EQ(run("import queue\nqueue.pussh(1)\n"),
            "main.py:2:7: error: the module 'queue' has no attribute 'pussh'\n"
            "  2 | queue.pussh(1)\n"
            "    |       ^^^^^\n"
            "  help: did you mean 'push'?\n");
  EXPECT_EQ(run("from queue import pussh\n"),
            "main.py:1:19: error: the module 'queue' has no attribute 'pussh'\n"
            "  1 | from queue import pussh\n"
            "    |                   ^^^^^\n"
            "  help: did you mean 'push'?\n");
}

TEST_F(Modules, ReloadRunsTheFileAsItIsNow) {
  write("mine.py", "x = 1\ny = 2\ndef f(): return x\n");
  EXPECT_EQ(run("import importlib, mine, math\nold = mine.f\nmine.z = 9\n"
                "with open(mine.__file__, 'w') as file:\n  file.write('x = 5\\ndef f(): return x + 1\\n')\n"
                "print(importlib.reload(mine) is mine, mine.x, mine.y, mine.z, mine.f(), old())\n"
                "print(importlib.reload(math) is math)\n"
                "try:\n  importlib.reload('mine')\nexcept TypeError as e:\n  print(e)\n"),
            "True 5 2 9 6 5\nTrue\nreload() argument must be a module\n");
}
TEST_F(Modules, FilesDoNotHideWhatPythonHasBuiltIn) {
  write("time.py", "import time\nprint('mine')\n");
  write("copy.py", "def copy(x): return 'mine'\n");
  EXPECT_EQ(run("import copy, time\nprint(time.time() > 0, copy.copy(1))\n"), "True mine\n");
}

TEST_F(Modules, AModuleMakesNamesWhenTheyAreAskedFor) {
  write("late.py",
        "__all__ = ['two']\ndef __getattr__(name):\n  if name == 'two': return 2\n"
        "  raise AttributeError('late has no ' + name)\n");
  EXPECT_EQ(run("import late\nfrom late import *\nprint(two, hasattr(late, 'three'), getattr(late, 'three', 0))\n"
                "print('two' in dir(late))\n"
                "try:\n  late.three\nexcept AttributeError as e:\n  print(e)\n"
                "try:\n  from late import three\nexcept ImportError:\n  print('none')\n"),
            "2 False 0\nTrue\nlate has no three\nnone\n");
}

TEST_F(Modules, Packages) {
  write("pkg/__init__.py", "from .a import one\nfrom . import b\n__all__ = ['one', 'two']\ntwo = 2\nthree = 3\n");
  write("pkg/a.py", "def one(): return 1\n");
  write("pkg/b.py", "from .a import one\nfrom .deep.c import four\nvalue = one() + four\n");
  write("pkg/deep/__init__.py", "");
  write("pkg/deep/c.py", "from ..a import one\nfrom ... pkg import a as up\nfour = 3 + one()\n");
  EXPECT_EQ(run("from pkg import *\nimport pkg.deep.c\nprint(one(), two, 'three' in globals(), pkg.b.value, "
                "pkg.deep.c.four)\nimport pkg.b as b\nprint(b.__name__, pkg.__package__)\n")
                .substr(0, 16),
            "1 2 False 5 4\npk");
}

TEST_F(Modules, RelativeImportsOfAScriptAreFromItsFolder) {
  write("util.py", "v = 3\n");
  EXPECT_EQ(run("from .util import v\nfrom . import util\nprint(v, util.v)\n"), "3 3\n");
  EXPECT_EQ(run("from ..util import v\n"),
            "main.py:1:1: error: '..util' leads out of the folder of the script\n"
            "  1 | from ..util import v\n"
            "    | ^^^^^^^^^^^^^^^^^^^^\n"
            "  help: import the module by its name, and add its folder to sys.path\n");
}

TEST_F(Modules, CirclesAreNamed) {
  write("p.py", "import q\nname = 1\n");
  write("q.py", "import p\ndef late(): return p.name\n");
  EXPECT_EQ(run("import p, q\nprint(q.late())\n"), "1\n");
  write("q.py", "from p import name\n");
  EXPECT_EQ(run("import p\n"),
            "q.py:1:15: error: 'name' is not in the module 'p' yet, which is still being imported\n"
            "  1 | from p import name\n"
            "    |               ^^^^\n"
            "  help: the modules import one another in a circle: import 'name' inside the function that needs it\n"
            "  p.py:1:8: in the module q, imported here\n"
            "  1 | import q\n"
            "    |        ^\n"
            "  main.py:1:8: in the module p, imported here\n"
            "  1 | import p\n"
            "    |        ^\n");
}

TEST_F(Modules, AFailedImportCanBeTriedAgain) {
  write("bad.py", "n = 1 / 0\n");
  EXPECT_EQ(run("for i in range(2):\n  try: import bad\n  except ZeroDivisionError: print('again')\n"
                "try: import bad.sub\nexcept ZeroDivisionError: print('too')\n"),
            "again\nagain\ntoo\n");
  write("bad.py", "x = (\n");
  EXPECT_NE(run("import bad\n").find("bad.py:1:5: error: '(' is never closed"), std::string::npos);
}

TEST_F(Modules, ImportErrorsCanBeCaught) {
  write("m.py", "tl = 1\n");
  EXPECT_EQ(run("try:\n  from m import tll\nexcept ImportError as e: print(e)\n"
                "try:\n  import m.sub\nexcept ModuleNotFoundError as e: print(e)\n"
                "try:\n  from triton.language import nothing_there\nexcept ImportError: print('no')\n"),
            "the module 'm' has no attribute 'tll'\nthere is no module 'm.sub'\nno\n");
}

TEST_F(Modules, KernelsSeeTheirOwnModule) {
  write("k.py",
        "import triton\nimport triton.language as tl\nSCALE: tl.constexpr = 3\n"
        "@triton.jit\ndef twice(x): return x * SCALE\n"
        "@triton.jit\ndef k(o, B: tl.constexpr):\n  i = tl.arange(0, B)\n  tl.store(o + i, twice(i))\n");
  write("wrap.py", "import triton as triton\nimport triton.language as tl\n");
  EXPECT_EQ(run("import torch\nfrom k import k\nfrom wrap import tl, triton\nSCALE = 100\n"
                "o = torch.zeros(4, dtype=torch.int32)\nk[(1,)](o, B=4)\nprint(o.tolist(), triton.cdiv(5, 2))\n"
                "@triton.jit\ndef mine(o, B: tl.constexpr): tl.store(o + tl.arange(0, B), 7)\n"
                "mine[(1,)](o, B=4)\nprint(o.tolist())\n"),
            "[0, 3, 6, 9] 3\n[7, 7, 7, 7]\n");
}

TEST_F(Modules, ErrorsInKilnsOwnModulesNameTheUsersLine) {
  EXPECT_EQ(run("from dataclasses import dataclass\n@dataclass\nclass C:\n  x: int\ndef f(): return C()\nf()\n"),
            "main.py:5:17: error: TypeError: C.__init__() missing 1 required positional argument: 'x'\n"
            "  5 | def f(): return C()\n"
            "    |                 ^^^\n"
            "  main.py:6:1: in f, called from here\n"
            "  6 | f()\n"
            "    | ^^^\n");
}

TEST_F(Modules, KernelsReachTheirNamesThroughThem) {
  write("ext.py",
        "import triton\nimport triton.language as tl\nSTEP = tl.constexpr(2)\n"
        "@triton.jit\ndef index(): return tl.program_id(0)\n"
        "@triton.jit\ndef twice(x): return x * STEP\n"
        "@triton.jit\ndef thrice(x): return x * 3\n");
  const std::string kernel =
      "import torch, triton\nimport triton.language as tl\nimport ext as e\n"
      "@triton.jit\ndef k(o): e.tl.store(o + e.index(), e.twice(e.STEP))\n"
      "o = torch.zeros(2, dtype=torch.int32)\nk[(2,)](o)\nprint(o.tolist())\n";
  EXPECT_EQ(run(kernel), "[4, 4]\n");
  // What the module's name stands for is looked up with each launch.
  EXPECT_EQ(run(kernel + "e.twice = e.thrice\nk[(2,)](o)\nprint(o.tolist())\n"), "[4, 4]\n[6, 6]\n");
}

TEST_F(Modules, SearchFoldersOfSysPath) {
  write("elsewhere/far.py", "v = 4\n");
  EXPECT_EQ(run("import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'elsewhere'))\n"
                "import far\nprint(far.v)\n"),
            "4\n");
}

}  // namespace
}  // namespace kiln::script
