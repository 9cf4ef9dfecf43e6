// The registers that the assembler is asked for (codegen/cubin.h, link_for_occupancy), by kernels that take many.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/codegen/cubin.h"
#include "compiler/compile.h"
#include "compiler/parse/parser.h"

namespace kiln {
namespace {

/// 64 elements of a row per thread, as sums and then three times as inputs.
constexpr const char* kCentre = R"(
import triton.language as tl

@triton.jit
def k(x_ptr, w_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * n
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + start + cols, mask=cols < n, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        inside = cols < n
        x = tl.load(x_ptr + start + cols, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=inside)
        b = tl.load(b_ptr + cols, mask=inside)
        tl.store(out_ptr + start + cols, (x - mean) * w + b, mask=inside)
)";

/// The same number, kept beside three rows ahead: a multiprocessor has shared memory for one program.
constexpr const char* kSoftmax = R"(
import triton.language as tl

@triton.jit
def k(x_ptr, out_ptr, rows, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=4):
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * n + cols, e / tl.sum(e, axis=0), mask=cols < n)
)";

/// The same number, of a part that waits for the total of the one before it.
constexpr const char* kWaiting = R"(
import triton.language as tl

@triton.jit
def k(x_ptr, out_ptr, totals_ptr, BLOCK: tl.constexpr):
    at = (tl.arange(0, BLOCK // 8) * 8)[:, None] + tl.arange(0, 8)[None, :]
    cols = tl.program_id(0) * BLOCK + at
    x = tl.load(x_ptr + cols).to(tl.float32)
    tl.store(totals_ptr + 1 + tl.program_id(0), tl.sum(tl.sum(x, axis=1), axis=0))
    before = tl.load(totals_ptr + tl.program_id(0), volatile=True)
    while before < 0:
        before = tl.load(totals_ptr + tl.program_id(0), volatile=True)
    tl.store(out_ptr + cols, tl.cumsum(x, axis=1) + before)
)";

/// Rows that a program has an SM's threads for; what it loads twice fits into the registers of half of them.
constexpr const char* kLogSum = R"(
import triton.language as tl

@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
    most = tl.max(x, axis=0)
    tl.store(out_ptr + tl.program_id(0), most + tl.log(tl.sum(tl.exp(x - most), axis=0)))
)";

/// 128 elements of a thread, none of which needs another; its loads are 32 registers.
constexpr const char* kDequantize = R"(
import triton.language as tl

@triton.jit
def k(x_ptr, scale_ptr, out_ptr, rows, n, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = r[:, None].to(tl.int64) * n + c[None, :]
    mask = (r[:, None] < rows) & (c[None, :] < n)
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, x * tl.load(scale_ptr + tl.program_id(0)), mask=mask)
)";

Result<CompiledKernel> compile_row(const char* text, const char* signature, int maxnreg = 0, int size = 16384,
                                   int warps = 8) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("k.py", text)));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  std::pair<std::string, frontend::Global> block{"BLOCK", ast::Constant(ast::Int{size})};
  KILN_TRY(auto args, frontend::parse_signature(*functions.at(0), signature, std::span(&block, 1)));
  CompileOptions options;
  options.target = "sm_90a";
  options.frontend.num_warps = warps;
  options.frontend.maxnreg = maxnreg;
  options.want_cubin = maxnreg == 0;
  return compile(*functions.at(0), args, options);
}

TEST(Occupancy, TwoProgramsWhereFourWouldSpill) {
  if (codegen::toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  auto kernel = compile_row(kCentre, "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_GT(kernel->registers, 64);
  EXPECT_LE(kernel->registers, 128);
  EXPECT_EQ(kernel->spill_bytes, 0);
  // Where one program of each SM is enough, the code that needs so many registers is the faster one.
  ASSERT_TRUE(kernel->roomy);
  EXPECT_EQ(kernel->roomy->registers, codegen::registers_of_cubin(kernel->roomy->cubin));
  EXPECT_GT(kernel->roomy->registers, 128);
  EXPECT_EQ(kernel->roomy->blocks_per_sm, 1);
  EXPECT_NE(kernel->ptx.find(".minnctapersm 2"), std::string::npos) << "of the kernel's own code";
}

TEST(Occupancy, ProgramsThatWaitForOthersAreAsManyAsSharedMemoryAllows) {
  if (codegen::toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  auto kernel = compile_row(kWaiting, "*bf16:16, *bf16:16, *fp32:16");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_GE(kernel->shared_bytes, 2 * 16384) << "the tile, which no register holds meanwhile";
  EXPECT_LE(kernel->shared_bytes, 2 * 16384 + 1024);
  EXPECT_LE(kernel->registers, 40);
  EXPECT_EQ(kernel->spill_bytes, 0);
}

TEST(Occupancy, NoMoreProgramsThanSharedMemoryAllows) {
  if (codegen::toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  auto kernel = compile_row(kSoftmax, "*fp32:16, *fp32:16, i32, i32:16");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_GT(kernel->shared_bytes, 3 * 65536);
  EXPECT_EQ(kernel->ptx.find(".minnctapersm"), std::string::npos);
  EXPECT_EQ(kernel->spill_bytes, 0);
  EXPECT_FALSE(kernel->roomy) << "one code does for all grids";
}

TEST(Occupancy, HalfOfTheThreadsWhereNoElementNeedsAnother) {
  if (codegen::toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  auto kernel = compile_row(kDequantize, "*fp8e4nv:16, *fp32:16, *bf16:16, i32:16, i32:16", 0, 128, 4);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_LE(kernel->registers, 64);
  EXPECT_EQ(kernel->spill_bytes, 0);
}

TEST(Occupancy, TwoProgramsOfAsManyThreadsAsABlockMayHave) {
  if (codegen::toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  for (const char* signature : {"*bf16:16, *fp32:16, i32", "*bf16:16, *fp32:16, i32:16"}) {
    auto kernel = compile_row(kLogSum, signature, 0, 65536, 32);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    EXPECT_LE(kernel->registers, 32) << signature;
    EXPECT_EQ(kernel->spill_bytes, 0) << signature;
  }
}

TEST(Occupancy, MostRegistersAreToldToTheAssembler) {
  auto kernel = compile_row(kCentre, "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16", 40);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_NE(kernel->ptx.find(".maxnreg 40"), std::string::npos) << kernel->ptx.substr(0, 800);
  EXPECT_EQ(kernel->ptx.find(".minnctapersm"), std::string::npos);
}

}  // namespace
}  // namespace kiln
