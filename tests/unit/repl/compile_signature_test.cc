#include "repl/commands/compile_signature.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/parse/parser.h"

namespace kiln::repl {
namespace {

AssumedSignature assume(const std::string& text, const std::vector<std::string>& constexprs = {}) {
  auto module = parse::parse_module(SourceText::make("k.py", text));
  EXPECT_TRUE(module.ok()) << render(module.error());
  frontend::JitFunction f;
  f.module = *module;
  f.def = (*module)->function("k");
  EXPECT_NE(f.def, nullptr);
  std::vector<std::pair<std::string, frontend::Global>> given;
  for (const std::string& c : constexprs) given.push_back(*parse_constexpr(c));
  return assume_signature(f, given);
}

TEST(AssumedSignature, PointersAreWhatMemoryFunctionsGet) {
  auto a = assume(R"(
@triton.jit
def k(x, y, stride, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    row = x + tl.program_id(0) * stride
    ptrs = row + offs
    v = tl.load(ptrs, mask=offs < n)
    tl.store(y + offs, v)
)");
  EXPECT_EQ(a.signature, "*fp32:16, *fp32:16, i32:16, i32:16, constexpr");
  EXPECT_EQ(a.assumptions.size(), 5u);
  EXPECT_EQ(a.assumptions.back(), "BLOCK=1024");
  EXPECT_EQ(assume("@triton.jit\ndef k(BM: tl.constexpr, BN: tl.constexpr):\n    pass\n").assumptions,
            (std::vector<std::string>{"BM=32", "BN=32"}));
}

TEST(AssumedSignature, NamesDefaultsAndAnnotations) {
  auto a = assume(R"(
@triton.jit
def k(a_ptr, USE_X: tl.constexpr, n: tl.int64, eps, count, slope=0.5, flag=True, extra=None, HAS_BIAS: tl.constexpr = True, kind: "tl.constexpr" = "a"):
    pass
)");
  EXPECT_EQ(a.signature, "*fp32:16, constexpr, i64, fp32, i32:16, fp32, i1, constexpr, constexpr, constexpr");
  EXPECT_NE(std::find(a.assumptions.begin(), a.assumptions.end(), "HAS_BIAS=True"), a.assumptions.end());
  EXPECT_NE(std::find(a.assumptions.begin(), a.assumptions.end(), "USE_X=False"), a.assumptions.end());
  EXPECT_NE(std::find(a.assumptions.begin(), a.assumptions.end(), "extra=None"), a.assumptions.end());
}

TEST(AssumedSignature, TheFirstConfigGivesAutotunedValues) {
  auto a = assume(R"(
@triton.autotune(configs=[triton.Config({'BM': 64, "BN": 32}, num_warps=8), triton.Config({'BM': 16, 'BN': 16})], key=['n'])
@triton.jit
def k(n, BM: tl.constexpr, BN: tl.constexpr):
    pass
)");
  EXPECT_EQ(a.assumptions, (std::vector<std::string>{"n: i32:16", "BM=64", "BN=32"}));
}

TEST(AssumedSignature, WhatIsGivenIsNotAssumed) {
  auto a = assume("@triton.jit\ndef k(n, BLOCK: tl.constexpr):\n    pass\n", {"BLOCK=64", "n=1"});
  EXPECT_EQ(a.signature, "constexpr, constexpr");
  EXPECT_TRUE(a.assumptions.empty());
}

TEST(ParseConstexpr, Values) {
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=1024")->second), ast::Constant(ast::Int{1024}));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=-3")->second), ast::Constant(ast::Int{-3}));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=True")->second), ast::Constant(true));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=0.5")->second), ast::Constant(0.5));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B='x'")->second), ast::Constant(std::string("x")));
  EXPECT_EQ(std::get<ast::Constant>(parse_constexpr("B=None")->second), ast::Constant(ast::None{}));
  EXPECT_EQ(std::get<DType>(parse_constexpr("T=tl.float16")->second), DType::kF16);
  EXPECT_EQ(std::get<DType>(parse_constexpr("T=bfloat16")->second), DType::kBF16);
  for (const char* bad : {"B", "=3", "B=", "B=x + 1", "B=foo"}) EXPECT_FALSE(parse_constexpr(bad).ok()) << bad;
}

TEST(CalledNames, AreThoseOfPlainCalls) {
  auto module = parse::parse_module(
      SourceText::make("k.py", "def k(x):\n    if helper(x):\n        return tl.sum(other(x) + 1)\n"));
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(called_names(*(*module)->function("k")), (std::vector<std::string>{"helper", "other"}));
}

}  // namespace
}  // namespace kiln::repl
