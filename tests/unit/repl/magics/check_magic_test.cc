// %check, `kiln run --check`, and rows of kernels that reach outside of their tensors.
#include <gtest/gtest.h>

#include "tests/unit/repl/run_prompt.h"

namespace kiln::repl {
namespace {

const std::string kCopy = R"(@triton.jit
def copy(x, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i))
x, o = torch.ones(256), torch.zeros(256)
)";

TEST(CheckMagic, SaysWhatWasLookedAt) {
  EXPECT_EQ(run(kCopy + "%check copy[(4,)](x, o, BLOCK=64)\n").out,
            "2 accesses of 1 launch: all within their tensors\n");
  EXPECT_EQ(run(kCopy + "%check x + 1\n").out, "nothing was checked: the statement launches no kernel of the script\n");
  // A kernel's name is its last launch.
  EXPECT_EQ(run(kCopy + "copy[(2,)](x, o, BLOCK=64)\n%check copy\n").out,
            "2 accesses of 1 launch: all within their tensors\n");
  // Launches are as ever afterwards.
  EXPECT_EQ(run(kCopy + "%check copy[(4,)](x, o, BLOCK=64)\ncopy[(4,)](x, o, BLOCK=64)\nprint(o.sum())\n").code, 0);
}

TEST(CheckMagic, NamesTheLineThatReachesOutside) {
  Said s = run(kCopy + "%check copy[(5,)](x, o, BLOCK=64)\nprint(\"here\")\n");
  EXPECT_EQ(s.code, 1);
  EXPECT_EQ(s.err,
            "script.py:4:21: error: kernel 'copy' reads element 256 of 'x', which has 256 elements, in program 4\n"
            "  4 |     tl.store(o + i, tl.load(x + i))\n"
            "    |                     ^^^^^^^^^^^^^^\n"
            "  help: give it a mask that leaves such elements out\n"
            "  <%check>:1:1: from this line of the script\n"
            "  1 | copy[(5,)](x, o, BLOCK=64)\n"
            "    | ^^^^^^^^^^^^^^^^^^^^^^^^^^\n");
}

TEST(CheckMagic, AddressesThatCannotBeCheckedAreNamed) {
  Said s = run(R"(@triton.jit
def through(table, o):
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(o, tl.load(p))
x, o = torch.ones(1), torch.zeros(1)
table = torch.tensor([x.data_ptr()])
%check through[(1,)](table, o)
)");
  EXPECT_EQ(s.out,
            "2 accesses of 1 launch: all within their tensors\n"
            "script.py:4: not checked: its address comes from no argument\n")
      << s.err;
}

TEST(CheckMagic, AWholeProgramWithCheckStopsAtTheAccess) {
  Options options;
  options.device = "cpu";
  options.check_accesses = true;
  std::string out;
  Shell shell(options, [&](std::string_view s) { out += s; });
  testing::internal::CaptureStderr();
  const int code = shell.run_program(kCopy + "copy[(4,)](x, o, BLOCK=64)\nprint(o.sum())\ncopy[(8,)](x, o, BLOCK=64)\n",
                                     "script.py");
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 1);
  EXPECT_EQ(out, "tensor(256.)\n");
  EXPECT_NE(err.find("reads element 256 of 'x'"), std::string::npos) << err;
}

TEST(CheckMagic, ARowThatReachesOutsideSaysWhyAndTheOthersStand) {
  Said s = run(kCopy +
               "%compare copy[(4,)](x, o, BLOCK=64), copy[(5,)](x, o, BLOCK=64), copy[(2,)](x, o, BLOCK=128) "
               "budget=300ms\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("kernel 'copy' reads element 256 of 'x', which has 256 elements, in program 4"),
            std::string::npos)
      << s.out;
  EXPECT_NE(s.out.find("failed"), std::string::npos) << s.out;
  EXPECT_NE(s.out.find("baseline"), std::string::npos) << s.out;
  Said alone = run(kCopy + "%bench copy[(5,)](x, o, BLOCK=64) budget=300ms\n");
  EXPECT_NE(alone.err.find("reads element 256 of 'x'"), std::string::npos) << alone.err << alone.out;
}

TEST(CheckMagic, TuningDropsTheConfigurationAlone) {
  Said s = run(kCopy + "%tune copy[(4,)](x, o, BLOCK=64) BLOCK=[32, 64, 128] budget=2s check=off\n");
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_NE(s.out.find("1 failed: kernel 'copy' reads element 256 of 'x'"), std::string::npos) << s.out;
}

}  // namespace
}  // namespace kiln::repl
