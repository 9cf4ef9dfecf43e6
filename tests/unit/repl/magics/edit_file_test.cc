#include "repl/magics/edit_file.h"

#include <gtest/gtest.h>

namespace kiln::repl {
namespace {

ExprGroup group() {
  ExprGroup g;
  g.kernel = "k";
  g.source = "import triton\n\n@triton.jit\ndef k(x, BLOCK: tl.constexpr):\n    pass\n";
  g.grid = {7, 2, 1};
  g.num_warps = 8;
  g.constants = {{"BLOCK", 1024}};
  return g;
}

TEST(EditFile, WhatIsWrittenIsReadBack) {
  const std::string text = edit_text(group());
  EXPECT_EQ(text.substr(0, text.find('\n')), "# launch: grid=(7, 2, 1) num_warps=8 num_stages=3 BLOCK=1024");
  ExprGroup g = group();
  g.grid = {1, 1, 1}, g.num_warps = 1, g.num_stages = 1, g.constants = {{"BLOCK", 1}};
  ASSERT_TRUE(read_edit(text, g).ok());
  EXPECT_EQ(g.grid, group().grid);
  EXPECT_EQ(g.num_warps, 8);
  EXPECT_EQ(g.num_stages, 3);
  EXPECT_EQ(g.constants, group().constants);
  EXPECT_EQ(g.source, text) << "lines keep their numbers";
}

TEST(EditFile, AnyLaunchOptionMayStandInTheLine) {
  ExprGroup g = group();
  g.num_ctas = 2, g.maxnreg = 64, g.enable_fp_fusion = false;
  const std::string text = edit_text(g);
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      "# launch: grid=(7, 2, 1) num_warps=8 num_stages=3 num_ctas=2 maxnreg=64 enable_fp_fusion=False BLOCK=1024");
  ExprGroup back = group();
  ASSERT_TRUE(read_edit(text, back).ok());
  EXPECT_TRUE(static_cast<const CodeOptions&>(back) == g);
  ASSERT_TRUE(read_edit("# launch: maxnreg=None\n", back).ok());
  EXPECT_EQ(back.maxnreg, 0);
}

TEST(EditFile, WithoutTheLineTheLaunchStays) {
  ExprGroup g = group();
  ASSERT_TRUE(read_edit("x = 1\n", g).ok());
  EXPECT_EQ(g.grid, group().grid);
}

TEST(EditFile, WrongLinesSaySo) {
  auto message = [](const std::string& text) {
    ExprGroup g = group();
    Status s = read_edit(text, g);
    return s.ok() ? "" : s.error().message;
  };
  EXPECT_EQ(message("# launch: grid=(7, x, 1)\n"), "the launch line's grid is a whole number, not 'x'");
  EXPECT_EQ(message("# launch: num_warps=four\n"), "num_warps must be a power of two from 1 to 32, not 'four'");
  EXPECT_EQ(message("# launch: num_warps=3\n"), "num_warps must be a power of two from 1 to 32, not '3'");
  EXPECT_EQ(message("# launch: BLOK=4\n"), "the kernel k has no constant 'BLOK'");
  EXPECT_EQ(message("# launch: grid\n"), "the launch line has NAME=VALUE items, not 'grid'");
  EXPECT_EQ(message(""), "the file is empty: nothing was compiled");
  EXPECT_EQ(message(" \n\n"), "the file is empty: nothing was compiled");
}

TEST(EditFile, HelpersGetNamesOfTheirOwn) {
  EXPECT_EQ(with_own_helpers("def gelu(x):\n"
                             "    return x  # gelu stays in comments\n"
                             "TABLE = [gelu]\n"
                             "@decorated(gelu)\n"
                             "def k(x, s, f=gelu):\n"
                             "    \"gelu in a text\"\n"
                             "    y = gelu(x) + tl.gelu(x) + f(gelu=1, other=gelu) + gelus\n"
                             "    tl.static_print(f'é gelu {gelu(x)}', f\"{'gelu'}\")\n",
                             "k"),
            "def k_gelu(x):\n"
            "    return x  # gelu stays in comments\n"
            "TABLE = [k_gelu]\n"
            "@decorated(k_gelu)\n"
            "def k(x, s, f=k_gelu):\n"
            "    \"gelu in a text\"\n"
            "    y = k_gelu(x) + tl.gelu(x) + f(gelu=1, other=k_gelu) + gelus\n"
            "    tl.static_print(f'é gelu {k_gelu(x)}', f\"{'gelu'}\")\n");
  EXPECT_EQ(with_own_helpers("def k(x):\n    return k2(x)\n", "k"), "def k(x):\n    return k2(x)\n");
  EXPECT_EQ(with_own_helpers("", "k"), "");
  EXPECT_EQ(with_own_helpers("def g(:\n  'open", "k"), "def g(:\n  'open")
      << "what does not parse is left to the parser";
}

TEST(EditFile, VariablesThatHideAHelperKeepTheirNames) {
  EXPECT_EQ(with_own_helpers("def g(x):\n    return x\n"
                             "def h(x):\n    return g(x)\n"
                             "def k(g=1):\n    h(g)\n    return g\n",
                             "k"),
            "def k_g(x):\n    return x\n"
            "def k_h(x):\n    return k_g(x)\n"
            "def k(g=1):\n    k_h(g)\n    return g\n");
  EXPECT_EQ(with_own_helpers("def g(x):\n    return x\ndef k(x):\n    g = x + 1\n    return g\n", "k"),
            "def k_g(x):\n    return x\ndef k(x):\n    g = x + 1\n    return g\n");
}

}  // namespace
}  // namespace kiln::repl
