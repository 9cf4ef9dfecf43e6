// The asynchronous ops of the distributed stage through the NVPTX lowering: the instructions that a hand-written GEMM
// becomes, and what the assembler says of them.
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdio>

#include "compiler/codegen/nvptx.h"
#include "compiler/lower/launch_plan.h"
#include "compiler/lower/nvptx.h"
#include "tests/unit/lower/hopper_gemm.h"

namespace kiln {
namespace {

using testing_support::hopper_gemm_ir;
using testing_support::HopperGemm;

std::unique_ptr<ir::Module> parse(const std::string& text) {
  auto module = ir::parse_module(SourceText::make("gemm.kir", text));
  EXPECT_TRUE(module.ok()) << render(module.error()) << text;
  if (!module.ok()) return nullptr;
  auto valid = ir::verify(**module);
  EXPECT_TRUE(valid.ok()) << render(valid.error()) << text;
  return valid.ok() ? std::move(*module) : nullptr;
}

std::string ptx_of(const std::string& text) {
  auto module = parse(text);
  if (!module) return "";
  const target::Target& target = *target::find("sm_90a");
  llvm::LLVMContext context;
  auto lowered = lower::lower_nvptx(*module, target, context);
  EXPECT_TRUE(lowered.ok()) << render(lowered.error()) << text;
  if (!lowered.ok()) return "";
  auto ptx = codegen::emit_ptx(**lowered, target);
  EXPECT_TRUE(ptx.ok()) << render(ptx.error()) << text;
  return ptx.ok() ? *ptx : "";
}

int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

/// No spill, no stack, and no remark of the assembler: it serialises wgmma with a mere C75xx.
void expect_clean_machine_code(const std::string& ptx) {
  auto cubin = codegen::link_cubin(ptx, *target::find("sm_90a"));
  ASSERT_TRUE(cubin.ok()) << render(cubin.error()) << ptx;
  if (cubin->image.empty()) {
    std::printf("[   NOTE   ] neither nvJitLink nor ptxas is here: no cubins are made\n");
    return;
  }
  EXPECT_EQ(cubin->spill_bytes, 0);
  EXPECT_EQ(cubin->stack_bytes, 0);
  for (const std::string& message : cubin->messages) ADD_FAILURE() << message;
}

TEST(Hopper, GemmBecomesTheRecipe) {
  const std::string ptx = ptx_of(hopper_gemm_ir({}));
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"), 4) << ptx;
  EXPECT_EQ(count(ptx, "wgmma.fence.sync.aligned"), 1);
  EXPECT_EQ(count(ptx, "wgmma.commit_group.sync.aligned"), 1);
  EXPECT_EQ(count(ptx, "wgmma.wait_group.sync.aligned 0"), 1);
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 2);
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.global.shared::cta"), 2);  // two panels of 64 columns
  EXPECT_EQ(count(ptx, "mbarrier.try_wait.parity"), 2);
  EXPECT_EQ(count(ptx, "mbarrier.arrive.expect_tx"), 1);
  EXPECT_EQ(count(ptx, "mbarrier.init"), 6);
  EXPECT_EQ(count(ptx, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 8);
  EXPECT_EQ(count(ptx, "bar.sync \t1, 256"), 2);
  EXPECT_EQ(count(ptx, ".local"), 0);
  EXPECT_EQ(count(ptx, ".reqntid 384"), 1);
  EXPECT_EQ(count(ptx, ".minnctapersm 1"), 1);
  EXPECT_EQ(count(ptx, ".shared .align 1024"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg"), 0);  // 64 accumulators are content with an even share
  expect_clean_machine_code(ptx);
}

TEST(Hopper, WideTilesWithRowMajorB) {
  const std::string ptx = ptx_of(hopper_gemm_ir({.n = 256, .b_transposed = false}));
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n256k16"), 4);
  EXPECT_EQ(count(ptx, "1, 1, 1, 0, 1;"), 4);                                      // the second operand transposed
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 1 + 4);  // b has panels of 64 columns
  expect_clean_machine_code(ptx);
}

TEST(Hopper, ManyWarpsTakeRegistersFromTheProducer) {
  const std::string ptx = ptx_of(hopper_gemm_ir({.m = 256, .num_warps = 16}));
  EXPECT_EQ(count(ptx, ".reqntid 640"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg.dec.sync.aligned.u32 \t40"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg.inc.sync.aligned.u32 \t104"), 1);
  expect_clean_machine_code(ptx);
}

}  // namespace
}  // namespace kiln
