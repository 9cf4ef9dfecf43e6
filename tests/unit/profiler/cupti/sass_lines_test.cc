// Line tables of a kernel that is compiled here, read by NVIDIA's own library: no GPU is needed.
#include "profiler/cupti/sass_lines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "kiln/kernel.h"
#include "profiler/cupti/library.h"
#include "profiler/cupti/pc_sampling.h"
#include "profiler/lines/disassemble.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/kernel_impl.h"
#include "tests/unit/open_device.h"

namespace kiln::profiler::cupti {
namespace {

constexpr const char* kKernel = R"(import triton
import triton.language as tl


@triton.jit
def grow(x):
    return tl.exp(x)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(x + i, mask=m)
    b = tl.load(y + i, mask=m)
    tl.store(out + i, grow(a) - b, mask=m)
)";

struct Compiled {
  std::string ptx, cubin;
};

Compiled compiled() {
  Kernel kernel = *Kernel::from_source(kKernel, "dir/add.py", "add");
  auto function = kernel.impl()->function();
  const std::pair<std::string, frontend::Global> constants[] = {{"BLOCK", ast::Constant(ast::Int{1024})}};
  auto args = frontend::parse_signature(*function, "*fp32:16, *fp32:16, *fp32:16, i32:16", constants);
  CompileOptions options;
  options.target = "sm_90a";
  auto done = compile(*function, *args, options);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : render(done.error()));
  return done.ok() ? Compiled{done->ptx, done->cubin} : Compiled{};
}

#if KILN_HAS_CUPTI
#define LINES_OR_SKIP(code)                                                      \
  const Compiled code = compiled();                                              \
  if (code.cubin.empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here"; \
  if (auto library = Library::open(); !library.ok()) GTEST_SKIP() << library.error().message;
#else
#define LINES_OR_SKIP(code) \
  const Compiled code;      \
  GTEST_SKIP() << built_without().message;
#endif

TEST(SassLines, EveryInstructionOfTheKernelHasALineOfIt) {
  LINES_OR_SKIP(code);
  auto table = cubin_lines(code.cubin, "add");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->files, std::vector<std::string>{"dir/add.py"});
  EXPECT_EQ(table->code.size() * kInstructionBytes, code_bytes(code.cubin, "add"));
  std::set<int> lines;
  for (const Instruction& i : table->code)
    if (i.file >= 0) lines.insert(i.line);
  for (int line : {7, 14, 15, 16}) EXPECT_TRUE(lines.contains(line)) << line;
  EXPECT_GE(*lines.begin(), 7);
  EXPECT_LE(*lines.rbegin(), 16);
}

// Every line with machine code has PTX: the table of one leads to the lines of the other.
TEST(SassLines, AgreeWithPtx) {
  LINES_OR_SKIP(code);
  auto table = cubin_lines(code.cubin, "add");
  ASSERT_TRUE(table.ok()) << table.error().message;
  std::set<int> of_ptx;
  for (const Instruction& i : ptx_lines(code.ptx).code) of_ptx.insert(i.line);
  for (const Instruction& i : table->code)
    if (i.file >= 0) {
      EXPECT_TRUE(of_ptx.contains(i.line)) << i.line;
    }
}

TEST(SassLines, AgreeWithTheDisassembler) {
  LINES_OR_SKIP(code);
  auto text = disassemble(code.cubin, "add");
  if (!text.ok()) GTEST_SKIP() << text.error().message;
  auto table = cubin_lines(code.cubin, "add");
  ASSERT_TRUE(table.ok()) << table.error().message;
  int loads = 0;
  for (const Instruction& i : text->code) {
    const Instruction* same = table->find(i.pc);
    ASSERT_NE(same, nullptr) << i.pc;
    if (i.file >= 0 && same->file >= 0) {
      EXPECT_EQ(table->files[same->file], text->files[i.file]);
      EXPECT_EQ(same->line, i.line) << i.text;
    }
    if (opcode(i.text).starts_with("LDG")) {
      ++loads;
      EXPECT_TRUE(i.line == 14 || i.line == 15) << i.text;
    }
    if (opcode(i.text).starts_with("STG")) {
      EXPECT_EQ(i.line, 16) << i.text;
    }
  }
  EXPECT_GE(loads, 2);
}

TEST(SassLines, WhatIsNotThereIsSaid) {
  LINES_OR_SKIP(code);
  auto other = cubin_lines(code.cubin, "subtract");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "the cubin has no function 'subtract'");
  EXPECT_FALSE(cubin_lines("no cubin", "add").ok());
}

TEST(SassLines, ChecksumsTellCubinsApart) {
  LINES_OR_SKIP(code);
  auto one = cubin_checksum(code.cubin), again = cubin_checksum(code.cubin);
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(*one, *again);
  std::string other = code.cubin;
  other[other.size() / 2] ^= 1;
  EXPECT_NE(*one, *cubin_checksum(other));
}

TEST(PcSampling, TheCpuHasNoProgramCountersToSample) {
  auto sampler = PcSampler::attach(*open_device("cpu"));
  ASSERT_FALSE(sampler.ok());
  EXPECT_EQ(sampler.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(sampler.error().message, "program counters are sampled on GPUs; cpu has none");
}

}  // namespace
}  // namespace kiln::profiler::cupti
