#include <gtest/gtest.h>

#include <cmath>

#include "compiler/parse/parser.h"
#include "support/diag.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln::frontend {
namespace {

using Functions = std::vector<std::shared_ptr<const JitFunction>>;

Functions functions_of(std::string text) {
  auto module = parse::parse_module(SourceText::make("file.py", std::move(text)));
  EXPECT_TRUE(module.ok());
  auto functions = jit_functions(*module);
  EXPECT_TRUE(functions.ok());
  return *functions;
}

constexpr char kText[] = R"(
import triton
import triton.language as tl
from triton import language
from triton import jit as compiled
from triton.language.extra import libdevice
import torch

PLAIN = 3
WIDTH: tl.constexpr = 1 << 4
INF = tl.constexpr(float("-inf"))
SHAPE = tl.constexpr((WIDTH, 2))
DTYPE = tl.constexpr(tl.float16)
tanh = libdevice.tanh
if triton.__version__ >= "3":
    from triton.language.extra.libdevice import erf
else:
    from triton.language.math import old_name as erf

def host(x):
    return x

@triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['n'])
@triton.jit(do_not_specialize=["n", 0])
def first(x, n, scale, BLOCK: tl.constexpr, MODE: "tl.constexpr" = 'sum', eps=1e-5):
    pass

@compiled
def second(x):
    pass

@language.constexpr_function
def third(x):
    return x + 1

if True:
    @triton.jit
    def fourth():
        pass
)";

Result<std::vector<ArgSpec>> parse(std::string_view signature, std::vector<std::pair<std::string, Global>> constexprs) {
  static const Functions functions = functions_of(kText);
  return parse_signature(*functions[0], signature, constexprs);
}

const ast::Constant& constant(const ArgSpec& a) { return std::get<ast::Constant>(a.value); }

TEST(JitFunctions, FindsDecoratedFunctionsUnderAnyAlias) {
  Functions functions = functions_of(kText);
  std::vector<std::string> names;
  for (const auto& f : functions) names.push_back(f->def->name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "third", "fourth"}));
  EXPECT_EQ(functions[0]->do_not_specialize, (std::vector<std::string>{"n", "x"}));
  EXPECT_TRUE(functions[2]->constexpr_function);
}

TEST(JitFunctions, SeesConstexprGlobalsOnly) {
  std::shared_ptr<const JitFunction> f = functions_of(kText)[1];  // the others live as long as one does
  EXPECT_FALSE(f->lookup("PLAIN"));
  EXPECT_TRUE(std::get<std::shared_ptr<const JitFunction>>(*f->lookup("host"))->plain);
  EXPECT_EQ(std::get<ast::Constant>(*f->lookup("WIDTH")), ast::Constant(ast::Int{16}));
  EXPECT_EQ(std::get<ast::Constant>(*f->lookup("INF")), ast::Constant(-INFINITY));
  EXPECT_EQ(std::get<DType>(*f->lookup("DTYPE")), DType::kF16);
  EXPECT_EQ(std::get<std::shared_ptr<const GlobalTuple>>(*f->lookup("SHAPE"))->items.size(), 2u);
  EXPECT_EQ(std::get<ModulePath>(*f->lookup("tanh")).path, "triton.language.extra.libdevice.tanh");
  EXPECT_EQ(std::get<ModulePath>(*f->lookup("erf")).path, "triton.language.extra.libdevice.erf");
  EXPECT_EQ(std::get<ModulePath>(*f->lookup("torch")).path, "torch");
  EXPECT_EQ(std::get<std::shared_ptr<const JitFunction>>(*f->lookup("third"))->def->name, "third");
}

TEST(Signature, BindsTypesHintsAndConstexprs) {
  auto args = parse("*fp32:16, i64:16, bf16", {{"BLOCK", ast::Constant(ast::Int{128})}});
  ASSERT_TRUE(args.ok()) << render(args.error());
  ASSERT_EQ(args->size(), 6u);
  EXPECT_EQ((*args)[0].type, ir::pointer_type(DType::kF32));
  EXPECT_EQ((*args)[0].divisibility, 16);
  EXPECT_EQ((*args)[1].type, ir::scalar_type(DType::kI64));
  EXPECT_EQ((*args)[2].type, ir::scalar_type(DType::kBF16));
  EXPECT_EQ((*args)[2].divisibility, 1);
  EXPECT_EQ(constant((*args)[3]), ast::Constant(ast::Int{128}));
  EXPECT_EQ(constant((*args)[4]), ast::Constant(std::string("sum")));
  EXPECT_EQ(constant((*args)[5]), ast::Constant(1e-5));
}

TEST(Signature, AcceptsPlaceholdersAndValues) {
  auto args = parse("*fp8e4nv,i32:1,2.5,constexpr,constexpr,fp32",
                    {{"BLOCK", ast::Constant(ast::Int{4})}, {"MODE", ast::Constant(std::string("max"))}});
  ASSERT_TRUE(args.ok()) << render(args.error());
  EXPECT_EQ((*args)[0].type, ir::pointer_type(DType::kF8E4M3));
  EXPECT_EQ(constant((*args)[1]), ast::Constant(ast::Int{1}));
  EXPECT_EQ(constant((*args)[2]), ast::Constant(2.5));
  EXPECT_EQ(constant((*args)[4]), ast::Constant(std::string("max")));
  EXPECT_EQ((*args)[5].type, ir::scalar_type(DType::kF32));
}

TEST(Signature, TakesTuples) {
  const std::pair<std::string, Global> block{"BLOCK", ast::Constant(ast::Int{4})};
  auto args = parse("(*fp32:16, (i32, 3)), (i64,), ()", {block});
  ASSERT_TRUE(args.ok()) << render(args.error());
  const ArgSpec &x = (*args)[0], &n = (*args)[1];
  ASSERT_TRUE(x.is_tuple);
  ASSERT_EQ(x.items.size(), 2u);
  EXPECT_EQ(x.items[0].type, ir::pointer_type(DType::kF32));
  EXPECT_EQ(x.items[0].divisibility, 16);
  ASSERT_TRUE(x.items[1].is_tuple);
  EXPECT_EQ(x.items[1].items[0].type, ir::scalar_type(DType::kI32));
  EXPECT_EQ(constant(x.items[1].items[1]), ast::Constant(ast::Int{3}));
  ASSERT_EQ(n.items.size(), 1u);
  EXPECT_EQ(n.items[0].type, ir::scalar_type(DType::kI64));
  EXPECT_TRUE((*args)[2].is_tuple && (*args)[2].items.empty());
}

TEST(Signature, SaysWhatIsWrong) {
  const std::pair<std::string, Global> block{"BLOCK", ast::Constant(ast::Int{4})};
  auto message = [&](std::string_view signature, std::vector<std::pair<std::string, Global>> constexprs) {
    auto args = parse(signature, std::move(constexprs));
    return args.ok() ? "" : args.error().message;
  };
  EXPECT_EQ(message("*fp32,i32", {block}), "the signature '*fp32,i32' has no type for the parameter scale");
  EXPECT_EQ(message("*fp32,i32,fp32,i32", {}),
            "BLOCK is a tl.constexpr parameter, so it needs a value, not the type 'i32'");
  EXPECT_EQ(message("*fp32,i32,fp32,constexpr", {}), "the constexpr BLOCK has no value");
  EXPECT_EQ(message("*fp23,i32,fp32", {block}), "unknown type '*fp23' for the parameter x in the signature");
  EXPECT_EQ(message("(*fp32, i23),i32,fp32", {block}), "unknown type 'i23' for the parameter x in the signature");
  EXPECT_EQ(message("(*fp32,i32", {block}), "the tuple '(*fp32,i32' of the parameter x does not end");
  EXPECT_EQ(message("*fp32,i32:6,fp32", {block}),
            "the hint ':6' of the parameter n must be :16, :8, :4 or :1, on an integer");
  EXPECT_EQ(message("*fp32,i32,fp32", {block, {"BLOK", ast::Constant(ast::Int{4})}}), "first has no parameter BLOK");
  EXPECT_EQ(message("*fp32,i32,fp32,fp32,i32", {block}),
            "the signature has 1 type(s) more than first has parameters, from 'i32'");
}

TEST(LowerKernel, ChecksOptions) {
  testing::Command command = testing::parse_command("signature=*fp32 num_warps=3");
  auto module = testing::lower_text("k.py", "import triton\n@triton.jit\ndef k(x):\n    pass\n", command);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().message, "num_warps must be a power of two from 1 to 32, got 3");
}

TEST(LowerKernel, GivesOpsTheRangeOfTheirExpression) {
  testing::Command command = testing::parse_command("signature=*fp32,fp32");
  auto module = testing::lower_text("k.py",
                                    "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, y):\n    z = y "
                                    "* 2 + y\n    tl.store(x, tl.sigmoid(z))\n",
                                    command);
  ASSERT_TRUE(module.ok());
  std::vector<std::string> texts;
  ir::walk((*module)->body(), [&](ir::Op* op) {
    if (op->kind == ir::OpKind::kMul || op->kind == ir::OpKind::kAdd || op->kind == ir::OpKind::kStore)
      texts.emplace_back(op->range.str());
    // The library's ops belong to the user's line.
    EXPECT_EQ(op->range.text->file_name(), "k.py");
    if (op->kind == ir::OpKind::kExp) {
      EXPECT_EQ(op->range.str(), "tl.sigmoid(z)");
    }
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"y * 2", "y * 2 + y", "tl.sigmoid(z)", "tl.store(x, tl.sigmoid(z))"}));
}

}  // namespace
}  // namespace kiln::frontend
