// `kiln check` of a folder.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "repl/commands/compile_command.h"
#include "support/diag.h"

namespace kiln::repl {
namespace {

namespace fs = std::filesystem;

class CheckFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kiln_check_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string& name, const std::string& body) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << "import triton\nimport triton.language as tl\n\n" << body;
  }
  /// A kernel that stores `value`.
  static std::string kernel(const std::string& name, const std::string& value) {
    return "@triton.jit\ndef " + name + "(x_ptr):\n    tl.store(x_ptr, " + value + ")\n\n";
  }
  int check(CompileArgs args = {}, bool json = false) {
    args.file = folder.string();
    args.target = "host";
    testing::internal::CaptureStdout();
    auto code = check_command(args, "", json);
    printed = testing::internal::GetCapturedStdout();
    if (!code.ok()) printed = render(code.error());
    return code.ok() ? *code : -1;
  }

  fs::path folder;
  std::string printed;
};

TEST_F(CheckFolder, NamesThatAreNoTextAreToldToo) {
  write("a\xff\x1b[2J.py", kernel("good", "1.0") + kernel("bad", "nothing"));
  EXPECT_EQ(check({}, true), kExitError);
  EXPECT_NE(printed.find("a\xef\xbf\xbd\\u001b[2J.py"), std::string::npos) << printed;
  EXPECT_EQ(check(), kExitError);
  EXPECT_EQ(printed.find('\x1b'), std::string::npos) << printed;
}

TEST_F(CheckFolder, NotebooksAreTheCodeOfTheirCells) {
  std::ofstream(folder / "a.ipynb") << R"json({"cells": [
    {"cell_type": "markdown", "source": ["@triton.jit is a *decorator*"]},
    {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install triton\n", "import triton\n",
                                     "import triton.language as tl"]},
    {"cell_type": "code", "source": "%%bash\nif true\n  then echo jit; fi"},
    {"cell_type": "code", "source": ["%%time\n", "@triton.jit\n", "def good(x_ptr):\n", "    tl.store(x_ptr, 1)\n",
                                     "if True:\n", "    !nvidia-smi"]},
    {"cell_type": "code", "source": ["@triton.jit\n", "def bad(x_ptr):\n", "    tl.store(x_ptr, nothing)"]}],
   "nbformat": 4})json";
  EXPECT_EQ(check(), kExitError);
  EXPECT_NE(printed.find("a.ipynb, cell 4, line 3: error: the name nothing is not defined"), std::string::npos)
      << printed;
  EXPECT_TRUE(printed.ends_with("1 of 2 kernels in 1 file compile for host (50.0 %)\n")) << printed;
  std::ofstream(folder / "a.ipynb") << "{\"jit\": [";
  EXPECT_EQ(check(), kExitError);
  EXPECT_NE(printed.find("a.ipynb is not a notebook: it has no cells"), std::string::npos) << printed;
}

TEST_F(CheckFolder, TellsTheShareAndTheReasons) {
  write("a.py", kernel("good", "1.0") + kernel("wide", "tl.arange(0, 24)"));
  write("deep/er/b.py", kernel("wider", "tl.arange(0, 48)") + kernel("nameless", "nothing"));
  write("none.py", "# jit is only mentioned\n");
  write(".hidden/c.py", kernel("hidden", "nothing"));
  write("notes.txt", kernel("text", "nothing"));
  EXPECT_EQ(check(), kExitError);
  EXPECT_EQ(printed.find("good"), std::string::npos) << printed;
  EXPECT_NE(printed.find("wide does not compile for host"), std::string::npos) << printed;
  EXPECT_NE(printed.find("deep/er/b.py:6:"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("hidden"), std::string::npos) << printed;
  const size_t reasons = printed.find("kernels  reason\n      2  ");
  ASSERT_NE(reasons, std::string::npos) << "two arange of other sizes are one reason\n" << printed;
  EXPECT_TRUE(printed.ends_with("1 of 4 kernels in 2 files compile for host (25.0 %)\n")) << printed;
}

TEST_F(CheckFolder, GoesOnBehindWhatCannotBeRead) {
  write("a.py", kernel("good", "1.0"));
  write("broken.py", "@triton.jit\ndef f(:\n");
  EXPECT_EQ(check(), kExitError);
  EXPECT_NE(printed.find("broken.py:5:6: error"), std::string::npos) << printed;
  EXPECT_TRUE(printed.ends_with("1 of 1 kernels in 1 file compile for host (100.0 %); files that cannot be read: 1\n"))
      << printed;
  fs::remove(folder / "broken.py");
  EXPECT_EQ(check(), kExitOk);
}

TEST_F(CheckFolder, ALineOfJsonForEachKernel) {
  write("a.py", kernel("good", "1.0") + kernel("bad", "nothing"));
  EXPECT_EQ(check({}, true), kExitError);
  EXPECT_NE(printed.find(R"({"kernel":"good","line":5,"target":"host","ok":true,"file":")"), std::string::npos)
      << printed;
  EXPECT_NE(printed.find(R"("ok":false)"), std::string::npos) << printed;
}

TEST_F(CheckFolder, OptionsOfOneKernelNeedAFile) {
  CompileArgs args;
  args.kernel = "k";
  EXPECT_EQ(check(args), -1);
  EXPECT_NE(printed.find("--kernel needs a file"), std::string::npos) << printed;
  EXPECT_EQ(check(), kExitOk) << "an empty folder";
  EXPECT_EQ(printed, "0 of 0 kernels in 0 files compile for host\n");
}

}  // namespace
}  // namespace kiln::repl
