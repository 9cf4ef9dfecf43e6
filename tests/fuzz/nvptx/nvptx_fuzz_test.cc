// Random programs down to PTX: every one lowers, is valid LLVM IR and is selected, with no GPU.
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/codegen/nvptx.h"
#include "compiler/lower/nvptx/nvptx.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "tests/fuzz/generator.h"

namespace kiln::fuzz {
namespace {

class NvptxFuzz : public testing::TestWithParam<const char*> {};

TEST_P(NvptxFuzz, CompilesToPtx) {
  const target::Target& target = *target::find(GetParam());
  for_each_seed(20, [&](uint64_t seed) {
    GeneratorOptions options;
    options.dots = true;
    const Program p = generate(seed, options);
    const std::string from = ir::print(*p.module);
    const Status ran = passes::run(passes::pipeline(target.kind), *p.module, target, {});
    ASSERT_TRUE(ran.ok()) << render(ran.error()) << from;
    llvm::LLVMContext context;
    auto lowered = lower::lower_nvptx(*p.module, target, context);
    ASSERT_TRUE(lowered.ok()) << render(lowered.error()) << from;
    std::string complaint;
    llvm::raw_string_ostream stream(complaint);
    ASSERT_FALSE(llvm::verifyModule(**lowered, &stream)) << complaint << codegen::print_llvm(**lowered) << from;
    auto ptx = codegen::emit_ptx(**lowered, target);
    ASSERT_TRUE(ptx.ok()) << render(ptx.error()) << from;
    EXPECT_NE(ptx->find(".entry fuzz"), std::string::npos) << *ptx;
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, NvptxFuzz, testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace kiln::fuzz
