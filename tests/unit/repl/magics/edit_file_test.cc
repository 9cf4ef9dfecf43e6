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
  EXPECT_EQ(message("# launch: num_warps=four\n"), "the launch line's num_warps is a whole number, not 'four'");
  EXPECT_EQ(message("# launch: BLOK=4\n"), "the kernel k has no constant 'BLOK'");
  EXPECT_EQ(message("# launch: grid\n"), "the launch line has NAME=VALUE items, not 'grid'");
  EXPECT_EQ(message(""), "the file is empty: nothing was compiled");
  EXPECT_EQ(message(" \n\n"), "the file is empty: nothing was compiled");
}

TEST(EditFile, HelpersGetNamesOfTheirOwn) {
  EXPECT_EQ(with_own_helpers("def gelu(x):\n"
                             "    return x  # gelu stays in comments\n"
                             "def k(x, s):\n"
                             "    \"gelu in a text\"\n"
                             "    y = gelu(x) + tl.gelu(x) + f(gelu=1, other=gelu) + gelus\n"
                             "    gelu = 3\n",
                             "k"),
            "def k_gelu(x):\n"
            "    return x  # gelu stays in comments\n"
            "def k(x, s):\n"
            "    \"gelu in a text\"\n"
            "    y = k_gelu(x) + tl.gelu(x) + f(gelu=1, other=k_gelu) + gelus\n"
            "    k_gelu = 3\n");
  // A parameter of that name hides the helper, before and after.
  EXPECT_EQ(with_own_helpers("def g(x):\n    return x\ndef k(g=1):\n    return g\n", "k"),
            "def k_g(x):\n    return x\ndef k(k_g=1):\n    return k_g\n");
  EXPECT_EQ(with_own_helpers("def k(x):\n    return k2(x)\n", "k"), "def k(x):\n    return k2(x)\n");
  EXPECT_EQ(with_own_helpers("", "k"), "");
  EXPECT_EQ(with_own_helpers("def g(:\n  'open", "k"), "def k_g(:\n  'open")
      << "what does not parse is left to the parser";
}

}  // namespace
}  // namespace kiln::repl
