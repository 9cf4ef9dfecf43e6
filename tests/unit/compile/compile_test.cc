#include "compiler/compile.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "compiler/parse/parser.h"
#include "kiln/interrupt.h"
#include "support/stop.h"

namespace kiln {
namespace {

constexpr const char* kAdd = R"(
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)
)";

Result<CompiledKernel> compile_add(const CompileOptions& options) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("add.py", kAdd)));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  std::pair<std::string, frontend::Global> block{"BLOCK", ast::Constant(ast::Int{1024})};
  KILN_TRY(auto args,
           frontend::parse_signature(*functions.at(0), "*fp32:16, *fp32:16, *fp32:16, i32:16", std::span(&block, 1)));
  return compile(*functions.at(0), args, options);
}

TEST(Compile, GivesEveryStageAsText) {
  std::map<std::string, std::string> stages;
  CompileOptions options;
  options.target = "sm_90a";
  options.verify_each = true;
  options.on_stage = [&](std::string_view stage, const std::string& text) { stages[std::string(stage)] = text; };
  auto kernel = compile_add(options);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  for (const char* stage : {"ir", "ir:canonicalize", "ir:assign_layouts", "llvm", "ptx"})
    EXPECT_FALSE(stages[stage].empty()) << stage;
  EXPECT_NE(kernel->ptx.find("ld.global"), std::string::npos);
  EXPECT_EQ(kernel->params.size(), 4u);
  EXPECT_EQ(kernel->num_warps, 4);
  EXPECT_EQ(kernel->shared_bytes, 0);
}

TEST(Compile, NamesOutsideOfAsciiAreMangledInPtx) {
  auto module = parse::parse_module(SourceText::make("加.py", R"(
import triton
import triton.language as tl

@triton.jit
def 加(v, é):
    tl.device_print("加", v)
    return v + é

@triton.jit
def 核(x, é):
    tl.store(x, 加(tl.load(x), é))
)"));
  ASSERT_TRUE(module.ok()) << render(module.error());
  auto functions = frontend::jit_functions(*module);
  ASSERT_TRUE(functions.ok()) << render(functions.error());
  for (const char* target : {"sm_80", "sm_90a", "host"}) {
    auto args = frontend::parse_signature(*functions->at(1), "*fp32, fp32", {});
    ASSERT_TRUE(args.ok()) << render(args.error());
    CompileOptions options;
    options.target = target;
    auto kernel = compile(*functions->at(1), *args, options);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    EXPECT_EQ(kernel->name, "核");
    if (kernel->ptx.empty()) continue;
    EXPECT_NE(kernel->ptx.find(".entry $6838$("), std::string::npos) << kernel->ptx;
  }
}

TEST(Compile, HostCodeRuns) {
  CompileOptions options;
  options.want_asm = true;
  auto kernel = compile_add(options);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_FALSE(kernel->text.empty());
  auto code = load_host_object(*kernel);
  ASSERT_TRUE(code.ok()) << render(code.error());
  std::vector<float> x(3000), y(3000), out(3000, -1);
  for (int i = 0; i < 3000; ++i) x[i] = static_cast<float>(i), y[i] = 0.5f;
  uint64_t slots[] = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(y.data()),
                      reinterpret_cast<uint64_t>(out.data()), 2992};
  const int32_t grid[] = {3, 1, 1};
  std::vector<std::byte> scratch(static_cast<size_t>(kernel->scratch_bytes) + 64);
  void* aligned = scratch.data();
  size_t room = scratch.size();
  (*code)->entry()(slots, grid, 0, 3, std::align(64, static_cast<size_t>(kernel->scratch_bytes), aligned, room));
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(out[i], i < 2992 ? static_cast<float>(i) + 0.5f : -1.0f) << i;
}

TEST(Compile, EndsWithCtrlC) {
  InterruptListener listens;
  for (const char* target : {"host", "sm_90a"}) {
    CompileOptions options;
    options.target = target;
    request_interrupt();
    auto cut = compile_add(options);
    clear_interrupt();
    ASSERT_FALSE(cut.ok()) << target;
    EXPECT_EQ(cut.error().kind, ErrorKind::kInterrupted) << target;
    EXPECT_TRUE(compile_add(options).ok()) << target;
  }
}

TEST(Compile, UnknownTargetNamesTheKnownOnes) {
  CompileOptions options;
  options.target = "sm_9000";
  auto kernel = compile_add(options);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().kind, ErrorKind::kValue);
  EXPECT_NE(render(kernel.error()).find("sm_90a"), std::string::npos);
}

}  // namespace
}  // namespace kiln
